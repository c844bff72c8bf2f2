"""How the alerts of a job stand, target by target, whether the job runs or not."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.alerts.cursor import Cursor, Failure, read_cursor
from spark_pace.errors import one_line
from spark_pace.io.files.addresses import AnyPath
from spark_pace.job_file import JobSpec
from spark_pace.job_file.alerts import AlertTarget
from spark_pace.spark.running import cursors


@dataclass(frozen=True)
class WaitingAlerts:
    """What waits for a target, None if it has not started yet, and its last failure, None if it had none."""

    target: str
    waiting: int | None
    failure: Failure | None

    @property
    def said(self) -> str:
        """All of it, but the target's name, in one line."""
        if self.waiting is None:
            return "not started yet"
        waiting, failure = f"{self.waiting:,} wait", self.failure
        if failure is None:
            return waiting
        since = "the last failure, now over, began at" if failure.over else "failing since"
        return f"{waiting}; {since} {failure.at}: {one_line(failure.text)}"

    @property
    def fails(self) -> bool:
        """True if the last failure is not over."""
        return self.failure is not None and not self.failure.over

    @property
    def trouble(self) -> str | None:
        """A sentence, if the target fails while something waits for it."""
        return f"Alerts for {self.target}: {self.said}." if self.waiting and self.fails else None


def waiting_alerts(spec: JobSpec | None, tables: AnyPath) -> list[WaitingAlerts]:
    """How the targets of a job stand, whose tables lie in a place; none are known without the job.

    Raises:
        StateError: a cursor is damaged, or a table cannot be read.
    """
    if spec is None or not spec.alerts:
        return []
    own_id, paths = cursors(spec.checkpoint_folder, [target.name for target in spec.alerts])
    found = []
    for target, path in zip(spec.alerts, paths, strict=True):
        cursor = read_cursor(path, own_id[:8])
        if cursor is None:
            found.append(WaitingAlerts(target.name, None, None))
        else:
            found.append(WaitingAlerts(target.name, _waiting(tables, target, cursor), cursor.failure))
    return found


def _waiting(tables: AnyPath, target: AlertTarget, cursor: Cursor) -> int:
    from spark_pace.alerts.table_rows import TableRows  # most jobs have no targets

    count = 0
    for table in target.tables:
        if table in cursor.places:
            rows = TableRows(tables / table, table, target.rules)
            count += rows.waiting(cursor.places[table], max(rows.log.versions(), default=-1))
    return count
