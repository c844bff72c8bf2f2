"""A job whose events join a side table: which content each batch has, whenever it is computed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.errors import SparkPaceError, StateError
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.spark.jobs import Event, make_job, matches, stop_at, table, write_files
from tests.support.both_places import Kept

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

RULES = """
events:
  schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT"
  event_time: t
  lookup:
    owners: {path: owners.csv, on: k, schema: "owner STRING"REFRESH}
rules:
  - name: seen
    pattern: {sequence: [a: kind = 'a' and owners is not null]}
    emit: {x: a.x, owner: a.owners.owner}
"""


def job(folder: Path, refresh: str = "", rules: str = RULES) -> JobSpec:
    return read_job(make_job(folder, finish=False, slots=1, rules=rules.replace("REFRESH", refresh)))


def owners(folder: Path, *lines: str) -> None:
    (folder / "owners.csv").write_text("\n".join(["k,owner", *lines]))


def events(first: int, count: int) -> list[Event]:
    """One a second, of the keys u and v in turn and w, which no table has."""
    return [
        {"t": f"2024-01-01T00:{x // 60:02d}:{x % 60:02d}", "k": "uvw"[x % 3], "kind": "a", "x": x}
        for x in range(first, first + count)
    ]


def found(spec: JobSpec) -> list[tuple[int, str]]:
    return [(row["x"], row["owner"]) for row in matches(spec)]


def expected(spans: Sequence[tuple[int, int, dict[str, str]]]) -> list[tuple[int, str]]:
    """The events of each span of numbers, by the owners that it has joined."""
    return [(x, known["uvw"[x % 3]]) for first, end, known in spans for x in range(first, end) if x % 3 < 2]


OLD = {"u": "ann", "v": "bob"}
NEW = {"u": "eve", "v": "bob"}


def with_changes(*changes: Callable[[], None]) -> Callable[[BatchReport], None]:
    """Make each change when a batch is written, one after the other."""
    left = list(changes)
    return lambda batch: left.pop(0)() if left else None


def test_a_batch_that_is_done_again_joins_what_it_joined_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners(tmp_path, "u,ann", "v,bob")
    spec = job(tmp_path)
    write_files(tmp_path, events(0, 60), 2)
    with pytest.raises(SparkPaceError), monkeypatch.context() as patch:
        stop_at(patch, "matches", batch_id=1)
        run_job(spec)
    owners(tmp_path, "v,bob", "u,eve")
    write_files(tmp_path, events(60, 30), 1, first=2)
    write_files(tmp_path, events(120, 30), 1, first=3)
    # without `refresh` a run keeps what it has read
    run_job(replace(spec, finish=True), on_progress=with_changes(lambda: owners(tmp_path, "u,zoe")))
    # two seconds of each batch wait for the frontier, and were joined when they were read
    assert found(spec) == expected([(0, 60, OLD), (60, 90, NEW), (120, 150, NEW)])
    assert table(spec, "quarantine").num_rows == 0
    told = [dict(row)["owners"] for row in table(spec, "metrics").sort_by("batch_id")["lookups"].to_pylist()]
    assert told[0] == told[1] != told[2] == told[3]
    kept = sorted(path.name for path in (tmp_path / "checkpoint" / "lookup").iterdir())
    assert [name for name in kept if name.endswith(".json")] == ["2.json", "3.json"]
    assert [name for name in kept if name.startswith("owners-")] == [f"owners-{told[3]}.arrow"]


def test_a_table_that_has_changed_is_read_between_batches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: Kept
) -> None:
    """The table lies beside the checkpoint, in a folder or in a store."""
    owners(kept.files, "u,ann", "v,bob")
    in_place = RULES if kept.store is None else RULES.replace("owners.csv", f"{kept.address}/owners.csv")
    job(tmp_path, ", refresh: 1 us", in_place)
    spec = replace(kept.for_job(tmp_path / "job.yaml"), finish=True)
    write_files(tmp_path, events(0, 120), 4)
    changes = with_changes(
        lambda: owners(kept.files, "u,eve", "v,bob"),
        lambda: owners(kept.files, "u,eve", "u,ann"),
        (kept.files / "owners.csv").unlink,
    )
    with caplog.at_level(logging.WARNING):
        run_job(spec, on_progress=changes)
    assert found(spec) == expected([(0, 30, OLD), (30, 120, NEW)])
    warned = [record.getMessage() for record in caplog.records if "lookup.owners" in record.getMessage()]
    assert "must have one row for each key; got k = u in line 2 and in line 3" in warned[0]
    assert all(text.endswith("The job goes on with what it has read before.") for text in warned)
    assert "owners.csv — must be a table that can be read; got " in warned[-1]


def test_a_batch_that_was_planned_with_another_lookup_is_done_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners(tmp_path, "u,ann", "v,bob")
    spec = job(tmp_path)
    write_files(tmp_path, events(0, 30), 1)
    with pytest.raises(SparkPaceError), monkeypatch.context() as patch:
        stop_at(patch, "matches", batch_id=0)
        run_job(spec)
    (tmp_path / "owners.csv").rename(tmp_path / "other.csv")
    (tmp_path / "other.csv").write_text("kind,owner\na,zoe")
    write_files(tmp_path, events(30, 30), 1, first=1)
    other = job(tmp_path, rules=RULES.replace("owners.csv, on: k", "other.csv, on: kind"))
    run_job(replace(other, finish=True))
    assert found(spec) == [*expected([(0, 30, OLD)]), *((x, "zoe") for x in range(30, 60))]


def test_what_a_batch_joins_must_be_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners(tmp_path, "u,ann", "u,bob")
    with pytest.raises(SparkPaceError, match=r"owners.csv — must have one row for each key"):
        run_job(job(tmp_path))
    owners(tmp_path, "u,ann", "v,bob")
    write_files(tmp_path, events(0, 30), 1)
    with pytest.raises(SparkPaceError), monkeypatch.context() as patch:
        stop_at(patch, "matches", batch_id=0)
        run_job(job(tmp_path))
    (copy,) = (tmp_path / "checkpoint" / "lookup").glob("owners-*")
    copy.write_bytes(copy.read_bytes().replace(b"bob", b"rob"))
    with pytest.raises(StateError, match=r"must be as this program wrote it; got another content") as caught:
        run_job(job(tmp_path))
    assert "\n" not in str(caught.value)
