"""Starts Spark's JVM through PySpark; if that fails, Java's output becomes one line."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkRuntimeError

from spark_pace.spark.internals import launch_jvm
from spark_pace.spark.java.session_folder import session_folder

_LAST_WORDS_SECONDS = 2
_PIECE_BYTES = 1 << 16
# lines that Java prints before the reason, and complaints of bash because of Java's missing output
_OF_NOTHING = re.compile(r": line \d+: |^Picked up |^Error occurred during initialization")
# Java prints this at every start, about a module that Spark asks for (for MLlib)
_OF_MODULES = re.compile(rb"WARNING: Using incubator modules: [^\n]*\n")


class HeldBack:
    """The standard error of a process: held back while it starts, then passed on."""

    def __init__(self) -> None:
        """Open the pipe and begin to hold back its content.

        The process writes to `end`, which must be closed in this process once the other has it.
        """
        self._read, self.end = os.pipe()
        self._lock = threading.Lock()
        self._held: bytes | None = b""
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def release(self) -> None:
        """Print what was held back, and print everything at once from now on."""
        with self._lock:
            held, self._held = self._held, None
            _say(_OF_MODULES.sub(b"", held or b""))

    def reason(self) -> str:
        """The reason why the process has ended, as one line."""
        self._reader.join(_LAST_WORDS_SECONDS)  # another process may still hold the pipe open
        held = _OF_MODULES.sub(b"", self._held or b"").decode("utf-8", "replace")
        told = [line.strip() for line in held.splitlines() if line.strip() and not _OF_NOTHING.search(line)]
        return f"Java's end before it was ready: {told[0] if told else 'it was killed, or gave no reason'}"

    def _pass_on(self) -> None:
        with open(self._read, "rb", buffering=0) as pipe:
            while piece := pipe.read(_PIECE_BYTES):
                with self._lock:
                    if self._held is None:
                        _say(piece)
                    else:
                        self._held += piece


def _say(piece: bytes) -> None:
    with suppress(OSError):
        os.write(2, piece)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Make temporary files of this process in `folder`, because PySpark leaves one there if it is killed."""
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def launch(settings: Mapping[str, str]) -> Any:
    """Start the JVM with these settings on its command line, and return PySpark's connection to it.

    Raises:
        RuntimeError: the JVM has ended before it was ready.
    """
    errors = HeldBack()
    try:
        with _temporary_files_in(session_folder()):
            gateway = launch_jvm(settings, errors.end)
    except PySparkRuntimeError as error:
        raise RuntimeError(errors.reason()) from error
    errors.release()
    return gateway
