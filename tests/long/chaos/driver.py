"""The process of a job, which can kill itself: ``python -m tests.long.chaos.driver JOB [WHOM MOMENT SKIP]``.

Each batch, and the moment of the kill, is told as a line of JSON.
"""

from __future__ import annotations

import json
import sys

import click

from spark_pace.errors import SparkPaceError
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.long.chaos.moments import arm


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def told(progress: BatchReport) -> None:
    tell(batch=progress.batch_id, finished=progress.finished)


@click.command()
@click.argument("job")
@click.argument("whom", required=False)
@click.argument("moment", required=False)
@click.argument("skip", required=False, type=int)
def main(job: str, whom: str | None, moment: str | None, skip: int | None) -> None:
    """Run the JOB; kill WHOM at a MOMENT, but not the first SKIP times that it comes."""
    if whom is not None and moment is not None and skip is not None:
        arm(whom, moment, skip, tell)
    try:
        summary = run_job(read_job(job), on_progress=told)
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    tell(done=True, finished=summary.finished)


if __name__ == "__main__":
    main()
