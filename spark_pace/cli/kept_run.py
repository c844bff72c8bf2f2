"""One run of a job that another process keeps running (`spark_pace.cli.keep_running`)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import click

from spark_pace.errors import may_pass, shown

MAY_PASS = os.EX_TEMPFAIL  # the exit code of a run that failed, where the next one may not


def kept_run(job: Path) -> None:
    """Run a job as `spark-pace run` does; stop it once the process that started this one has ended.

    If it fails, and that may pass, exit with the code `MAY_PASS`.
    """
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    from spark_pace.cli.run import run_command

    try:
        run_command(job)
    except Exception as error:
        if isinstance(error, BrokenPipeError) or not may_pass(error):
            raise
        click.echo(shown(error), err=True)
        sys.exit(MAY_PASS)


def _stop_at_end_of_input() -> None:
    """Wait for the end of standard input, which the other process holds open; then stop this one."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
