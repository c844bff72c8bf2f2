"""Spark's JVM, started before PySpark and the rest of this program are imported, which takes a second or two.

`spark-pace run` starts it as soon as it has looked into the job file. The session takes it if the checked job
asks for the same; else it is ended. It ends with this process in any case. A session for which none was
started starts it here too: so what the scripts and Java say of a failing start becomes one line.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import struct
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spark_pace.spark.java.home import session_folder
from spark_pace.spark.java.settings import settings_here
from spark_pace.spark.stages.workers.start import ignore_interrupts

_LOOK_SECONDS = 0.02
_LAST_WORDS_SECONDS = 2
_PIECE_BYTES = 1 << 16
_PORT_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"  # Spark's own variable
_PORT_AND_LENGTH = struct.Struct(">ii")  # what it begins with; the rest is a secret of that length
# who sets these starts Spark in a way of their own
_OF_SCRIPTS = re.compile(r": line \d+: ")  # complaints of bash about what Java has not told it
_OTHER_WAYS = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME", "SPARK_TESTING")


@dataclass(frozen=True)
class Asked:
    """What the settings of a session follow from: its name, what the user has set, and `quick`."""

    name: str
    settings: Mapping[str, str]
    quick: bool


class HeldBack:
    """What a process says on standard error: held back while it starts, then passed on."""

    def __init__(self) -> None:
        """Hold it back. `end` is for the process, and to be closed here once it has it."""
        self._read, self.end = os.pipe()
        self._lock = threading.Lock()
        self._held: bytes | None = b""
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def release(self) -> None:
        """Say what was held back, and from now on all at once."""
        with self._lock:
            held, self._held = self._held, None
            _say(held or b"")

    def reason(self, code: int) -> str:
        """In one line, why the process has ended with an exit code."""
        self._reader.join(_LAST_WORDS_SECONDS)  # something else may have the pipe, and live
        if code < 0:
            return f"Java's end by {signal.Signals(-code).name} before it was ready"
        lines = [line.strip() for line in (self._held or b"").decode("utf-8", "replace").splitlines()]
        told = [line for line in lines if line and not _OF_SCRIPTS.search(line)]
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


@dataclass
class _Started:
    asked: Asked
    settings: dict[str, str]
    process: subprocess.Popen[bytes]
    port_file: Path
    errors: HeldBack


class EarlyJvm:
    """A JVM that may have been started, and that may not have been taken yet."""

    def __init__(self) -> None:
        """None was started."""
        self._started: _Started | None = None

    def start(self, asked: Asked) -> None:
        """Start it, unless the environment says how Spark is to be started.

        Raises:
            SetupError: Java or the jars are missing.
            OSError: the command of Spark is missing.
        """
        if any(name in os.environ for name in _OTHER_WAYS):
            return
        settings = {"spark.app.name": asked.name, **settings_here(asked.settings, {}, None, asked.quick)}
        port_file = session_folder() / "tmp" / "port"
        command = [os.path.join(os.environ["SPARK_HOME"], "bin", "spark-submit")]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        errors = HeldBack()
        process = subprocess.Popen(
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,  # its end tells the end of this process
            stderr=errors.end,
            env={**os.environ, "SPARK_CONNECT_MODE": "0", _PORT_FILE: str(port_file)},
            preexec_fn=ignore_interrupts,
        )
        os.close(errors.end)
        atexit.register(process.kill)
        self._started = _Started(asked, settings, process, port_file, errors)

    def settings_for(self, asked: Asked) -> dict[str, str] | None:
        """The settings with which it was started. None: there is none, or it was for others and is ended."""
        if self._started is None:
            return None
        if self._started.asked == asked:
            return self._started.settings
        self._started.process.kill()
        self._started.process.communicate()
        self._started = None
        return None

    def gateway(self) -> Any:
        """PySpark's connection to it, once; None if there is none.

        Raises:
            RuntimeError: it has ended.
        """
        from pyspark import java_gateway  # late: the JVM is to start before

        if self._started is None:
            return None
        started, self._started = self._started, None
        while not started.port_file.exists():
            with suppress(subprocess.TimeoutExpired):
                code = started.process.wait(_LOOK_SECONDS)
                raise RuntimeError(started.errors.reason(code))
        started.errors.release()
        told = started.port_file.read_bytes()
        port, length = _PORT_AND_LENGTH.unpack_from(told)
        secret = told[_PORT_AND_LENGTH.size :][:length].decode()
        there = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        os.environ.update(there)
        try:
            gateway: Any = java_gateway.launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            for name in there:
                del os.environ[name]
        gateway.proc = started.process
        atexit.unregister(started.process.kill)
        return gateway


@cache
def early_jvm() -> EarlyJvm:
    """That of this process."""
    return EarlyJvm()
