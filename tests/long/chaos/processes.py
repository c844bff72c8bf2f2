"""A job in processes of its own: what it tells, which processes it has, and the end of all of them."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.support.commands import environment

# `operator`: a process beside a worker, of an operator or a fold; `fold`: of a fold beside the driver
KINDS = ("driver", "jvm", "daemon", "worker", "operator", "fold")
PATIENCE_S = 300  # for whatever a job does next: many times what it takes on a slow machine


@dataclass
class RunningJob:
    """A job whose processes all belong to one session of the operating system."""

    process: subprocess.Popen[str]
    errors: Path
    _lines: queue.Queue[dict[str, Any] | None] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def next_fact(self) -> dict[str, Any] | None:
        """What the job tells next; None once it has ended."""
        return self._lines.get(timeout=PATIENCE_S)

    def code(self) -> int:
        """How the job ended."""
        return self.process.wait(PATIENCE_S)

    def said(self) -> str:
        """Everything on standard error."""
        return self.errors.read_text()

    def left_behind(self) -> list[str]:
        """Processes that do not end by themselves within a minute of the driver's end."""
        _, alive = psutil.wait_procs(_of_session(self.process.pid), timeout=60)
        return [" ".join(process.cmdline())[:80] for process in alive]

    def members(self) -> dict[str, list[psutil.Process]]:
        """The living processes by their kinds."""
        found: dict[str, list[psutil.Process]] = {kind: [] for kind in KINDS}
        kinds: dict[int, str] = {}
        for process in sorted(_of_session(self.process.pid), key=lambda process: process.create_time()):
            kind = _kind(process, kinds, self.process.pid)
            if kind:
                kinds[process.pid] = kind
                found[kind].append(process)
        return found


_DAEMON = "spark_pace.spark.stages.daemon"  # what Spark's Python workers are forked from


def _of_session(session: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def _kind(process: psutil.Process, kinds: dict[int, str], driver: int) -> str:
    try:
        if process.pid == driver:
            return "driver"
        if process.name() == "java":
            return "jvm"
        line = process.cmdline()
        parent = kinds.get(process.ppid(), "")
        leads = os.getpgid(process.pid) == process.pid
    except (psutil.NoSuchProcess, ProcessLookupError):
        return ""
    if _DAEMON in line and leads and parent in ("jvm", ""):
        return "daemon"
    return {"daemon": "worker", "worker": "operator", "driver": "fold"}.get(parent, "")


@contextmanager
def sessions(driver: str) -> Iterator[Callable[..., RunningJob]]:
    """Give a function that starts jobs in a module like this folder's driver, `start(job, errors, *kill)`.

    At the end all that is left of them is killed.


    A job is not cleared away when its driver ends: what it leaves behind may get in the way of the next one,
    as it would outside.
    """
    started: list[subprocess.Popen[str]] = []

    def start(job: Path, errors: Path, *kill: str) -> RunningJob:
        with errors.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", driver, str(job), *kill],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
                env=environment(),
            )
        started.append(process)
        return RunningJob(process, errors)

    try:
        yield start
    finally:
        for process in started:
            end_session(process)


def end_session(process: subprocess.Popen[str]) -> None:
    """Kill what is left of a session, its leader included."""
    while left := _of_session(process.pid):
        for member in left:
            try:
                os.kill(member.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        psutil.wait_procs(left, timeout=1)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
