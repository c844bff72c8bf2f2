"""What the merger writes where a batch runs again and its Python operator does something else. No Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark_pace import read_table
from spark_pace.core.frames import encode
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import LATE_SCHEMA, Past, sift
from spark_pace.core.operate.python_operator import Answers, Spans, gathered
from spark_pace.core.order import Progress
from spark_pace.core.plan.plan import Plan
from spark_pace.core.python_functions import emit_schema
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import SetupError
from spark_pace.io.bad_records import BAD_SCHEMA
from spark_pace.io.delta_tables import DeltaTables, table_schemas
from spark_pace.io.metrics import BatchReport
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.stages.merger import MergerHost, RuleHistory
from spark_pace.spark.stages.rows import BAD, LATE, RESULT, STATS, to_batches
from spark_pace.spark.stages.side_table_copies import SideTables
from tests.support.drive import operate

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - {name: r, span: {every: 1 events, size: 1 events}, operator: "here:f", emit: {n: BIGINT}}
"""


class Killed(Exception):
    """The end of the process."""


@pytest.fixture
def host(plan: Plan, tmp_path: Path) -> MergerHost:
    tables = DeltaTables(str(tmp_path / "out"), "app")
    tables.prepare(table_schemas([planned.rule for planned in plan.rules]))
    (tmp_path / "offsets").mkdir()
    for number in range(2):
        (tmp_path / "offsets" / str(number)).write_text('v1\n{}\n{"entries":1}')
    checkpoint = Checkpoint(tmp_path)
    return MergerHost(
        plan,
        tables,
        checkpoint,
        [],
        no_late_files,
        look=lambda *_: (0, {}),
        require_held=lambda: None,
        claim_batch=checkpoint.note_of,
        side_tables=SideTables(plan.schema, checkpoint),
        history=RuleHistory({}, ()),
    )


def no_late_files(*_: object) -> pa.Table:
    raise AssertionError("there are no files")


def batch(plan: Plan, values: Collection[int], failing: Collection[int] = (), lost: int = 0) -> Any:
    """The rows of a batch with a selection for each value, as the query hands them to the merger.

    So many late events and bad records are `lost` in it.
    """
    count = len(values)
    events = pa.table({
        "@time": pa.array(range(count), pa.int64()),
        "@source": pa.array(["s"] * count).dictionary_encode(),
        "@offset": pa.array(range(count), pa.int64()),
        "time": pa.array(range(count), pa.int64()).view(pa.timestamp("us")),
        "x": pa.array(values, pa.int64()),
    })  # fmt: skip

    def call(spans: Spans) -> Iterator[Answers]:
        for place in range(len(spans)):
            x = spans[place].opening["x"]
            yield gathered(
                spans.rule, ["too slow" if x in failing else pa.table({"n": [x]}, emit_schema(spans.rule))]
            )

    splitter = SlotSplitter(plan, 0)
    frames = [frame for _, frame in pack(plan, sift(plan, events, Past(splitter.frontier_us)).events)]
    output = splitter.step(frames, Progress(count, finish=True))
    stats = {**output.stats, "slot": 0, "state_bytes": 0, "store_requests": 0, "chunks": [], "finish": True}
    rows = [(0, RESULT, operate(plan, lane, call)) for lane in output.lanes]
    stats["counts"] = {"records": count + 2 * lost, "late": lost, "bad_records": lost}
    for kind, schema in ((LATE, LATE_SCHEMA), (BAD, BAD_SCHEMA)):
        place = [{"source": "s", "offset": number} for number in range(lost)]
        rows.append((0, kind, encode(pa.Table.from_pylist(place, schema))))
    table = pa.Table.from_batches(to_batches([*rows, (0, STATS, json.dumps(stats).encode())], "part"))
    session = SimpleNamespace(sparkContext=SimpleNamespace(setLocalProperty=lambda name, value: None))
    found = SimpleNamespace(sparkSession=session, toArrow=lambda: table)
    found.where = found.coalesce = lambda _: found
    return found


def stored(tmp_path: Path, name: str, *columns: str) -> list[tuple[int, ...]]:
    found = read_table(tmp_path / "out", name, columns).to_pylist()
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.parametrize(("first", "again"), [((), (2,)), ((2,), ())])
def test_numbers_go_on_from_what_was_written_first(
    plan: Plan, host: MergerHost, tmp_path: Path, first: tuple[int, ...], again: tuple[int, ...]
) -> None:
    host(batch(plan, [1, 2, 3], first), 0)
    host(batch(plan, [1, 2, 3], again), 0)
    host(batch(plan, [4]), 1)
    found = [1, 3, 4] if first else [1, 2, 3, 4]
    assert stored(tmp_path, "matches", "out_seq", "n") == list(enumerate(found))


def test_numbers_are_those_of_the_try_that_wrote(
    plan: Plan, host: MergerHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try ends when it has kept its numbers and written nothing."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(DeltaTables, "append", killing("", DeltaTables.append))
        host(batch(plan, [1, 2, 3]), 0)
    host(batch(plan, [1, 2, 3], [2]), 0)
    host(batch(plan, [4]), 1)
    assert stored(tmp_path, "matches", "out_seq", "n") == [(0, 1), (1, 3), (2, 4)]


@pytest.mark.parametrize(
    ("table", "first", "again"),
    [
        ("matches", (), (2,)),
        ("quarantine", (2,), ()),
        ("matches", (2,), ()),
        ("quarantine", (1,), (1, 2)),
        ("quarantine", (1,), (2,)),
    ],
)
def test_a_selection_that_fails_in_one_try_only_is_in_some_table(
    plan: Plan,
    host: MergerHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    first: tuple[int, ...],
    again: tuple[int, ...],
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(DeltaTables, "append", killing(table, DeltaTables.append))
        host(batch(plan, [1, 2], first), 0)
    host(batch(plan, [1, 2], again), 0)
    quarantined = stored(tmp_path, "quarantine", "selection_id")
    assert stored(tmp_path, "metrics", "batch_id", "quarantined") == [(0, len(quarantined))]
    assert stored(tmp_path, "quarantine", "batch_id") == [(0,)] * len(quarantined)
    for n in (1, 2):
        assert (n,) in stored(tmp_path, "matches", "n") or (n - 1,) in quarantined
    assert len(set(quarantined)) == len(quarantined)


@pytest.mark.parametrize("last", [None, "", "late", "quarantine", "matches", "metrics"])
@pytest.mark.parametrize("again", [2, 1])
def test_the_report_of_a_batch_tells_how_many_rows_it_has_written(
    plan: Plan,
    host: MergerHost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: str | None,
    again: int,
) -> None:
    """Also where a try before was killed after the table `last`, and an operator fails elsewhere then."""
    reports: list[BatchReport] = []
    host.listeners.append(reports.append)
    host(batch(plan, [7], lost=1), 0)
    if last is not None:
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(DeltaTables, "append", killing(last, DeltaTables.append))
            host(batch(plan, [1, 2, 3], [2], lost=2), 1)
    for number in (1, 1):
        host(batch(plan, [1, 2, 3], [again], lost=2), number)
    for report in reports[1:]:
        written = [
            stored(tmp_path, name, "batch_id").count((1,)) for name in ("late", "quarantine", "matches")
        ]
        assert written == [report.late, report.quarantined, sum(report.matches.values())]
        assert written[0] == written[2] == 2 and written[1] >= 3


def test_a_job_that_has_lost_its_checkpoint_writes_nothing_of_a_batch(
    plan: Plan, host: MergerHost, tmp_path: Path
) -> None:
    host(batch(plan, [1]), 0)
    before = sorted(tmp_path.rglob("*"))

    def lost() -> None:
        raise SetupError("taken over")

    host.require_held = lost
    with pytest.raises(SetupError, match="taken over"):
        host(batch(plan, [2]), 1)
    assert sorted(tmp_path.rglob("*")) == before
    assert tmp_path / "sequence" / "1.json" in before


def test_a_batch_takes_from_when_spark_began_it_in_this_run(
    plan: Plan, host: MergerHost, tmp_path: Path
) -> None:
    reports: list[BatchReport] = []
    host.listeners.append(reports.append)
    host._since -= 100.0  # nothing came for so long
    note_of_spark(tmp_path, 0, time.time() - 40.0)
    host(batch(plan, [1]), 0)
    host._since -= 100.0
    note_of_spark(tmp_path, 1, time.time() - 4_000.0)  # by an earlier run
    host(batch(plan, [2]), 1)
    (first, again) = stored(tmp_path, "metrics", "batch_id", "seconds", "batch_seconds")
    assert first[1] >= 100.0 and 40.0 <= first[2] < 100.0
    assert [*reports[0].stage_seconds] == ["tasks", "merger", "tables"]
    assert min(reports[0].stage_seconds.values()) > 0.0
    assert sum(reports[0].stage_seconds.values()) == pytest.approx(first[2])
    assert again[1] >= 100.0 and 0.0 < again[2] < 40.0


def note_of_spark(tmp_path: Path, batch_id: int, began: float) -> None:
    """Spark's note of what a batch reads."""
    note = f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{began * 1_000:.0f}}}\n{{"entries":1}}'
    (tmp_path / "offsets" / str(batch_id)).write_text(note)


def killing(last: str, append: Any) -> Any:
    """Appends up to a table, then no more; to none where it has no name."""

    def appended(tables: DeltaTables, table: str, rows: pa.Table, batch_id: int) -> None:
        if last:
            append(tables, table, rows, batch_id)
        if table == last or not last:
            raise Killed

    return appended
