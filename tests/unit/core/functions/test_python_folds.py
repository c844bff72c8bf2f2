"""Folds by Python functions: what they may return, and what is said of those that fail."""

from __future__ import annotations

import ctypes
import enum
import gc
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import replay
from spark_pace.core import python_functions
from spark_pace.core.frames import encode_parcel
from spark_pace.core.python_functions import FoldRuns, Runs, fold_here
from spark_pace.errors import OperatorError
from spark_pace.rules import load_rules
from spark_pace.spark.stages.operator_child import Link
from spark_pace.spark.stages.operator_process import OperatorProcess
from tests.support.documents import fences
from tests.unit.project.test_docs import ROOT

HERE = "tests.unit.core.functions.test_python_folds"
TIMEOUT_US = 1_000_000
RULES = """
events: {schema: "time TIMESTAMP, k STRING, x BIGINT", event_time: time}
rules:
  - name: folds
    partition_by: [k]
    fold: FUNCTION
    emit: {n: BIGINT, label: STRING}
"""
Event = dict[str, Any]


@pytest.fixture
def process() -> Iterator[OperatorProcess]:
    process = OperatorProcess()
    yield process
    process.stop()


def runs(function: str, values: list[int], states: tuple[str | None, ...] = (None,)) -> Runs:
    """Runs of equal length, one for each state, of the keys a, b, and so on."""
    keys = [f'{{"k":"{"abcdef"[number]}"}}' for number in range(len(states))]
    bounds = np.arange(len(states) + 1) * (len(values) // len(states))
    times = pa.array(np.arange(len(values)) * 1_000_000).view(pa.timestamp("us"))
    events = pa.table({"time": times, "k": ["a"] * len(values), "x": pa.array(values, pa.int64())})
    return Runs(
        load_rules(RULES.replace("FUNCTION", f"{HERE}:{function}"))[0],
        events,
        np.arange(len(values)) + 100,
        bounds,
        keys,
        states,
    )


def added(state: Any, event: Event) -> tuple[Any, list[Event]]:
    total = (state or 0) + event["x"]
    return total, [{"n": total, "label": "even"}] if total % 2 == 0 else []


def added_of_table(state: Any, events: pa.Table) -> tuple[Any, pa.Table]:
    totals = np.cumsum(events["x"].to_numpy()) + (state or 0)
    even = np.flatnonzero(totals % 2 == 0)
    return int(totals[-1]), pa.table({"row": even, "n": totals[even], "label": ["even"] * len(even)})


added_of_table.takes_table = True  # type: ignore[attr-defined]


@pytest.mark.parametrize("function", ["added", "added_of_table"])
@pytest.mark.parametrize("here", [True, False], ids=["here", "in a process"])
def test_a_run_goes_on_from_its_state(process: OperatorProcess, function: str, *, here: bool) -> None:
    asked = runs(function, [1, 1, 4, 2, 1, 1], ("1", None))
    folded = fold_here(asked) if here else process.fold(asked, TIMEOUT_US)
    assert folded.rows.tolist() == [0, 3, 5]
    assert folded.fields.to_pylist() == [{"n": n, "label": "even"} for n in (2, 2, 4)]
    assert folded.states == ["7", "4"]


def kept(state: Any, event: Event) -> tuple[Any, list[Event]]:
    return STATES[event["x"]], []


class Text(str):
    __slots__ = ()


class Colour(enum.IntEnum):
    RED = 1


STATES: dict[int, Any] = {
    0: {"a": [1, 2.5, None, True, "ü", {"b": []}], "": -0.0, "big": 2**70},
    1: (1, 2),
    2: {1: "a"},
    3: {"a": np.float64(1)},
    4: Text("a"),
    5: {1, 2},
    6: Colour.RED,
    7: "\ud83d\ude00",
    8: {"a": pa.scalar(1)},
    9: "x" * (17 << 20),
}
STATES[10] = [STATES]
for _ in range(150):
    STATES[10] = [STATES[10]]
STATES[11] = [1]
STATES[11].append(STATES[11])
REFUSED = {
    1: "TypeError: the state must be made of dict, list, str, int, float, bool and None; got builtins.tuple",
    2: "TypeError: the keys in a state must be str; got int",
    3: "TypeError: the state must be made of dict, list, str, int, float, bool and None; got numpy.float64",
    4: f"the state must be made of dict, list, str, int, float, bool and None; got {HERE}.Text",
    5: "TypeError: the state must be made of dict, list, str, int, float, bool and None; got builtins.set",
    6: f"the state must be made of dict, list, str, int, float, bool and None; got {HERE}.Colour",
    7: "UnicodeEncodeError: 'utf-8' codec can't encode characters in position 0-1: surrogates not allowed",
    8: "the state must be made of dict, list, str, int, float, bool and None; got pyarrow.lib.Int64Scalar",
    9: "ValueError: the state must be at most 16 MiB; got 17,825,794 bytes",
    10: "",
    11: "ValueError: the state must have each list in one place; got one in two",
}


def test_a_state_comes_back_as_it_was() -> None:
    (text,) = fold_here(runs("kept", [0])).states
    assert text == '{"a":[1,2.5,null,true,"ü",{"b":[]}],"":-0.0,"big":1180591620717411303424}'


@pytest.mark.parametrize("number", REFUSED)
def test_a_state_that_would_not_come_back_is_refused(number: int) -> None:
    with pytest.raises(OperatorError) as caught:
        fold_here(runs("kept", [0, number]))
    message = str(caught.value)
    assert message.startswith(f'rule folds key {{"k":"a"}} seq 101 — its fold {HERE}:kept must return; got ')
    assert REFUSED[number] in message
    assert message.endswith(". No state has changed: mend the function and start again.")
    assert "\n" not in message


def poisoned(state: Any, event: Event) -> Any:
    """Fails on 1 and more, each in its way."""
    ways: dict[int, Callable[[], Any]] = {
        1: lambda: 1 // 0,
        2: lambda: threading.Event().wait(),
        3: lambda: os._exit(3),
        4: lambda: os.kill(os.getpid(), signal.SIGKILL),
        5: lambda: ctypes.string_at(0),
        6: lambda: sys.exit(6),
        7: lambda: os.closerange(3, 1024),
    }
    ways.get(event["x"], lambda: None)()
    given = {8: None, 9: (1,), 10: (1, None), 11: (1, [{"n": "7"}]), 12: (1, [5])}
    return given.get(event["x"], (state, [{"n": event["x"]}]))


REASONS = {
    1: "ZeroDivisionError: integer division or modulo by zero",
    2: "the operator did not return within 1 s",
    3: "the operator's process ended with exit code 3",
    4: "the operator's process ended with signal 9 (SIGKILL)",
    5: "the operator's process ended with signal 11 (SIGSEGV)",
    6: "SystemExit: 6",
    7: "its process has lost its connection",
    8: "TypeError: cannot unpack non-iterable NoneType object",
    9: "ValueError: not enough values to unpack (expected 2, got 1)",
    10: "TypeError: 'NoneType' object is not iterable",
    11: "TypeError: emit n — must be BIGINT; got string",
    12: "TypeError: 'int' object is not iterable",
}


@pytest.mark.parametrize("number", REASONS)
def test_a_failure_is_told_with_its_event_and_the_next_batch_has_a_process_again(
    process: OperatorProcess, number: int
) -> None:
    with pytest.raises(OperatorError) as caught:
        process.fold(runs("poisoned", [0, 20, 0, number], (None, None)), TIMEOUT_US)
    message = str(caught.value)
    must = f"its fold {HERE}:poisoned must return; got "
    assert message.startswith(f'rule folds key {{"k":"b"}} seq 103 — {must}')
    assert REASONS[number] in message and "\n" not in message
    assert process.fold(runs("poisoned", [0]), TIMEOUT_US).rows.tolist() == [0]


def spoils(state: Any, event: Event) -> tuple[Any, list[Event]]:
    """Leaves a thread behind that ends the process a little later; in a new process it waits for long."""
    if event["x"] == 1:
        threading.Timer(0.2, os._exit, [9]).start()
    if event["x"] == 2:
        threading.Event().wait(0.5)
    return None, [{"n": event["x"]}]


def test_what_an_earlier_batch_has_left_behind_does_not_fail_the_next(process: OperatorProcess) -> None:
    assert process.fold(runs("spoils", [1]), TIMEOUT_US).states == ["null"]
    assert process.fold(runs("spoils", [2]), TIMEOUT_US).fields["n"].to_pylist() == [2]


class Bomb:
    """Runs in whatever process unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (7,)


ROWS, NO_ROWS = pa.table({"n": [1], "label": ["a"]}), pa.table({"n": [1], "label": ["a"]}).slice(1)
IN_PLACE_OF_ANSWERS = {
    "a pickle that runs": pickle.dumps(Bomb()),
    "too few states": encode_parcel({"states": []}, [NO_ROWS, pa.table({"row": [0]}).slice(1)]),
    "an event that is not there": encode_parcel({"states": ["1"]}, [ROWS, pa.table({"row": [1]})]),
    "other columns": encode_parcel({"states": ["1"]}, [ROWS.select(["n"]), pa.table({"row": [0]})]),
}


def answers_itself(state: Any, event: Event) -> tuple[Any, list[Event]]:
    link = next(one for one in gc.get_objects() if isinstance(one, Link))
    link.send([*IN_PLACE_OF_ANSWERS.values()][event["x"]])
    return state, []


@pytest.mark.parametrize("number", range(len(IN_PLACE_OF_ANSWERS)), ids=IN_PLACE_OF_ANSWERS)
def test_what_a_function_sends_in_place_of_an_answer_is_not_run_or_taken(
    process: OperatorProcess, number: int
) -> None:
    with pytest.raises(OperatorError, match=r"must return; got .*: its process has lost its connection"):
        process.fold(runs("answers_itself", [number]), 60 * TIMEOUT_US)  # nothing is to time out


def tables(state: Any, events: pa.Table) -> tuple[Any, Any]:
    given = {
        0: pa.table({"row": [0, 1], "n": [1, 2]}),
        1: [{"row": 0}],
        2: pa.table({"n": [1]}),
        3: pa.table({"row": [2]}),
        4: pa.table({"row": [1, 0]}),
        5: pa.table({"row": [0.0]}),
        6: pa.table({"row": [-1]}),
        7: pa.table({"row": pa.array([None], pa.int64())}),
        8: pa.table({"row": [0], "n": ["a"]}),
        9: pa.table({"row": [], "n": []}),
    }
    return None, given[events["x"][0].as_py()]


tables.takes_table = True  # type: ignore[attr-defined]
PLACES = (
    'ValueError: the column "row" must be ascending whole numbers from 0 to 1, the places of events; '
    "got others"
)
OF_TABLES = {
    1: "TypeError: the rows must be a pyarrow.Table; got list",
    2: 'ValueError: the table must have a column "row"; got n',
    **dict.fromkeys(range(3, 8), PLACES),
    8: "TypeError: emit n — must be BIGINT; got string",
}


@pytest.mark.parametrize("number", OF_TABLES)
def test_a_table_says_which_event_causes_each_row(number: int) -> None:
    with pytest.raises(OperatorError) as caught:
        fold_here(runs("tables", [9, 0, number, 0], (None, None)))  # 9: no rows, so no types
    assert f"seq 102 — its fold {HERE}:tables must return; got {OF_TABLES[number]}. " in str(caught.value)


def test_a_function_that_is_not_there_is_told(process: OperatorProcess) -> None:
    for call in (fold_here, lambda asked: process.fold(asked, TIMEOUT_US)):
        fold: FoldRuns = call
        with pytest.raises(OperatorError, match=f"operator {HERE}:missing — must be importable"):
            fold(runs("missing", [0]))


def test_replay_folds_in_its_own_process_and_stops_at_a_failure() -> None:
    asked = runs("poisoned", [0, 20, 30])
    found = replay([asked.rule], asked.events).matches
    assert found["n"].to_pylist() == [0, 20, 30]
    assert found["selection_id"].to_pylist() == [0, 1, 2]
    assert [row[0]["component"] for row in found["events"].to_pylist()] == ["event"] * 3
    with pytest.raises(OperatorError, match=r'key {"k":"a"} seq 1 — .* ZeroDivisionError'):
        replay([asked.rule], runs("poisoned", [0, 1]).events)


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_the_functions_of_the_documents_give_the_same(cut: int) -> None:
    names: dict[str, Any] = {}
    for fence in fences(ROOT / "docs" / "rules" / "spans.md"):
        if "state, event" in fence.text:
            exec(fence.text, names)
    prices, state, expected = [400.0, 500.0, 300.0, -700.0, 501.0, 2.0], None, []
    for price in prices:
        state, rows = names["balance"](state, {"price": price})
        expected += [row["total"] for row in rows]
    state, found = None, []
    for first in range(0, len(prices), cut):
        state, table = names["balances"](state, pa.table({"price": prices[first : first + cut]}))
        found += table["total"].to_pylist()
    assert found == expected == [1200.0, 1001.0, 1003.0]
    assert names["balances"].takes_table


def long_text(state: Any, event: Event) -> tuple[Any, list[Event]]:
    return state, [{"n": event["x"], "label": "x" * 100}]


def long_text_of_table(state: Any, events: pa.Table) -> tuple[Any, pa.Table]:
    rows = range(events.num_rows)
    return state, pa.table({"row": rows, "n": events["x"], "label": ["x" * 100 for _ in rows]})


long_text_of_table.takes_table = True  # type: ignore[attr-defined]


def mixed(state: Any, event: Event) -> tuple[Any, list[Event]]:
    """Rows that are right one by one, but not together: Arrow makes no column of both kinds of numbers."""
    return state, [{"n": event["x"] if event["x"] % 2 else np.uint64(2**63 - 1), "label": None}]


@pytest.mark.parametrize("function", ["long_text", "long_text_of_table"])
def test_which_events_stand_in_a_batch_does_not_decide_whether_rows_are_too_large(
    monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(python_functions, "MOST_ROWS_BYTES", 1_000)
    folded = fold_here(runs(function, list(range(200)), (None, None)))
    assert folded.fields["n"].to_pylist() == list(range(200))
    monkeypatch.setattr(python_functions, "MOST_ROWS_BYTES", 50)
    with pytest.raises(OperatorError, match=r"seq 100 — .* must be at most 0 MiB"):
        fold_here(runs(function, list(range(200)), (None, None)))


def test_rows_of_several_events_need_not_go_together() -> None:
    folded = fold_here(runs("mixed", [1, 2, 3, 4]))
    assert folded.fields["n"].to_pylist() == [1, 2**63 - 1, 3, 2**63 - 1]


def tuple_while_open(state: Any, event: Event) -> tuple[Any, list[Event]]:
    return (1, 2) if event["x"] == 2 else None, []


def alias(state: Any, event: Event) -> tuple[Any, list[Event]]:
    both: list[int] = []
    return {"a": both, "b": both}, []


def half(state: Any, event: Event) -> tuple[Any, list[Event]]:
    return "\ud800" if event["x"] == 2 else None, []


@pytest.mark.parametrize(
    ("function", "got"),
    [("tuple_while_open", "tuple"), ("alias", "one in two"), ("half", "surrogates not allowed")],
)
def test_a_state_is_refused_at_its_event_though_a_later_one_in_the_batch_is_right(
    function: str, got: str
) -> None:
    with pytest.raises(OperatorError, match=got):
        fold_here(runs(function, [1, 2, 3]))


def names(state: Any, event: Event) -> tuple[Any, list[Event]]:
    return state, [{"n": len(event), "label": " ".join(sorted(event))}]


def test_a_function_sees_the_attributes_of_matches_and_nothing_else() -> None:
    rules = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - {name: low, pattern: {sequence: [a: x > 0]}, emit: {y: a.x}}
  - {name: up, from: [low, events], fold: FUNCTION, emit: {n: BIGINT, label: STRING}}
"""
    events = pa.table({"time": pa.array([0], pa.timestamp("us")), "x": [1]})
    found = replay(load_rules(rules.replace("FUNCTION", f"{HERE}:names")), events).matches.to_pylist()
    labels = {row["label"] for row in found if row["rule"] == "up"}
    assert labels == {"matched_at opened_at rule time x y"}
