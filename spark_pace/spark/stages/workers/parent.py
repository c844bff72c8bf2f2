"""The process that all Python processes of Spark on this machine are forked from, with their imports done.

A job has at least four such processes before its first result, one after the other: one that makes the
source, one that it lives in, one that plans its tasks, and the one that forks the workers. Each would import
PySpark anew, and the last one pyarrow, pandas and the core as well. This process imports all of it while the
JVM starts. It forks what `spark_pace.spark.stages.workers.command` asks for, and ends when the process that
has started it is gone and no process that it has forked is left.
"""

from __future__ import annotations

import marshal
import os
import runpy
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from spark_pace.spark.stages.workers.command import CODE_BYTES, FILES, LENGTH_BYTES

# variables that Spark sets for workers and that count while modules are loaded
GIVEN = {
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "YES",
    "PYTHONWARNINGS": "ignore",
}
# those that may differ: of Spark and of its scripts; workers flush what they print in any case
_FREE = ("PYSPARK_", "PYTHON_", "SPARK_", "_PYSPARK_")
_ALSO_FREE = {"OLDPWD", "PWD", "PYTHONPATH", "PYTHONUNBUFFERED", "SHLVL", "_"}
# besides what workers import
_LOADED = (
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "spark_pace.spark.sources.file_names",
)
_REQUEST_SECONDS = 5.0


def main() -> None:
    """Import, then fork; the argument is the descriptor of a socket that listens."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    daemon = import_module("spark_pace.spark.stages.daemon")
    for name in _LOADED:
        import_module(name)
    daemon.load()
    if not daemon.lost_threads():
        Parent(listener).serve()


class Parent:
    """Forks a process for each connection; tells its end there."""

    def __init__(self, listener: socket.socket) -> None:
        """Fork for those that connect to `listener`, as long as standard input is open."""
        self._listener = listener
        self._children: dict[int, socket.socket] = {}
        self._ended, self._ends = socket.socketpair()
        self._poll = select.poll()

    def serve(self) -> None:
        """Return when standard input has ended and no child is left."""
        self._ends.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._ends.fileno())
        for file in (sys.stdin.fileno(), self._listener.fileno(), self._ended.fileno()):
            self._poll.register(file, select.POLLIN)
        listens = True
        while listens or self._children:
            ready = {file for file, _ in self._poll.poll()}
            # connections first: what follows closes some and gives their descriptors to others
            self._end_children(ready)
            if self._ended.fileno() in ready:
                self._ended.recv(1 << 10)
                self._tell_ends()
            if listens and self._listener.fileno() in ready:
                self._take(self._listener.accept()[0])
            if sys.stdin.fileno() in ready:
                listens = False
                self._poll.unregister(sys.stdin.fileno())
                self._poll.unregister(self._listener)
                self._listener.close()  # who connected and was not heard starts Python itself

    def _take(self, connection: socket.socket) -> None:
        """Fork for a connection, or close it."""
        files: list[int] = []
        try:
            connection.settimeout(_REQUEST_SECONDS)
            files, arguments, environment, folder = _request(connection)
            if len(files) != len(FILES) or not fits(environment, os.environ):
                connection.close()
                return
            pid = os.fork()
            if pid == 0:
                self._become(files, arguments, environment, folder)
            self._children[pid] = connection
            self._poll.register(connection, select.POLLIN)
            with suppress(OSError):  # whoever asked may be gone; the poll tells that
                connection.sendall(b"1")
        except (OSError, EOFError, TypeError, ValueError):
            connection.close()
        finally:
            for file in files:
                os.close(file)

    def _become(
        self, files: list[int], arguments: list[str], environment: dict[str, str], folder: str
    ) -> None:
        """In the child: run the module. It never returns, for the callers on the stack are the parent's."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self._listener, self._ended, self._ends, *self._children.values()):
                one.close()
            for number, file in zip(FILES, files, strict=True):
                os.dup2(file, number)
                os.close(file)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            _, module, *sys.argv[1:] = arguments
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code & 0xFF)

    def _tell_ends(self) -> None:
        """Tell each child's end where it was asked for."""
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            connection = self._children.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError, KeyError):
                self._poll.unregister(connection)
            with suppress(OSError):
                connection.sendall(code.to_bytes(CODE_BYTES, "big", signed=True))
            connection.close()

    def _end_children(self, ready: set[int]) -> None:
        """End the children whose connections were closed."""
        for pid, connection in self._children.items():
            if connection.fileno() in ready:
                self._poll.unregister(connection)
                os.kill(pid, signal.SIGTERM)


def fits(theirs: Mapping[str, str], ours: Mapping[str, str]) -> bool:
    """Whether a process with one environment may be forked from one that was started with the other."""
    for name in {*theirs, *ours} - _ALSO_FREE:
        wanted = ours.get(name)
        if not name.startswith(_FREE) and theirs.get(name, GIVEN.get(name)) != wanted:
            return False
    return theirs.get("PYTHONPATH", "").endswith(ours.get("PYTHONPATH", ""))


def _request(connection: socket.socket) -> tuple[list[int], list[str], dict[str, str], str]:
    """Descriptors, Python's arguments, environment and folder."""
    space = socket.CMSG_SPACE(struct.calcsize("i") * len(FILES))
    head, parts, _, _ = connection.recvmsg(LENGTH_BYTES, space, socket.MSG_WAITALL)
    files: list[int] = []
    for _, _, part in parts:
        files += [number for (number,) in struct.iter_unpack("i", part)]
    with connection.makefile("rb") as stream:
        message: Any = marshal.loads(stream.read(int.from_bytes(head, "big")))
    arguments, environment, folder = message
    return files, arguments, environment, folder


if __name__ == "__main__":
    main()
