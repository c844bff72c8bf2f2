"""Operators that attack their process: each costs its own selection at most, and ends in time."""

from __future__ import annotations

import builtins
import ctypes
import gc
import os
import pickle
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_pace.core.frames import encode_parcel
from spark_pace.core.operate.python_operator import Span
from spark_pace.spark.stages.operator_child import Link
from spark_pace.spark.stages.operator_process import OperatorProcess
from tests.support.operator_process import answer, first, spans

HERE = "tests.unit.spark.stages.test_hostile_operators"
TIMEOUT_US = 1_500_000
BUSY_MACHINE_SECONDS = 60
MOST_FILES = 1024  # the process is a copy of one that may have many open
BROKEN = (
    "the operator wrote into, closed or replaced a descriptor that is not its own: "
    "its process has lost its connection"
)
SILENT = "the operator did not return within 1.5 s"
ENDED = "the operator's process ended with "
PERHAPS = ""  # what it leaves behind may hit itself first, or nobody


def each_descriptor(act: Callable[[int], Any], first: int = 3) -> None:
    for number in range(first, MOST_FILES):
        with suppress(OSError):
            act(number)


def write_everywhere() -> None:
    each_descriptor(lambda number: os.write(number, b"\xff" * 100))


def read_everywhere() -> None:
    each_descriptor(lambda number: os.read(number, 1 << 20))


def let_none_wait() -> None:
    each_descriptor(lambda number: os.set_blocking(number, False))


def close_all() -> None:
    os.closerange(3, MOST_FILES)


def ignore_signals() -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def end() -> None:
    os._exit(3)


def replace_all() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    each_descriptor(lambda number: os.fstat(number) and os.dup2(nothing, number))


def trickle() -> None:
    for _ in range(100):
        each_descriptor(lambda number: os.write(number, b"\0"))
        threading.Event().wait(0.1)


def hang() -> None:
    threading.Event().wait(20)


def in_a_thread(act: Callable[[], Any]) -> None:
    """Act again and again while the neighbours are at work."""

    def later() -> None:
        while not threading.Event().wait(0.02):
            act()

    threading.Thread(target=later, daemon=True).start()


def fork_and(in_copy: Callable[[], Any], here: Callable[[], Any] = lambda: None, leave: bool = False) -> None:
    if os.fork() == 0:
        if leave:
            os.setsid()
        in_copy()
        os._exit(0)
    here()


def interrupt(number: int, frame: object) -> None:
    raise TimeoutError("an alarm that nobody set")


def set_alarms() -> None:
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)


def lose_the_directory() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


def shut_down() -> None:
    for number in range(3, MOST_FILES):
        with suppress(OSError):
            socket.socket(fileno=os.dup(number)).shutdown(socket.SHUT_RDWR)


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


class OfItsOwn(BaseException):
    pass


def limit(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


class Bomb:
    """Runs in whatever process unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (7,)


def answer_with(*messages: bytes) -> None:
    """Answer in place of the process, over its own connection."""
    link = next(one for one in gc.get_objects() if isinstance(one, Link))
    for message in messages:
        link.send(message)


def one_row(**names: pa.DataType) -> pa.Table:
    return pa.table({name: pa.array([None], kind) for name, kind in names.items()})


TOLD = {"counts": [1], "failed": {}, "seconds": [0.0]}
ROW = {"n": pa.int64(), "label": pa.string()}

# what it does, and how the reason in quarantine begins; None: it returns, and its row counts
WAYS: dict[str, tuple[Callable[[], Any], str | None]] = {
    "writes into every descriptor": (write_everywhere, BROKEN),
    "writes into every descriptor and hangs": (lambda: (write_everywhere(), hang()), BROKEN),
    "writes a byte now and then": (trickle, BROKEN),
    "closes every descriptor": (lambda: os.closerange(0, MOST_FILES), BROKEN),
    "closes every descriptor and hangs": (lambda: (os.closerange(0, MOST_FILES), hang()), BROKEN),
    "puts another file in the place of each": (replace_all, BROKEN),
    "shuts the connection down": (shut_down, BROKEN),
    "answers with a pickle that runs": (lambda: answer_with(pickle.dumps(Bomb())), BROKEN),
    "answers with nothing": (lambda: answer_with(b""), BROKEN),
    "answers with a list": (lambda: answer_with(b"\0\0\0\2[]"), BROKEN),
    "answers with other columns": (lambda: answer_with(encode_parcel(TOLD, [one_row(n=pa.int64())])), BROKEN),
    "answers with more rows than it says": (
        lambda: answer_with(encode_parcel({**TOLD, "counts": [0]}, [one_row(**ROW)])), BROKEN),
    "answers for more selections than there are": (
        lambda: answer_with(encode_parcel({**TOLD, "counts": [1, *[0] * 9]}, [one_row(**ROW)])), BROKEN),
    "answers for no selection": (
        lambda: answer_with(encode_parcel({**TOLD, "counts": []}, [one_row(**ROW).slice(1)])), BROKEN),
    "lets descriptors not wait": (let_none_wait, PERHAPS),
    "forks and returns in both": (os.fork, None),
    "forks and raises in the copy": (lambda: fork_and(lambda: 1 // 0), None),
    "leaves a copy behind": (lambda: fork_and(hang), None),
    "leaves a copy behind and ends": (lambda: fork_and(hang, end), ENDED + "exit code 3"),
    "leaves a daemon behind and ends": (lambda: fork_and(hang, end, leave=True), ENDED + "exit code 3"),
    "leaves a daemon behind that writes": (lambda: fork_and(trickle, leave=True), PERHAPS),
    "a thread closes every descriptor later": (lambda: in_a_thread(close_all), PERHAPS),
    "a thread writes into every descriptor later": (lambda: in_a_thread(write_everywhere), PERHAPS),
    "a thread takes what comes": (lambda: in_a_thread(read_everywhere), PERHAPS),
    "a thread ends the process later": (lambda: in_a_thread(lambda: os._exit(4)), PERHAPS),
    "ends its process group": (lambda: os.kill(0, signal.SIGTERM), ENDED + "signal 15 (SIGTERM)"),
    "stops itself": (lambda: os.kill(os.getpid(), signal.SIGSTOP), SILENT),
    "ignores signals and hangs": (lambda: (ignore_signals(), hang()), SILENT),
    "leaves alarms behind": (set_alarms, PERHAPS),
    "leaves a last alarm behind": (lambda: signal.setitimer(signal.ITIMER_REAL, 0.01), PERHAPS),
    "loses its directory": (lose_the_directory, None),
    "takes all files from itself": (limit(resource.RLIMIT_NOFILE, 0), PERHAPS),
    "takes all memory from itself": (limit(resource.RLIMIT_AS, 1 << 20), PERHAPS),
    "takes stdout away": (lambda: setattr(sys, "stdout", None), None),
    "closes stdout": (lambda: sys.stdout.close(), None),
    "takes a function from Python": (lambda: setattr(builtins, "print", None), None),
    "allows no recursion": (lambda: sys.setrecursionlimit(60), PERHAPS),
    "raises ZeroDivisionError": (lambda: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
    "raises a text that is no UTF-8": (raising(ValueError("no \udcff")), r"ValueError: no \udcff"),
    "hangs": (hang, SILENT),
    "ends": (end, ENDED + "exit code 3"),
    "is killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), ENDED + "signal 9 (SIGKILL)"),
    "crashes": (lambda: ctypes.string_at(0), ENDED + "signal 11 (SIGSEGV)"),
    "ends by a signal": (lambda: os.kill(os.getpid(), signal.SIGRTMIN + 6), ENDED + "signal 40"),
    "raises KeyboardInterrupt": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    "raises SystemExit": (raising(SystemExit("bye")), "SystemExit: bye"),
    "raises GeneratorExit": (raising(GeneratorExit("out")), "GeneratorExit: out"),
    "raises an exception of its own": (raising(OfItsOwn("mine")), f"{HERE}.OfItsOwn: mine"),
    "raises RecursionError": (lambda: recurse(0), "RecursionError: maximum recursion depth exceeded"),
    "raises MemoryError": (raising(MemoryError("full")), "MemoryError: full"),
}  # fmt: skip
NAMES = list(WAYS)
LIKE_ANOTHER = (
    *("writes into every descriptor and hangs", "closes every descriptor and hangs", "stops itself"),
    *("leaves a daemon behind and ends", "raises SystemExit", "raises GeneratorExit"),
)


def recurse(depth: int) -> int:
    return recurse(depth + 1) + 1


def hostile(span: Span) -> Iterator[dict[str, Any]]:
    """A number below 1,000 names a way to attack.

    Other numbers need what the ways take away: a file, stdout, a directory, memory and some time.
    """
    if first(span) < 1000:
        WAYS[NAMES[first(span)]][0]()
    else:
        threading.Event().wait(0.03)
        print("here", flush=True)
        assert os.getcwd()
        with tempfile.TemporaryFile() as file:
            file.write(bytearray(32 << 20)[:1])
    yield {"n": first(span)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LIKE_ANOTHER)) for name in NAMES]
)
def test_a_hostile_operator_costs_its_own_selection_at_the_most(
    process: OperatorProcess, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its neighbours' answers wait unsent, or they come after it; all is done within two time limits."""
    values = [1000, 1001, NAMES.index(name), 1002, 1003]
    begun = time.monotonic()
    rows, failed = answer(process, spans(hostile, values), TIMEOUT_US)
    seconds = time.monotonic() - begun
    reason = WAYS[name][1]
    if reason != PERHAPS:
        assert list(failed) == ([] if reason is None else [2])
        assert failed.get(2, "").startswith(reason or "")
    assert set(failed) <= {2}
    assert [row["n"] for row in rows] == [value for place, value in enumerate(values) if place not in failed]
    assert seconds < 2 * (TIMEOUT_US / 1e6 + 2) + BUSY_MACHINE_SECONDS


def at_second_attempt(span: Span) -> Iterator[dict[str, Any]]:
    """Dies at the first attempt on each selection, which a file remembers."""
    attempts = Path(os.environ["POISON_FOLDER"]) / f"{span.selection_id}.txt"
    with attempts.open("a") as file:
        file.write("!")
    if first(span) < 10 and len(attempts.read_text()) == 1:
        os._exit(1)
    yield {"n": first(span)}


def test_a_selection_that_fails_once_is_exact(
    tmp_path: Path, process: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POISON_FOLDER", str(tmp_path))
    rows, failed = answer(process, spans(at_second_attempt, [10, 1, 11, 2]))
    assert failed == {}
    assert [row["n"] for row in rows] == [10, 1, 11, 2]
    called = [(tmp_path / f"{100 + place}.txt").read_text() for place in range(4)]
    assert called == ["!!"] * 4  # what the process had not handed on is asked for again, once


def after_many(span: Span) -> Iterator[dict[str, Any]]:
    """0 fails and says where, 1 takes all files from its process as well; the others need one."""
    if first(span) < 2:
        if first(span):
            limit(resource.RLIMIT_NOFILE, 0)()
        raise ValueError(f"process {os.getpid()}")
    with tempfile.TemporaryFile():
        yield {"n": first(span)}


def test_the_neighbours_of_a_hostile_selection_are_safe_behind_many_that_fail(
    process: OperatorProcess,
) -> None:
    innocent = list(range(10, 20))
    rows, failed = answer(process, spans(after_many, [0] * 20 + [1, *innocent, 0, 1, *innocent]))
    assert list(failed) == [*range(21), 31, 32]
    assert [row["n"] for row in rows] == innocent * 2


@pytest.mark.parametrize(("failures", "most"), [(300, 100), pytest.param(1000, 130, marks=pytest.mark.long)])
def test_a_lane_of_failures_starts_few_processes_and_costs_a_neighbour_little(
    process: OperatorProcess, failures: int, most: int
) -> None:
    innocent = list(range(10, 310))
    rows, failed = answer(process, spans(after_many, [0] * (failures - 1) + [1, *innocent]))
    assert len(set(failed.values())) < most  # processes
    assert list(failed) == list(range(len(failed)))
    assert failures <= len(failed) < failures + failures // 20
    assert [row["n"] for row in rows] == innocent[len(failed) - failures :]
