"""Jobs that go on with other rules: one that stays sees no break, a changed one is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_pace.core import local_run
from spark_pace.core.merger import matches_schema
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import StateError
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.event_files import read_events
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from tests.spark.jobs import RULES, job, matches, only, random_events, stop_at, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

Row = dict[str, Any]


def expected(spec: JobSpec, rule: str, first: int, last: int, *, finish: bool, base: int = 0) -> list[Row]:
    """What the core finds for one rule in some of the files, one a batch, numbered from `base`."""
    plan = build_plan([one for one in spec.rules if one.name == rule], order=spec.events.order)
    paths = [Path(spec.files.path, f"{number:03d}.json") for number in range(first, last)]
    batches = [read_events(str(path), "json", spec.events.schema, path.name).events for path in paths]
    rows = local_run.run(plan, batches, finish=finish).matches.to_pylist()
    return [row | {"out_seq": row["out_seq"] + base} for row in rows]


def found(spec: JobSpec, rule: str) -> list[Row]:
    """The rule's matches in the table, without the columns of other rules."""
    names = matches_schema(one for one in spec.rules if one.name == rule).names
    return [{name: row[name] for name in names} for row in matches(spec) if row["rule"] == rule]


def feed(folder: Path, spec: JobSpec, first: int, last: int) -> None:
    """Put some of the job's six files there."""
    events = random_events(30, 240)
    for number in range(first, last):
        write_files(folder, events[40 * number : 40 * (number + 1)], 1, first=number)


def changes(spec: JobSpec) -> list[tuple[Any, ...]]:
    rows = table(spec, "rule_changes").select(["batch_id", "rule", "change"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_rules_come_and_go_and_come_back_with_one_row_each_where_a_batch_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(tmp_path, finish=False)
    feed(tmp_path, spec, 0, 1)
    run_job(only(spec, "pairs", "keyed"))
    feed(tmp_path, spec, 1, 2)
    with monkeypatch.context() as patch, pytest.raises(Exception, match="the disk is full"):
        stop_at(patch, "metrics", batch_id=1)
        run_job(only(spec, "keyed", "sums"))
    run_job(only(spec, "keyed", "sums"))
    feed(tmp_path, spec, 2, 3)
    run_job(only(spec, "sums", "keyed", "pairs", finish=True))
    early = expected(spec, "pairs", 0, 1, finish=False)
    assert found(spec, "keyed") == expected(spec, "keyed", 0, 3, finish=True)
    assert found(spec, "sums") == expected(spec, "sums", 1, 3, finish=True)
    assert found(spec, "pairs") == early + expected(spec, "pairs", 2, 3, finish=True, base=len(early))
    assert len(early) > 0
    assert changes(spec) == [
        *((0, "keyed", "added"), (0, "pairs", "added"), (1, "pairs", "removed"), (1, "sums", "added")),
        (2, "pairs", "came back"),
    ]


def test_a_changed_rule_is_refused_until_it_starts_anew(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False)
    feed(tmp_path, spec, 0, 1)
    run_job(spec)
    before = {name: found(spec, name) for name in ("keyed", "sums")}
    changed = job(
        tmp_path,
        finish=True,
        rules=RULES.replace("within: 30 s", "within: 31 s").replace("where: b.x >= a.x", "where: b.x > a.x"),
    )
    feed(tmp_path, spec, 1, 2)
    message = (
        "rules pairs, keyed — must be as the checkpoint knows them; "
        "got pairs with a changed where: b.x > a.x, was b.x >= a.x; "
        "keyed with a changed within: 31 s, was 30 s. Restore them, give them new names, "
        "pause them by enabled: false, or start them anew with --reset-rule pairs --reset-rule keyed."
    )
    with pytest.raises(StateError, match=f"^{re.escape(message)}$"):
        run_job(changed)
    message = (
        "rule keyed — must be as the checkpoint knows it; got a changed within: 31 s, was 30 s. "
        "Restore it, give the rule a new name, pause it by enabled: false, or start it anew "
        "with --reset-rule keyed."
    )
    with pytest.raises(StateError, match=f"^{re.escape(message)}$"):
        run_job(changed, reset_rules=["pairs"])
    mended = replace(changed, rules=(spec.rules[0], *changed.rules[1:]))
    run_job(mended, reset_rules=["keyed", "sums"])
    assert found(spec, "pairs") == expected(spec, "pairs", 0, 2, finish=True)
    for name, rows in before.items():
        assert found(spec, name) == rows + expected(mended, name, 1, 2, finish=True, base=len(rows))


@pytest.mark.parametrize("unfinished", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_rule_starts_anew_though_the_job_is_stopped_while_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unfinished: bool
) -> None:
    spec = job(tmp_path, finish=False)
    done = 2 if unfinished else 1
    feed(tmp_path, spec, 0, done)
    if unfinished:
        stop_at(monkeypatch, "metrics", batch_id=1)
        with pytest.raises(Exception, match="the disk is full"):
            run_job(spec)
        monkeypatch.undo()
    else:
        run_job(spec)
    before = found(spec, "keyed")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spark_pace.spark.session.job_session", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_job(spec, reset_rules=["keyed"])
    monkeypatch.undo()
    run_job(spec)
    feed(tmp_path, spec, done, 3)
    run_job(only(spec, "pairs", "keyed", "sums", finish=True))
    anew = before + expected(spec, "keyed", done, 3, finish=True, base=len(before))
    assert found(spec, "pairs") == expected(spec, "pairs", 0, 3, finish=True)
    assert found(spec, "keyed") == anew != expected(spec, "keyed", 0, 3, finish=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fails_at", "stays"), [("matches", ("keyed",)), ("metrics", ())], ids=["one_stays", "none_stays"]
)
def test_an_unfinished_batch_is_finished_before_rules_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str, stays: tuple[str, ...]
) -> None:
    spec = job(tmp_path, finish=False)
    feed(tmp_path, spec, 0, 2)
    first = only(spec, "pairs", *stays)
    stop_at(monkeypatch, fails_at, batch_id=1)
    with pytest.raises(Exception, match="the disk is full"):
        run_job(first)
    monkeypatch.undo()
    written = len(expected(spec, "pairs", 0, 2 if fails_at == "metrics" else 1, finish=False))
    run_job(only(spec, "sums", *stays))
    feed(tmp_path, spec, 2, 4)
    run_job(only(spec, "sums", "pairs", *stays, finish=True))
    early = expected(spec, "pairs", 0, 2, finish=False)[:written]
    assert found(spec, "pairs") == early + expected(spec, "pairs", 2, 4, finish=True, base=written)
    assert found(spec, "sums") == expected(spec, "sums", 2, 4, finish=True)
    assert [found(spec, name) for name in stays] == [
        expected(spec, name, 0, 4, finish=True) for name in stays
    ]
    metrics = table(spec, "metrics").sort_by("batch_id")
    assert metrics["events"].to_pylist() == [40] * 4
    assert sum(metrics["matches"].to_pylist()) == table(spec, "matches").num_rows


def test_what_the_state_of_all_rules_rests_on_may_not_change(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False)
    feed(tmp_path, spec, 0, 1)
    run_job(spec)
    order = replace(spec.events.order, by_source=True, deduplicate_on=("k", "x"))
    message = (
        "events — must be as the checkpoint knows it; "
        "got ordering sources instead of watermark, deduplicate_on k STRING, x BIGINT instead of none. "
        "Restore it, or start a new checkpoint with a sink of its own."
    )
    with pytest.raises(StateError, match=f"^{re.escape(message)}$"):
        run_job(replace(spec, events=replace(spec.events, order=order)))


def test_a_column_that_would_change_its_type_is_refused(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False)
    feed(tmp_path, spec, 0, 1)
    run_job(spec)
    changed = job(
        tmp_path, rules=RULES.replace("name: pairs", "name: other").replace("began: a.t", "began: a.k")
    )
    message = (
        "out/matches — must have a column began of type STRING; got began of type TIMESTAMP. "
        "Give what is emitted another name, or choose another sink."
    )
    with pytest.raises(StateError, match=f"{re.escape(message)}$"):
        run_job(changed)
    run_job(spec)


@pytest.mark.long
def test_tables_that_spark_has_written_go_on(tmp_path: Path, spark: SparkSession) -> None:
    """Sinks given as an address were written by Spark in older releases; their transactions count."""
    narrow = pa.schema([("rule", pa.string()), ("out_seq", pa.int64())])
    once = {"txnAppId": "app", "txnVersion": "0"}
    written = spark.createDataFrame(pa.table({"rule": ["a"], "out_seq": [0]}, narrow))
    written.write.format("delta").options(**once).save(f"{tmp_path}/matches")
    mark = spark.createDataFrame(pa.table({"checkpoint": ["app"]}))
    mark.write.format("delta").save(f"{tmp_path}/_owner")
    tables = DeltaTables(f"file://{tmp_path}", "app")
    wide = pa.schema([*narrow, ("total", pa.float64())])
    tables.prepare({"matches": wide})
    tables.claim()
    assert tables.written(["matches"]) == {"matches": 0}
    for batch in range(2):
        tables.append("matches", pa.table({"rule": ["b"], "out_seq": [batch], "total": [0.5]}, wide), batch)
    rows = spark.read.format("delta").load(str(tables.place("matches"))).orderBy("rule", "out_seq").collect()
    assert [tuple(row) for row in rows] == [("a", 0, None), ("b", 1, 0.5)]
    with pytest.raises(StateError, match="must be written by this checkpoint alone"):
        DeltaTables(str(tmp_path), "other").claim()
