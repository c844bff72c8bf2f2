"""Starts the process that Spark's Python processes are forked from, and names the command that asks it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from shlex import quote

from spark_pace.spark.stages.workers import command, parent

NAME = "spark-pace-python"  # of the command
_SCRIPT = """#!/bin/sh
exec {python} -I -S {command} {socket} {python} "$@"
"""


def forking_python(folder: Path) -> str:
    """The path of a command that does what this Python does, but has the modules of Spark loaded.

    The process that makes it so is started now, with the present `PYTHONPATH`, and ends with this one. Where
    the path of `folder` is too long for a socket, the path is this Python's own.

    Args:
        folder: of the session, for nobody else to write to.
    """
    address, script = folder / "workers", folder / NAME
    if _parent(address) is None:
        return sys.executable
    quoted = {"python": sys.executable, "command": command.__file__, "socket": str(address)}
    script.write_text(_SCRIPT.format(**{name: quote(text) for name, text in quoted.items()}))
    script.chmod(0o700)
    return str(script)


@cache
def _parent(address: Path) -> subprocess.Popen[bytes] | None:
    """The parent of Spark's Python processes, which listens at `address`; None: the path is too long."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(address))
        except OSError:
            return None
        listener.listen()
        return subprocess.Popen(
            [sys.executable, "-m", parent.__name__, str(listener.fileno())],
            stdin=subprocess.PIPE,  # its end tells the end of this process
            env={**os.environ, **parent.GIVEN},
            pass_fds=[listener.fileno()],
            preexec_fn=ignore_interrupts,
        )


def ignore_interrupts() -> None:
    """Ctrl-C is for the process of the job to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
