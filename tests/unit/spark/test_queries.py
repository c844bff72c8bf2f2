"""What a signal to stop lets fail, and what fails beside it. No Spark: its query is played here."""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake.exceptions import TableNotFoundError
from py4j.protocol import Py4JError

from spark_pace.errors import SetupError, SparkPaceError
from spark_pace.job_file import KafkaSource
from spark_pace.spark import queries
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

FOLDER = Path("/srv/out/checkpoint")


class Query:
    """A query that its JVM can no longer stop."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure

    def awaitTermination(self, seconds: int) -> bool:
        if self.failure is not None:
            raise self.failure
        return True

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        raise Py4JError("Cannot call methods on a stopped SparkContext")


def wait(
    query: Query, failure: Exception | None = None, *, at: str | None = None, signalled: bool = True
) -> list[str]:
    """The names of what was done at the end."""
    ended: list[str] = []
    stop = queries.Stop()
    if signalled:
        stop.event.set()
    merger: Any = SimpleNamespace(
        checkpoint=Checkpoint(FOLDER),
        failure=failure,
        failed_at=at,
        close=lambda: ended.append("closed"),
    )
    with queries.in_our_words(stop, Checkpoint(FOLDER)):
        queries.wait(query, merger, stop, lambda _: None, lambda: False)  # type: ignore[arg-type]
    return ended


@pytest.fixture(autouse=True)
def _py4j_as_it_was() -> Iterator[None]:
    """Py4J stays silent behind a job that was stopped together with its JVM."""
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    filters, level = list(root.filters), py4j.level
    yield
    root.filters[:] = filters
    py4j.setLevel(level)


@pytest.fixture
def ending_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "is_ending", lambda: True)


@pytest.mark.usefixtures("ending_jvm")
def test_what_fails_because_the_signal_has_ended_spark_too_is_no_failure() -> None:
    assert wait(Query()) == ["closed"]
    assert wait(Query(Py4JError("Failed to exec spawn helper"))) == ["closed"]


@pytest.mark.usefixtures("ending_jvm")
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "must have room for the tables, the checkpoint and Spark's own files; got a full one"),
        (errno.EROFS, "must be on a file system that can be written to; got a read-only one"),
    ],
)
@pytest.mark.parametrize(
    ("form", "where"),
    [
        ("[Errno 1] {}", f"the checkpoint {FOLDER}, or of Spark's own files in {gettempdir()}"),
        ("OSError: [Errno 1] {}: '/there/a b/.1.tmp'", "/there/a b"),
        ("java.io.FileNotFoundException: /there/a b/7 ({})", "/there/a b"),
        ("java.nio.file.FileSystemException: /tmp/blocks/7: {}", "/tmp/blocks"),
    ],
)
def test_a_failure_of_this_program_is_told_though_the_signal_has_ended_spark(
    number: int, message: str, form: str, where: str
) -> None:
    with pytest.raises(SetupError, match=f"^{re.escape(f'the disk of {where} — {message}')}"):
        wait(Query(), OSError(form.format(os.strerror(number))))


@pytest.mark.usefixtures("ending_jvm")
@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            TableNotFoundError("Not a Delta table: no log"),
            "out/late — must be a table that can be written to; got Not a Delta table: no log. "
            "Mend that and start the job again: it goes on where it stopped.",
        ),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "the disk of out/late — must have room for"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS)), "the disk of out/late — must be on a file system"),
    ],
)
def test_a_table_that_cannot_be_written_is_named(failure: Exception, message: str) -> None:
    with pytest.raises(SparkPaceError, match=f"^{message}"):
        wait(Query(), failure, at="out/late")


@pytest.mark.parametrize("signalled", [True, False])
def test_what_fails_in_a_spark_that_goes_on_is_told(monkeypatch: pytest.MonkeyPatch, signalled: bool) -> None:
    monkeypatch.setattr(queries, "is_ending", lambda: False)
    with pytest.raises(SparkPaceError, match=r"^the query — must run; got Cannot call methods"):
        wait(Query(), signalled=signalled)


@pytest.mark.parametrize("source", ["files", "kafka"])
@pytest.mark.parametrize("trigger_us", ["available_now", 10])
@pytest.mark.parametrize("admission", ["off", "on"])
def test_a_spark_that_tells_no_limits_is_told_where_it_makes_a_difference(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    source: str,
    trigger_us: int | str,
    admission: str,
) -> None:
    @dataclass
    class Spec:
        source: Any
        trigger_us: int | str
        admission: str

    monkeypatch.setattr(queries, "TELLS_LIMITS", False)
    of = KafkaSource(format="json", servers="s", topics=("t",)) if source == "kafka" else None
    spec: Any = Spec(of, trigger_us, admission)
    limited = queries.with_limits(spec, SimpleNamespace(version="4.0.1"))  # type: ignore[arg-type]
    is_free = source == "files"
    assert limited.admission == ("off" if is_free else admission)
    assert ("4.0.1 — reads all files" in caplog.text) == (is_free and trigger_us == "available_now")
    assert ("admission — must set" in caplog.text) == (is_free and admission == "on")
