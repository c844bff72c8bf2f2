"""The main for `spark-submit`: ``spark-submit jobs/run.py JOB [--reset-rule NAME]...``.

JOB is a job file, such as those in ``conf/jobs``.
"""

from __future__ import annotations

import argparse
import sys

from spark_pace.cli.run import closing_line, print_batch
from spark_pace.errors import ConfigError, RuleError, shown
from spark_pace.job import run_job
from spark_pace.job_file import read_job


def main(arguments: list[str]) -> int:
    """Run the job; 0, or 1 after an error, 2 for wrong arguments or files, 128 + n after signal n."""
    parser = argparse.ArgumentParser("spark-submit jobs/run.py")
    parser.add_argument("job", metavar="JOB")
    parser.add_argument(
        "--reset-rule",
        action="append",
        default=[],
        metavar="NAME",
        help="drop what the checkpoint keeps for this rule: it begins anew",
    )
    given = parser.parse_args(arguments)
    try:
        summary = run_job(
            read_job(given.job),
            on_progress=print_batch,
            reset_rules=given.reset_rule,
        )
    except Exception as error:
        print(shown(error), file=sys.stderr)
        return 2 if isinstance(error, (RuleError, ConfigError)) else 1
    print(closing_line(summary), flush=True)
    return 128 + summary.stopped_by if summary.stopped_by else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
