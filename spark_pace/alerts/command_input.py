"""Writes alerts to the standard input of a program, a line each. It is started once."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from spark_pace.alerts.sender import Alert, Refusal, SendError
from spark_pace.job_file.alerts import AlertTarget, Command

_MOST_ROWS = 500
_ENDING_SECONDS = 1.0  # of a program that has closed its input
_STDERR = 2  # the output of `run` stays its own


class CommandInput:
    """A running program that reads alerts."""

    most_rows = _MOST_ROWS
    refuses_all = False

    def __init__(self, to: Command, target: AlertTarget) -> None:
        """Start nothing yet."""
        self._words, self._seconds = to.words, target.timeout_us / 1e6
        self._process: subprocess.Popen[bytes] | None = None

    def send(self, alerts: Sequence[Alert]) -> list[Refusal]:
        """Write alerts; return once the system has taken all of them for the program."""
        process = self._running()
        left = memoryview("".join(f"{alert.text}\n" for alert in alerts).encode())
        file, until = _input_of(process).fileno(), time.monotonic() + self._seconds * (len(alerts) + 1)
        room = select.poll()  # `select` takes no file with a number above 1,023
        room.register(file, select.POLLOUT)
        while left:
            seconds = min(self._seconds, until - time.monotonic())
            if seconds <= 0 or not room.poll(seconds * 1000):
                how = f"nothing for {self._seconds:g} s" if seconds == self._seconds else "too slowly"
                self._end(process)
                raise SendError(f"a program that reads {how}, and was ended", may_have_arrived=True)
            try:
                left = left[os.write(file, left) :]
            except BlockingIOError:  # another process has filled the pipe
                continue
            except OSError as error:
                self._end(process, _ENDING_SECONDS)
                told = f"its end, with exit code {process.returncode}"
                raise SendError(told, may_have_arrived=True) from error
        return []

    def close(self) -> None:
        """Let the program read to the end of its input and end; kill it if it does not."""
        if self._process is not None:
            self._end(self._process, patience=self._seconds)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        ended, self._process = self._process, None
        if ended is not None:
            self._end(ended)
            raise SendError(f"its end, with exit code {ended.returncode}", may_have_arrived=False)
        try:
            # a session of its own: ctrl-C ends the job first, which then lets the program end
            process = subprocess.Popen(
                self._words, stdin=subprocess.PIPE, stdout=_STDERR, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise SendError(f"{error.strerror}: {self._words[0]}", may_have_arrived=False) from error
        os.set_blocking(_input_of(process).fileno(), False)
        self._process = process
        return process

    def _end(self, process: subprocess.Popen[bytes], patience: float = 0.0) -> None:
        self._process = None
        with suppress(OSError):
            _input_of(process).close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        process.kill()
        process.wait()


def _input_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin
