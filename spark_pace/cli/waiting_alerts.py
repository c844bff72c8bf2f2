"""What `status` says of a job's alerts, a line for each target, whether the job runs or not."""

from __future__ import annotations

from collections.abc import Iterator

from spark_pace.alerts.cursor import Cursor, read_cursor
from spark_pace.alerts.table_rows import TableRows
from spark_pace.errors import one_line
from spark_pace.job_file import JobSpec
from spark_pace.job_file.alert_targets import AlertTarget
from spark_pace.spark.checkpoint.checkpoint import Checkpoint


def alert_lines(spec: JobSpec) -> Iterator[str]:
    """Lines about what waits for each target of a job, and about its last failure.

    Raises:
        StateError: a cursor is damaged, or a table cannot be read.
    """
    checkpoint = Checkpoint(spec.checkpoint_folder)
    for target in spec.alerts:
        cursor = read_cursor(checkpoint.alert_cursor(target.name))
        said = "not started yet" if cursor is None else _said(spec, target, cursor)
        yield f"alerts.{target.name}: {said}"


def _said(spec: JobSpec, target: AlertTarget, cursor: Cursor) -> str:
    waiting = f"{_waiting(spec, target, cursor):,} wait"
    failure = cursor.failure
    if failure is None:
        return waiting
    since = "the last failure, now over, began at" if failure.over else "failing since"
    return f"{waiting}; {since} {failure.at}: {one_line(failure.text)}"


def _waiting(spec: JobSpec, target: AlertTarget, cursor: Cursor) -> int:
    count = 0
    for table in target.tables:
        if table in cursor.places:
            rows = TableRows(f"{spec.sink_path}/{table}", table, target.rules)
            count += rows.waiting(cursor.places[table], max(rows.log.versions(), default=-1))
    return count
