"""The process of a job of random graphs, kept by `keep`: ``python -m tests.long.levels.driver JOB [KILL]``.

It changes the table that the job joins behind each batch. See `tests.long.chaos.driver`.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from tests.long.chaos.driver import run
from tests.support.graph_jobs import GraphJob


def keep(job: GraphJob, path: Path) -> Path:
    """Write down a job, whose rules are in no file; returns the path."""
    path.write_bytes(pickle.dumps(job))
    return path


if __name__ == "__main__":
    kept: GraphJob = pickle.loads(Path(sys.argv[1]).read_bytes())
    sys.exit(run(kept.spec, sys.argv[2:], kept.change))
