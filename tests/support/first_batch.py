"""A job that waits before it writes its first batch: ``python -m tests.support.first_batch JOB GATE``.

It makes the file GATE.PID and goes on when the file GATE is there.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import click

from jobs import run
from spark_pace.spark.stages.merger import MergerHost


def wait_at(gate: Path) -> None:
    write = MergerHost._write

    def waiting(host: MergerHost, *batch: Any) -> Any:
        gate.with_name(f"{gate.name}.{os.getpid()}").touch()
        while not gate.exists():
            threading.Event().wait(0.001)
        return write(host, *batch)

    MergerHost._write = waiting  # type: ignore[method-assign]


@click.command()
@click.argument("job")
@click.argument("gate", type=click.Path(path_type=Path))
def main(job: str, gate: Path) -> None:
    """Run the JOB, which waits for the file GATE."""
    wait_at(gate)
    sys.exit(run.main([job]))


if __name__ == "__main__":
    main()
