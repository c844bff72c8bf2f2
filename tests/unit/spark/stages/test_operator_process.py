"""The process that runs Python operators: what it takes and gives back, and when it ends."""

from __future__ import annotations

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

from spark_pace.core.operate.python_operator import Span, call_here
from spark_pace.errors import OperatorError
from spark_pace.spark.stages.operator_child import Child, Link
from spark_pace.spark.stages.operator_process import OperatorProcess
from tests.support.operator_process import NEVER_US, answer, first, spans

TIMEOUT_US = 1_000_000
HERE = "tests.unit.spark.stages.test_operator_process"
called: list[int] = []


def doubled(span: Span) -> Iterator[dict[str, Any]]:
    called.append(first(span))
    yield {"n": 2 * first(span), "label": f"{os.getpid()} {len(called)}"}


def test_one_process_serves_all_lanes(process: OperatorProcess) -> None:
    asked = spans(doubled, [10, 11])
    labels = [row["label"] for _ in range(3) for row in answer(process, asked)[0]]
    assert len({label.split()[0] for label in labels}) == 1
    assert [int(label.split()[1]) for label in labels] == [1, 2, 3, 4, 5, 6]
    assert labels[0].split()[0] != str(os.getpid())
    assert called == []


def lazy(span: Span) -> Iterator[dict[str, Any]]:
    threading.Event().wait(first(span) / 1_000)
    yield {"n": first(span)}


def test_the_answers_say_what_each_selection_took(process: OperatorProcess) -> None:
    answers = list(process.call(spans(lazy, [1, 200, 50]), NEVER_US))
    took = [seconds for piece in answers for seconds in piece.seconds]
    assert len(took) == 3
    assert took[1] >= 0.2 and took[2] >= 0.05
    assert took[0] < took[1]


def test_a_process_that_was_killed_between_two_lanes_costs_nothing(process: OperatorProcess) -> None:
    rows, _ = answer(process, spans(doubled, [1]))
    os.kill(int(rows[0]["label"].split()[0]), signal.SIGKILL)
    rows, failed = answer(process, spans(doubled, [2, 3]))
    assert ([row["n"] for row in rows], failed) == ([4, 6], {})


def talkative(span: Span) -> Iterator[dict[str, Any]]:
    print("hello from", first(span))
    print(f"input: {os.read(0, 10)!r}", file=sys.stderr)
    yield {"n": first(span)}


PRINTING = f"""
from tests.support.operator_process import answer, spans
from spark_pace.spark.stages.operator_process import OperatorProcess
print("waits to be written", end=" ")
process = OperatorProcess()
rows, failed = answer(process, spans("{HERE}:talkative", [1, 2]))
assert ([row["n"] for row in rows], failed) == ([1, 2], {{}})
process.stop()
"""


def test_what_an_operator_prints_stays_out_of_the_results() -> None:
    command = [sys.executable, "-c", PRINTING]
    printed = subprocess.run(command, input="for the parent", capture_output=True, text=True, check=True)
    assert printed.stdout == "waits to be written hello from 1\nhello from 2\n"
    assert printed.stderr == "input: b''\ninput: b''\n"


def huge(span: Span) -> pa.Table:
    label = pa.array(["x" * 50]).take(pa.array(np.zeros(1_000_000, np.int64)))
    return pa.table({"n": np.arange(1_000_000), "label": label})


def test_results_of_many_megabytes_cross(process: OperatorProcess) -> None:
    asked = spans(huge, [1, 2])
    sizes = [(answers.rows.num_rows, answers.counts) for answers in process.call(asked, NEVER_US)]
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


def test_many_selections_give_what_the_operator_gives_here(process: OperatorProcess) -> None:
    asked = spans(slice_of_the_events, list(range(5_000)))
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


def test_arrow_works_on_several_threads_after_the_fork(process: OperatorProcess) -> None:
    asked = spans(with_threads, [1])
    (here,) = call_here(asked)  # now Arrow's threads run here, too
    assert answer(process, asked)[0] == here.rows.to_pylist()


def test_rows_of_a_rule_without_emit_cross(process: OperatorProcess) -> None:
    asked = spans(doubled, [1, 2])
    (answers,) = process.call(replace(asked, rule=replace(asked.rule, emit=())), NEVER_US)
    assert (answers.counts, answers.rows.column_names) == ((1, 1), [])


def test_an_operator_that_is_not_there_is_named(process: OperatorProcess) -> None:
    with pytest.raises(OperatorError, match=f"operator {HERE}:absent — must be importable"):
        answer(process, spans(f"{HERE}:absent", [1]))


def test_a_module_that_ends_the_process_on_import_is_named(
    tmp_path: Path, process: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_on_import.py").write_text("import os\nos._exit(4)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    got = r"the operator's process ended with exit code 4\. Mend"
    with pytest.raises(OperatorError, match=rf"operator ends_on_import:f — must be .*; got: {got}"):
        answer(process, spans("ends_on_import:f", [1]))


def test_modules_that_came_after_the_fork_are_found(
    tmp_path: Path, process: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.start()
    (tmp_path / "came_later.py").write_text("def f(span):\n    yield {'n': 7}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert answer(process, spans("came_later:f", [1]))[0] == [{"n": 7, "label": None}]


def test_answers_that_nobody_waits_for_do_not_reach_the_next_lane(process: OperatorProcess) -> None:
    asked = process.call(spans(slice_of_the_events, list(range(5_000))), NEVER_US)
    next(asked)
    asked.close()  # type: ignore[attr-defined]
    assert [row["n"] for row in answer(process, spans(slice_of_the_events, [5]))[0]] == [5]


def open_files(span: Span) -> Iterator[dict[str, Any]]:
    found = []
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            found.append(os.fstat(int(name)))
    sockets = sum(stat.S_ISSOCK(file.st_mode) for file in found)
    yield {"n": sockets, "label": json.dumps([file.st_ino for file in found])}


def test_no_file_of_the_parent_is_open_in_the_process(tmp_path: Path, process: OperatorProcess) -> None:
    with (tmp_path / "open").open("w") as file, socket.socket():
        ((row,), _) = answer(process, spans(open_files, [1]))
        assert os.fstat(file.fileno()).st_ino not in json.loads(row["label"])
    assert row["n"] == 1


PARENT = f"""
import threading
from tests.support.operator_process import spans
from spark_pace.spark.stages.operator_process import OperatorProcess
for answers in OperatorProcess().call(spans("{HERE}:FUNCTION", [10]), 10**12):
    print(answers.rows["label"][0].as_py().split()[0], flush=True)
threading.Event().wait()
"""


def announced(span: Span) -> Iterator[dict[str, Any]]:
    print(os.getpid(), flush=True)
    threading.Event().wait()
    yield {}


@pytest.mark.parametrize("operator", ["doubled", "announced"])
def test_the_process_ends_with_its_parent(operator: str) -> None:
    """Idle or at work: the pipe ends only when the last of the two has ended."""
    command = [sys.executable, "-c", PARENT.replace("FUNCTION", operator)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGINT)  # is not heard
        os.kill(child, 0)
        parent.kill()
        assert parent.communicate(timeout=20) == ("", None)
