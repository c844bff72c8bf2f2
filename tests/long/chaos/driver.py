"""The process of a job, which can kill itself: ``python -m tests.long.chaos.driver JOB [WHOM MOMENT SKIP]``.

Each batch, and the moment of the kill, is told as a line of JSON.
"""

from __future__ import annotations

import json
import sys

from spark_pace.errors import SparkPaceError
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.long.chaos.moments import arm


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def told(progress: BatchReport) -> None:
    tell(batch=progress.batch_id, finished=progress.finished)


def main(job: str, *kill: str) -> int:
    if kill:
        whom, moment, skip = kill
        arm(whom, moment, int(skip), tell)
    try:
        summary = run_job(read_job(job), on_progress=told)
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        return 1
    tell(done=True, finished=summary.finished)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
