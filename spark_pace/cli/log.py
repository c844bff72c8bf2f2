"""The lines of a running job: where they go to no terminal, each begins with the time."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TextIO

from spark_pace.errors import exit_code, shown, shown_time


def say(text: str, stream: TextIO | None = None) -> None:
    """Print lines to standard output, or to another stream."""
    to = sys.stdout if stream is None else stream
    print(text if to.isatty() else with_time(text), file=to, flush=True)


def with_time(text: str) -> str:
    """The text with the time before each line."""
    now = shown_time(datetime.now(timezone.utc))
    return "\n".join(f"{now} {line}" for line in text.splitlines())


def code_of_run(job: Path, run: Callable[[], int], code_of: Callable[[Exception], int] = exit_code) -> int:
    """Run a job, and return the exit code. Warnings of all modules, and an error, are lines like all others.

    Args:
        job: the job file.
        run: runs it, and returns the exit code.
        code_of: gives the exit code for an error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithTime())
    if not sys.stderr.isatty():  # on a terminal Python prints them as they are, above the live table
        logging.getLogger().addHandler(handler)
    try:
        return run()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        say("stopped", sys.stderr)
        return 130
    except Exception as error:
        names_it = sys.stderr.isatty() or str(error).startswith(str(job))
        say(shown(error, "" if names_it else f"{_named(job)}: "), sys.stderr)
        return code_of(error)
    finally:
        logging.getLogger().removeHandler(handler)


class _WithTime(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return with_time(super().format(record))


def _named(job: Path) -> str:
    """The job file and its checkpoint, by whole paths: who reads a log may not know where it began."""
    from spark_pace.job_file import JobFile  # late: `--keep-running` needs little memory

    checkpoint = JobFile(job, whole=False).checkpoint
    of = "" if checkpoint is None else f" (checkpoint {checkpoint.absolute()})"
    return f"{os.path.abspath(job)}{of}"
