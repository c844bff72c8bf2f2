"""The launch of Spark's JVM by PySpark. What Java says meanwhile becomes one line if the start fails."""

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
# what Java says before the reason, and complaints of bash about what Java has not told it
_OF_NOTHING = re.compile(r": line \d+: |^Picked up |^Error occurred during initialization")
# Java says so at every start, of a module that Spark asks for (for MLlib)
_OF_MODULES = re.compile(rb"WARNING: Using incubator modules: [^\n]*\n")


class HeldBack:
    """What a process says on standard error: held back while it starts, then passed on."""

    def __init__(self) -> None:
        """Begin to hold back what comes into the pipe.

        The process writes to `end`, which is to be closed here once the process has it.
        """
        self._read, self.end = os.pipe()
        self._lock = threading.Lock()
        self._held: bytes | None = b""
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def release(self) -> None:
        """Say what was held back, and from now on all at once."""
        with self._lock:
            held, self._held = self._held, None
            _say(_OF_MODULES.sub(b"", held or b""))

    def reason(self) -> str:
        """In one line, why the process has ended."""
        self._reader.join(_LAST_WORDS_SECONDS)  # something else may have the pipe, and live
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
    """Let temporary files of this process be in a folder: if it is killed, PySpark leaves one of its own."""
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def launch(settings: Mapping[str, str]) -> Any:
    """Start the JVM with these settings on its command line, and return PySpark's connection to it.

    Raises:
        RuntimeError: it has ended before it was ready.
    """
    errors = HeldBack()
    try:
        with _temporary_files_in(session_folder()):
            gateway = launch_jvm(settings, errors.end)
    except PySparkRuntimeError as error:
        raise RuntimeError(errors.reason()) from error
    errors.release()
    return gateway
