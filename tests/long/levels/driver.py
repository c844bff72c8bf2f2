"""The process of a job of random graphs, kept by `keep`: ``python -m tests.long.levels.driver JOB [KILL]``.

It changes the table that the job joins behind each batch. See `tests.long.chaos.driver`.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import click

from tests.long.chaos.driver import run
from tests.support.graph_jobs import GraphJob


def keep(job: GraphJob, path: Path) -> Path:
    """Write down a job, whose rules are in no file; returns the path."""
    path.write_bytes(pickle.dumps(job))
    return path


@click.command()
@click.argument("job", type=click.Path(path_type=Path))
@click.argument("kill", nargs=-1, metavar="[WHOM MOMENT SKIP]")
def main(job: Path, kill: tuple[str, ...]) -> None:
    """Run the JOB; kill WHOM at a MOMENT, but not the first SKIP times that it comes."""
    kept: GraphJob = pickle.loads(job.read_bytes())
    sys.exit(run(kept.spec, kill, kept.change))


if __name__ == "__main__":
    main()
