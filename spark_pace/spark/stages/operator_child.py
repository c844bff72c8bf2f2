"""A forked process that answers requests, and the watch over it: it may end or hang at any time."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from spark_pace.core.frames import decode_parcel
from spark_pace.errors import OperatorError

Result = TypeVar("Result")

_HEADER = struct.Struct("<QI")  # precedes each message: its length in bytes, and its CRC
# the child's end may go unnoticed so long, if a process started by the operator keeps the socket open
_LOOK_SECONDS = 1.0
_MESSAGE_SECONDS = 5.0  # the longest pause inside a message, during which the operator does not work
_BROKEN = 113  # the exit code of a child that has lost its connection
_PR_SET_PDEATHSIG = 1


class Ended(Exception):
    """The child has ended; the text says why."""


class Step(ctypes.Structure):
    """The child's present step: number, beginning and allowed time; and how much the child has sent so far.

    Both processes share this memory. Writing to it costs next to nothing, and no file descriptor leads to it,
    which an operator could spoil.

    Attributes:
        sent: the bytes that the child has announced so far.
        number: the number of the step that began last.
    """

    _fields_ = tuple((name, ctypes.c_int64) for name in ("sent", "number", "begun_ns", "limit_us"))
    sent: int
    number: int
    begun_ns: int
    limit_us: int

    def begin(self, number: int, limit_us: int) -> None:
        """Record that a step begins now."""
        self.begun_ns, self.limit_us, self.number = time.monotonic_ns(), limit_us, number

    @property
    def seconds_allowed(self) -> float:
        """The seconds that the step may take."""
        return self.limit_us / 1e6

    @property
    def seconds_left(self) -> float:
        """The seconds that the step may still take; negative if its time is over."""
        return (self.begun_ns - time.monotonic_ns()) / 1e9 + self.seconds_allowed


class Link:
    """The child's end of the socket, which detects that an operator has closed, replaced or copied it."""

    def __init__(self, end: socket.socket, step: Step) -> None:
        """Remember the socket's identity before any operator runs."""
        self.step = step
        self._socket = end
        self._stream = end.makefile("rb")
        self._number, self._pid = end.fileno(), os.getpid()
        self._file = os.fstat(self._number)

    def check(self) -> None:
        """End this process if it is an operator's fork, or if the socket is no longer the same."""
        if os.getpid() != self._pid:
            os._exit(0)
        try:
            whole = os.path.samestat(os.fstat(self._number), self._file)
        except OSError:
            whole = False
        if not whole:
            os._exit(_BROKEN)

    def send(self, message: bytes) -> None:
        """Send a message to the parent."""
        self.check()
        self.step.sent += _HEADER.size + len(message)
        try:
            _send(self._socket, message)
        except OSError:
            os._exit(_BROKEN)

    def receive(self) -> bytes | None:
        """Wait for the parent's next message; None if there are no more."""
        head = self._stream.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return None
        length, check = _HEADER.unpack(head)
        message = self._stream.read(length)
        return message if zlib.crc32(message) == check else None


class Child:
    """A child process, which runs `serve` with its end of a socket and then ends."""

    def __init__(self, serve: Callable[[Link], None]) -> None:
        """Fork the child."""
        self.step = Step.from_buffer(mmap.mmap(-1, ctypes.sizeof(Step)))
        self.fresh = True  # its user sets this to False
        self._socket, theirs = socket.socketpair()
        self._received = bytearray()
        self._taken = 0  # bytes that have been received so far
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        sys.stdout.flush()  # otherwise both processes would write what is buffered
        sys.stderr.flush()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python 3.12 warns about threads; these are Arrow's, which starts new ones in the child
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        self._status: int | None = None
        if self._pid == 0:
            _live(parent, theirs, lambda: serve(Link(theirs, self.step)))
        theirs.close()

    def send(self, message: bytes) -> None:
        """Send a message to the child.

        Raises:
            Ended: the child is gone, or has not taken the message within the time of its step.
        """
        self._socket.settimeout(self.step.seconds_allowed)
        try:
            _send(self._socket, message)
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            raise self._end() from None

    def receive(self) -> bytes:
        """Wait for the child's next message, over any number of steps.

        Raises:
            Ended: the child is gone, has exceeded the time of a step, or something else than a message came.
                All messages before that were received.
        """
        while (message := self._message()) is None:
            self._await()
            try:
                piece = self._socket.recv(1 << 20)
            except ConnectionError:
                piece = b""
            if not piece:
                raise self._end()
            self._received += piece
            self._taken += len(piece)
            if self._taken > self.step.sent:
                raise self._broken()
        return message

    def answer(self, read: Callable[[dict[str, Any], list[pa.Table]], Result]) -> Result:
        """Wait for the child's next answer, over any number of steps.

        An operator can write what it likes in place of an answer. So an answer is JSON and Arrow's tables,
        which are read and never run, and `read` raises any exception if they are not what was asked for.

        Raises:
            OperatorError: the child has sent it.
            Ended: as `receive`.
        """
        message = self.receive()
        try:
            told, tables = decode_parcel(message)
            error = told.get("error")
            if error is None:
                return read(told, tables)
        except Exception:
            raise self._broken() from None
        raise OperatorError(str(error))

    def _message(self) -> bytes | None:
        if len(self._received) < _HEADER.size:
            return None
        length, check = _HEADER.unpack_from(self._received)
        end = _HEADER.size + int(length)
        if len(self._received) < end:
            return None
        message = bytes(self._received[_HEADER.size : end])
        if zlib.crc32(message) != check:
            raise self._broken()
        del self._received[:end]
        return message

    def _await(self) -> None:
        """Wait for more bytes. Inside a message the step is over, so its time does not count."""
        since = time.monotonic()
        while not self._poll.poll(1000 * min(_LOOK_SECONDS, max(0.0, self._patience(since)))):
            if self._patience(since) <= 0:
                raise self._broken() if self._taken < self.step.sent else self._silent()
            if self._gone() and not self._poll.poll(0):
                raise self._end()

    def _patience(self, since: float) -> float:
        """The seconds to wait further, after waiting since `since`."""
        in_message = self._taken < self.step.sent
        return since + _MESSAGE_SECONDS - time.monotonic() if in_message else self.step.seconds_left

    def _gone(self, within: float = 0.0) -> bool:
        """True if the child has ended, or ends within `within` seconds."""
        until = time.monotonic() + within
        while self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = status
            elif time.monotonic() >= until:
                return False
            else:
                select.select([], [], [], 0.01)  # only Linux could wait for a process's end with a time limit
        return True

    def _silent(self) -> Ended:
        if self.stop() != -signal.SIGKILL:
            return self._end()  # it was ending by itself; writing a core file takes time
        return Ended(f"the operator did not return within {self.step.seconds_allowed:g} s")

    def _end(self) -> Ended:
        if not self._gone(_LOOK_SECONDS) or (code := self.stop()) == _BROKEN:
            return self._broken()
        how = _signal_text(-code) if code < 0 else f"exit code {code}"
        return Ended(f"the operator's process ended with {how}")

    def _broken(self) -> Ended:
        self.stop()
        why = "the operator wrote into, closed or replaced a descriptor that is not its own"
        return Ended(f"{why}: its process has lost its connection")

    def stop(self) -> int:
        """End the child, if it still runs, and all processes that it has started.

        Returns:
            The exit code of the child, or minus the number of the signal that ended it.
        """
        self._socket.close()
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)  # has no effect on a child that is already ending
        with suppress(ProcessLookupError, PermissionError):  # there are no such processes, or they have ended
            os.killpg(self._pid, signal.SIGKILL)
        if self._status is None:
            _, self._status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(self._status)


def _send(end: socket.socket, message: bytes) -> None:
    end.sendall(_HEADER.pack(len(message), zlib.crc32(message)))
    end.sendall(message)


def _signal_text(number: int) -> str:
    """The text for a signal, with its name if it has one."""
    name = next((known.name for known in signal.Signals if known == number), None)
    return f"signal {number}" if name is None else f"signal {number} ({name})"


def _live(parent: int, theirs: socket.socket, serve: Callable[[], None]) -> None:
    """Run the child. It never returns, because its callers belong to the parent."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles ctrl-C
        os.setpgid(0, 0)  # a group of its own, so that all that it starts can be ended together
        _end_with(parent)
        _let_go_of_files(theirs.fileno())
        faulthandler.enable(2)  # a crash prints its place; the parent's file for that is closed here
        _end_first()
        serve()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    """Make the child end when the parent ends.

    On other systems than Linux the child ends when the operator has returned and the socket is closed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _let_go_of_files(kept: int) -> None:
    """Replace every open file by the null device, except `kept`, stdout and stderr.

    Spark would wait for a socket that is still open here. Closing is not enough: the number would be given to
    another file, and the object that still owns the number would close that file.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/dev/fd"):
        file = int(name)
        if file not in (1, 2, kept, nothing):
            with suppress(OSError):  # the descriptor that listed the directory is closed already
                os.fstat(file)
                os.dup2(nothing, file, inheritable=False)
    os.dup2(nothing, 0)


def _end_first() -> None:
    """Let Linux end this process before Spark's when memory runs out."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
