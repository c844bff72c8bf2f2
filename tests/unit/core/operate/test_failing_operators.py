"""Python operators that fail, each in its way: a failure costs one selection, and its neighbours nothing."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.operate.python_operator import Span
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.spark.stages.operator_process import OperatorProcess
from tests.support.drive import operate
from tests.support.operator_process import answer, first, rule_of, spans

TIMEOUT_US = 1_000_000


def poisoned(span: Span) -> Iterator[dict[str, Any]]:
    """Fails on 1 to 8, each in its way."""
    ways = {
        1: lambda: 1 // 0,
        2: lambda: threading.Event().wait(),
        3: lambda: os._exit(3),
        4: lambda: os.kill(os.getpid(), signal.SIGKILL),
        5: lambda: ctypes.string_at(0),
        6: lambda: sys.exit(6),
        7: lambda: os.kill(os.getpid(), signal.SIGRTMIN + 6),
        8: lambda: (_ for _ in ()).throw(ValueError("no \udcff")),
    }
    ways.get(first(span), lambda: None)()
    yield {"n": first(span)}


REASONS = {
    1: "ZeroDivisionError: integer division or modulo by zero",
    2: "the operator did not return within 1 s",
    3: "the operator's process ended with exit code 3",
    4: "the operator's process ended with signal 9 (SIGKILL)",
    5: "the operator's process ended with signal 11 (SIGSEGV)",
    6: "SystemExit: 6",
    7: "the operator's process ended with signal 40",
    8: r"ValueError: no \udcff",
}


@pytest.mark.parametrize("poison", REASONS)
def test_poison_costs_its_selection_and_says_how(
    tmp_path: Path, process: OperatorProcess, poison: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rows, failed = answer(process, spans(tmp_path, poisoned, [10, 11, poison, 12, 13]), TIMEOUT_US)
    assert failed == {2: REASONS[poison]}
    assert [row["n"] for row in rows] == [10, 11, 12, 13]


def test_neighbours_of_all_kinds_of_poison_are_exact_and_in_order(
    tmp_path: Path, process: OperatorProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    values = [5, 5, 20, 1, 2, 21, 3, 4, 6, 22, 23, 5]
    rows, failed = answer(process, spans(tmp_path, poisoned, values), TIMEOUT_US)
    assert failed == {place: REASONS[value] for place, value in enumerate(values) if value < 10}
    assert [row["n"] for row in rows] == [20, 21, 22, 23]


def at_second_attempt(span: Span) -> Iterator[dict[str, Any]]:
    """Dies at the first attempt on each selection, which a file remembers."""
    folder = Path(os.environ["POISON_FOLDER"])
    attempts = folder / f"{span.selection_id}.txt"
    with attempts.open("a") as file:
        file.write("!")
    if first(span) < 10 and len(attempts.read_text()) == 1:
        os._exit(1)
    yield {"n": first(span)}


def test_a_selection_that_fails_once_is_exact(
    tmp_path: Path, process: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POISON_FOLDER", str(tmp_path))
    rows, failed = answer(process, spans(tmp_path, at_second_attempt, [10, 1, 11, 2]))
    assert failed == {}
    assert [row["n"] for row in rows] == [10, 1, 11, 2]
    called = [(tmp_path / f"{100 + place}.txt").read_text() for place in range(4)]
    assert called == ["!!"] * 4  # what the process had not handed on is asked for again, once


def test_poison_is_handed_on_with_its_events_and_position(
    tmp_path: Path, process: OperatorProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = build_plan([rule_of(tmp_path, poisoned)], order=OrderSpec(), operator_timeout_us=TIMEOUT_US)
    values = [10, 5, 11, 3]
    events = pa.table({
        "@time": pa.array(range(4), pa.int64()),
        "@source": pa.array(["s"] * 4).dictionary_encode(),
        "@offset": pa.array([7, 8, 9, 10], pa.int64()),
        "time": pa.array(range(4), pa.int64()).view(pa.timestamp("us")),
        "x": pa.array(values, pa.int64()),
    })  # fmt: skip
    splitter = SlotSplitter(plan, 0)
    frames = [frame for _, frame in pack(plan, sift(plan, events, Past(splitter.frontier_us)).events)]
    (lane,) = splitter.step(frames, Progress(3, finish=True)).lanes
    result = decode_result(operate(plan, lane, lambda asked: process.call(asked, plan.operator_timeout_us)))
    assert result.matches["n"].to_pylist() == [10, 11]
    failed = result.failed.select(["selection_id", "source", "offset", "reason"]).to_pylist()
    assert [tuple(row.values()) for row in failed] == [(1, "s", 8, REASONS[5]), (3, "s", 10, REASONS[3])]
    assert json.loads(result.failed["raw"][0].as_py()) == {"time": "1970-01-01 00:00:00.000001", "x": 5}
