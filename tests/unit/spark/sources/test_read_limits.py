"""A source gives the same rows to a Spark that tells it neither limits nor where a batch begins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.datasource import DataSourceStreamReader

from spark_pace.io.files.files import write_json
from spark_pace.spark.sources import own_sources
from spark_pace.spark.sources.own_sources import (
    ROWS,
    TICK,
    EndReader,
    FileNamesReader,
    FilesToRead,
    OwnSource,
    reader_option,
)

Reader = Callable[..., Any]


def reader_of(options: dict[str, str]) -> Any:
    return OwnSource(options).streamReader(cast(Any, None))


@pytest.fixture
def files_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reader:
    """Makes a reader of the folder `in`, as a run on a Spark before 4.2 does."""
    monkeypatch.setattr(own_sources, "TELLS_LIMITS", False)
    root = tmp_path / "in"
    root.mkdir()

    def reader(noted: dict[str, int] | None, available_now: bool, **more: Any) -> Any:
        made = partial(FileNamesReader, FilesToRead(root, tmp_path / "manifest.jsonl", 1, **more))
        return reader_of(reader_option(made, lambda: noted, available_now))

    return reader


def add(folder: Path, *names: str) -> None:
    for name in names:
        (folder / "in" / name).write_text("{}\n", encoding="ascii")


def test_it_goes_on_where_the_last_batch_ended(tmp_path: Path, files_reader: Reader) -> None:
    add(tmp_path, "1", "2", "3")
    reader = files_reader(None, False, max_files=2)
    assert reader.initialOffset() == {"entries": 0}
    assert [reader.latestOffset() for _ in range(3)] == [{"entries": 2}, {"entries": 3}, {"entries": 3}]
    add(tmp_path, "4", "5", "6")
    again = files_reader({"entries": 3}, False, max_files=2)
    assert again.latestOffset() == {"entries": 5}
    (part,) = again.partitions({"entries": 3}, {"entries": 5})
    assert list(again.read(part)) == [(3, '"4"'), (4, '"5"')]


def test_a_run_takes_all_that_is_there_when_it_is_asked_and_its_end(
    tmp_path: Path, files_reader: Reader
) -> None:
    add(tmp_path, "1", "2", "3")
    reader = files_reader({"entries": 1}, True, max_files=1, finish=True)
    assert reader.latestOffset() == {"entries": 4}
    add(tmp_path, "4")
    assert reader.latestOffset() == {"entries": 4}
    (part,) = reader.partitions({"entries": 2}, {"entries": 3})
    assert list(reader.read(part)) == [(2, '"3"')]


def test_the_end_and_ticks_come_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(own_sources, "TELLS_LIMITS", False)
    clock = tmp_path / "clock.json"

    def reader(end: bool, noted: dict[str, int] | None) -> Any:
        return reader_of(reader_option(partial(EndReader, end, clock), lambda: noted, False))

    first = reader(False, None)
    assert first.latestOffset() == {ROWS: 0}
    write_json(clock, {TICK: 5})
    assert first.latestOffset() == first.latestOffset() == {ROWS: 0, TICK: 5}
    assert [part.value for part in first.partitions({ROWS: 0}, {ROWS: 0, TICK: 5})] == [5]
    ended = reader(True, {ROWS: 0, TICK: 5}).latestOffset()
    assert ended == {ROWS: 1, TICK: 5}
    assert reader(False, ended).latestOffset() == ended


def test_a_spark_that_tells_them_asks_the_reader_itself() -> None:
    reader = reader_of(reader_option(partial(EndReader, False, None), pytest.fail, True))
    assert isinstance(reader, EndReader)
    assert isinstance(reader, DataSourceStreamReader)


def test_what_reaches_a_store_stands_in_an_option_that_spark_does_not_show() -> None:
    (name,) = reader_option(partial(EndReader, False, None), pytest.fail, True)
    assert "secret" in name
