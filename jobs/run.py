"""The main for `spark-submit`: ``spark-submit jobs/run.py JOB [--reset-rule NAME]...``.

JOB is a job file, such as those in ``conf/jobs``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_pace.cli.log import code_of_run
from spark_pace.cli.run import run_shown
from spark_pace.job_file import read_job


def main(arguments: list[str]) -> int:
    """Run the job; 0, or 1 after an error, 2 for wrong arguments or files, 128 + n after signal n."""
    parser = argparse.ArgumentParser("spark-submit jobs/run.py")
    parser.add_argument("job", type=Path, metavar="JOB")
    parser.add_argument(
        "--reset-rule",
        action="append",
        default=[],
        metavar="NAME",
        help="drop what the checkpoint keeps for this rule: it begins anew",
    )
    given = parser.parse_args(arguments)
    return code_of_run(given.job, lambda: _run(given.job, given.reset_rule))


def _run(job: Path, reset_rules: Sequence[str]) -> int:
    summary = run_shown(read_job(job), reset_rules, in_lines=True)
    return 128 + summary.stopped_by if summary.stopped_by else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
