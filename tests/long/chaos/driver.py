"""The process of a job, which can kill itself: ``python -m tests.long.chaos.driver JOB [WHOM MOMENT SKIP]``.

Each batch, and the moment of the kill, is told as a line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

import click

from spark_pace.errors import SparkPaceError
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.long.chaos.moments import arm


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def run(
    spec: JobSpec, kill: Sequence[str], behind: Callable[[BatchReport], None] = lambda batch: None
) -> int:
    """Run a job; `behind` is called behind each batch."""

    def told(progress: BatchReport) -> None:
        behind(progress)
        tell(batch=progress.batch_id, finished=progress.finished)

    if kill:
        whom, moment, skip = kill
        arm(whom, moment, int(skip), tell)
    try:
        summary = run_job(spec, on_progress=told)
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        return 1
    tell(done=True, finished=summary.finished)
    return 0


@click.command()
@click.argument("job")
@click.argument("kill", nargs=-1, metavar="[WHOM MOMENT SKIP]")
def main(job: str, kill: tuple[str, ...]) -> None:
    """Run the JOB; kill WHOM at a MOMENT, but not the first SKIP times that it comes."""
    sys.exit(run(read_job(job), kill))


if __name__ == "__main__":
    main()
