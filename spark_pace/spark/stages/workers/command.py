"""What Spark's JVM starts as its Python: it lets a process that has all imports done fork the new process.

That is `spark_pace.spark.stages.workers.parent`. The new process has this one's descriptors, environment and
folder. This one waits for its end, and ends in the same way; if it is ended itself, the new one is ended too.
Where the parent is gone or does not want to, Python is started as ever. The file runs by itself, without the
modules of Python that cost time.
"""

from __future__ import annotations

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

LENGTH_BYTES = 8
CODE_BYTES = 4
FILES = (0, 1, 2)


def main() -> None:
    """Arguments: the socket of the parent, the path of Python, then Python's own arguments."""
    address, python, *arguments = sys.argv[1:]
    code = _forked(address, arguments) if arguments[:1] == ["-m"] else None
    if code is None:
        os.execv(python, [python, *arguments])
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _forked(address: str, arguments: list[str]) -> int | None:
    """The exit code of the forked process, or minus the number of its signal; None: none was forked."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    message = marshal.dumps((arguments, dict(os.environ), os.getcwd()))
    files = b"".join(file.to_bytes(4, sys.byteorder) for file in FILES)
    try:
        connection.connect(address)
        length = len(message).to_bytes(LENGTH_BYTES, "big")
        connection.sendmsg([length], [(SOL_SOCKET, SCM_RIGHTS, files)])
        connection.sendall(message)
        if not connection.recv(1):
            return None
    except OSError:
        return None
    code = b""
    while len(code) < CODE_BYTES:
        part = connection.recv(CODE_BYTES - len(code))
        if not part:
            return 1
        code += part
    return int.from_bytes(code, "big", signed=True)


if __name__ == "__main__":
    main()
