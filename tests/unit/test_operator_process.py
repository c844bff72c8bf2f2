"""The process that runs Python operators: what ends or stops it costs one selection, and its neighbours nothing."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import sift
from spark_pace.core.operate.operator import decode_result, operate
from spark_pace.core.operate.python_operator import Span, Spans, call_here
from spark_pace.core.order.order import OrderSpec, Progress
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import OperatorError
from spark_pace.rules import load_rules
from spark_pace.spark.stages.child import Child, Link
from spark_pace.spark.stages.operator_process import OperatorProcess

TIMEOUT_US = 1_000_000
NEVER_US = 60_000_000
HERE = "tests.unit.test_operator_process"
RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - name: windows
    span: {every: 1 events, size: 1 events}
    operator: OPERATOR
    emit: {n: BIGINT, label: STRING}
"""
called: list[int] = []


@pytest.fixture
def process() -> Iterator[OperatorProcess]:
    process = OperatorProcess()
    yield process
    process.stop()


def rule_of(folder: Path, operator: str) -> Rule:
    path = folder / "rules.yaml"
    path.write_text(
        RULES.replace("OPERATOR", operator if ":" in operator else f"{HERE}:{operator}"), encoding="utf-8"
    )
    return load_rules(path)[0]


def spans(folder: Path, operator: str, values: list[int]) -> Spans:
    """A selection for each value."""
    count = len(values)
    events = pa.table(
        {
            "time": pa.array(np.arange(count) * 1_000_000).view(pa.timestamp("us")),
            "x": pa.array(values, pa.int64()),
        }
    )
    start = np.arange(count)
    return Spans(rule_of(folder, operator), events, None, start, start + 1, start + 100, np.full(count, True))


Answer = tuple[list[dict[str, Any]], dict[int, str]]


def answer(process: OperatorProcess, asked: Spans, timeout_us: int = NEVER_US) -> Answer:
    """The rows of all spans, and the last lines of the reasons for having none."""
    rows: list[dict[str, Any]] = []
    counts: list[int] = []
    failed: dict[int, str] = {}
    for answers in process.call(asked, timeout_us):
        failed |= {
            len(counts) + place: reason.strip().splitlines()[-1] for place, reason in answers.failed.items()
        }
        counts += answers.counts
        rows += answers.rows.to_pylist()
    assert len(counts) == len(asked)
    return rows, failed


def first(span: Span) -> int:
    return int(span.opening["x"])


def doubled(span: Span) -> Iterator[dict[str, Any]]:
    called.append(first(span))
    yield {"n": 2 * first(span), "label": f"{os.getpid()} {len(called)}"}


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
    rows, failed = answer(process, spans(tmp_path, "poisoned", [10, 11, poison, 12, 13]), TIMEOUT_US)
    assert failed == {2: REASONS[poison]}
    assert [row["n"] for row in rows] == [10, 11, 12, 13]


def test_neighbours_of_all_kinds_of_poison_are_exact_and_in_order(
    tmp_path: Path, process: OperatorProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    values = [5, 5, 20, 1, 2, 21, 3, 4, 6, 22, 23, 5]
    rows, failed = answer(process, spans(tmp_path, "poisoned", values), TIMEOUT_US)
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
    rows, failed = answer(process, spans(tmp_path, "at_second_attempt", [10, 1, 11, 2]))
    assert failed == {}
    assert [row["n"] for row in rows] == [10, 1, 11, 2]
    called = [(tmp_path / f"{100 + place}.txt").read_text() for place in range(4)]
    assert called == ["!!"] * 4  # what the process had not handed on is asked for again, once


def test_one_process_serves_all_lanes(tmp_path: Path, process: OperatorProcess) -> None:
    labels = [
        row["label"] for _ in range(3) for row in answer(process, spans(tmp_path, "doubled", [10, 11]))[0]
    ]
    assert len({label.split()[0] for label in labels}) == 1
    assert [int(label.split()[1]) for label in labels] == [1, 2, 3, 4, 5, 6]
    assert labels[0].split()[0] != str(os.getpid())
    assert called == []


def test_a_process_that_was_killed_between_two_lanes_costs_nothing(
    tmp_path: Path, process: OperatorProcess
) -> None:
    rows, _ = answer(process, spans(tmp_path, "doubled", [1]))
    os.kill(int(rows[0]["label"].split()[0]), signal.SIGKILL)
    rows, failed = answer(process, spans(tmp_path, "doubled", [2, 3]))
    assert ([row["n"] for row in rows], failed) == ([4, 6], {})


def talkative(span: Span) -> Iterator[dict[str, Any]]:
    print("hello from", first(span))
    print(f"input: {os.read(0, 10)!r}", file=sys.stderr)
    yield {"n": first(span)}


PRINTING = f"""
import sys
from pathlib import Path
from {HERE} import answer, spans
from spark_pace.spark.stages.operator_process import OperatorProcess
print("waits to be written", end=" ")
process = OperatorProcess()
rows, failed = answer(process, spans(Path(sys.argv[1]), "talkative", [1, 2]))
assert ([row["n"] for row in rows], failed) == ([1, 2], {{}})
process.stop()
"""


def test_what_an_operator_prints_stays_out_of_the_results(tmp_path: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PRINTING, str(tmp_path)],
        input="for the parent",
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == "waits to be written hello from 1\nhello from 2\n"
    assert printed.stderr == "input: b''\ninput: b''\n"


def huge(span: Span) -> pa.Table:
    return pa.table(
        {
            "n": np.arange(1_000_000),
            "label": pa.array(["x" * 50]).take(pa.array(np.zeros(1_000_000, np.int64))),
        }
    )


def test_results_of_many_megabytes_cross(tmp_path: Path, process: OperatorProcess) -> None:
    sizes = [
        (answers.rows.num_rows, answers.counts)
        for answers in process.call(spans(tmp_path, "huge", [1, 2]), NEVER_US)
    ]
    assert sizes == [(1_000_000, (1_000_000,)), (1_000_000, (1_000_000,))]


def much_at_once(link: Link) -> None:
    link.step.begin(0, TIMEOUT_US)
    assert link.receive() == b""
    link.send(b"x" * (64 << 20))


def test_an_answer_is_not_too_late_where_this_process_comes_late_to_read_it() -> None:
    child = Child(much_at_once)
    child.step.begin(0, TIMEOUT_US)
    child.send(b"")
    assert not threading.Event().wait(1.5 * TIMEOUT_US / 1e6)
    assert len(child.receive()) == 64 << 20
    child.stop()


def slice_of_the_events(span: Span) -> pa.Table:
    return pa.table({"n": span.events["x"].combine_chunks()})


def test_many_selections_give_what_the_operator_gives_here(tmp_path: Path, process: OperatorProcess) -> None:
    asked = spans(tmp_path, "slice_of_the_events", list(range(5_000)))
    here = pa.concat_tables([answers.rows for answers in call_here(asked)]).combine_chunks()
    there = list(process.call(asked, NEVER_US))
    assert pa.concat_tables([answers.rows for answers in there]).combine_chunks().equals(here)
    assert sum(len(answers.counts) for answers in there) == 5_000


def with_threads(span: Span) -> Iterator[dict[str, Any]]:
    """Arrow's own threads, which do not survive a fork."""
    table = pa.table({f"c{number}": np.arange(200_000) % 7 for number in range(8)})
    frame = table.to_pandas()
    groups = table.group_by("c0").aggregate([("c1", "sum")])
    yield {"n": int(frame["c1"].sum()) + groups.num_rows}


def test_arrow_works_on_several_threads_after_the_fork(tmp_path: Path, process: OperatorProcess) -> None:
    asked = spans(tmp_path, "with_threads", [1])
    (here,) = call_here(asked)  # now Arrow's threads run here, too
    assert answer(process, asked)[0] == here.rows.to_pylist()


def test_rows_of_a_rule_without_emit_cross(tmp_path: Path, process: OperatorProcess) -> None:
    asked = spans(tmp_path, "doubled", [1, 2])
    (answers,) = process.call(replace(asked, rule=replace(asked.rule, emit=())), NEVER_US)
    assert (answers.counts, answers.rows.column_names) == ((1, 1), [])


def test_an_operator_that_is_not_there_is_named(tmp_path: Path, process: OperatorProcess) -> None:
    with pytest.raises(OperatorError, match=f"operator {HERE}:absent — must be importable"):
        answer(process, spans(tmp_path, "absent", [1]))


def test_a_module_that_ends_the_process_on_import_is_named(
    tmp_path: Path, process: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_on_import.py").write_text("import os\nos._exit(4)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        OperatorError,
        match=r"operator ends_on_import:f — must be .*; got: the operator's process ended with exit code 4\. Mend",
    ):
        answer(process, spans(tmp_path, "ends_on_import:f", [1]))


def test_modules_that_came_after_the_fork_are_found(
    tmp_path: Path, process: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.start()
    (tmp_path / "came_later.py").write_text("def f(span):\n    yield {'n': 7}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert answer(process, spans(tmp_path, "came_later:f", [1]))[0] == [{"n": 7, "label": None}]


def test_answers_that_nobody_waits_for_do_not_reach_the_next_lane(
    tmp_path: Path, process: OperatorProcess
) -> None:
    asked = process.call(spans(tmp_path, "slice_of_the_events", list(range(5_000))), NEVER_US)
    next(asked)
    asked.close()  # type: ignore[attr-defined]
    assert [row["n"] for row in answer(process, spans(tmp_path, "slice_of_the_events", [5]))[0]] == [5]


def open_files(span: Span) -> Iterator[dict[str, Any]]:
    found = []
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            found.append(os.fstat(int(name)))
    yield {
        "n": sum(stat.S_ISSOCK(file.st_mode) for file in found),
        "label": json.dumps([file.st_ino for file in found]),
    }


def test_no_file_of_the_parent_is_open_in_the_process(tmp_path: Path, process: OperatorProcess) -> None:
    with (tmp_path / "open").open("w") as file, socket.socket():
        ((row,), _) = answer(process, spans(tmp_path, "open_files", [1]))
        assert os.fstat(file.fileno()).st_ino not in json.loads(row["label"])
    assert row["n"] == 1


PARENT = f"""
import sys, threading
from pathlib import Path
from {HERE} import spans
from spark_pace.spark.stages.operator_process import OperatorProcess
for answers in OperatorProcess().call(spans(Path(sys.argv[1]), "FUNCTION", [10]), 10**12):
    print(answers.rows["label"][0].as_py().split()[0], flush=True)
threading.Event().wait()
"""


def announced(span: Span) -> Iterator[dict[str, Any]]:
    print(os.getpid(), flush=True)
    threading.Event().wait()
    yield {}


@pytest.mark.parametrize("operator", ["doubled", "announced"])
def test_the_process_ends_with_its_parent(tmp_path: Path, operator: str) -> None:
    """Idle or at work: the pipe ends only when the last of the two has ended."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.replace("FUNCTION", operator), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGINT)  # is not heard
        os.kill(child, 0)
        parent.kill()
        assert parent.communicate(timeout=20) == ("", None)


def test_poison_is_handed_on_with_its_events_and_position(
    tmp_path: Path, process: OperatorProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = build_plan([rule_of(tmp_path, "poisoned")], order=OrderSpec(), operator_timeout_us=TIMEOUT_US)
    values = [10, 5, 11, 3]
    events = pa.table({
        "@time": pa.array(range(4), pa.int64()),
        "@source": pa.array(["s"] * 4).dictionary_encode(),
        "@offset": pa.array([7, 8, 9, 10], pa.int64()),
        "time": pa.array(range(4), pa.int64()).view(pa.timestamp("us")),
        "x": pa.array(values, pa.int64()),
    })  # fmt: skip
    splitter = SlotSplitter(plan, 0)
    frames = [frame for _, frame in pack(plan, sift(plan, events, splitter.frontier_us).events)]
    (lane,) = splitter.step(frames, Progress(3, finish=True)).lanes
    result = decode_result(operate(plan, lane, lambda asked: process.call(asked, plan.operator_timeout_us)))
    assert result.matches["n"].to_pylist() == [10, 11]
    assert [
        (row["selection_id"], row["source"], row["offset"], row["reason"])
        for row in result.failed.to_pylist()
    ] == [
        (1, "s", 8, REASONS[5]),
        (3, "s", 10, REASONS[3]),
    ]
    assert json.loads(result.failed["raw"][0].as_py()) == {"time": "1970-01-01 00:00:00.000001", "x": 5}
