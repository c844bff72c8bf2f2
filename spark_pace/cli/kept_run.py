"""One run of a job that another process keeps running (`spark_pace.cli.keep_running`)."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from spark_pace.errors import exit_code, may_pass

MAY_PASS = os.EX_TEMPFAIL  # the exit code of a run that failed, where the next one may not


def kept_run(job: Path) -> int:
    """Run a job as `spark-pace run` does; stop it once the process that started this one has ended."""
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    from spark_pace.cli.run import run_command

    return run_command(job)


def code_of_kept(error: Exception) -> int:
    """The exit code of a run that failed: `MAY_PASS` if that may pass."""
    return MAY_PASS if may_pass(error) else exit_code(error)


def _stop_at_end_of_input() -> None:
    """Wait for the end of standard input, which the other process holds open; then stop this one."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
