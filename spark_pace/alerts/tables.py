"""The rows of a job's tables that a target is sent, batch by batch, and the table of those that it refuses.

Each row has the number of its batch. The rows of a batch come in an order that never changes: matches by rule
and number, others by their place in the input. So a place in a table is a batch and a number of its rows,
whatever becomes of the table's files.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from datetime import datetime, timezone

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_pace.alerts.cursor import Place
from spark_pace.alerts.sender import Refusal
from spark_pace.core.tables import UTC_TIME
from spark_pace.io import delta_rs
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import BatchReport
from spark_pace.io.query import Tables, text_of

MATCHES = "matches"
_COUNT = "row_count"
_ORDER = {
    MATCHES: "rule, out_seq",
    "late": 'source, "offset", reason',
    "quarantine": 'source, "offset", kind, rule, key, selection_id',
}


class TableRows:
    """The rows of one table for one target."""

    def __init__(self, root: AnyPath, table: str, rules: Collection[str] | None) -> None:
        """Take the table in the place of a job's tables; of its matches, those of `rules`, or all."""
        self.table = table
        self._root, self._rules = root, rules
        names = ", ".join(map(text_of, rules or ()))
        self._wanted = f" AND rule IN ({names})" if rules is not None and table == MATCHES else ""

    def counts(self, first: int, last: int) -> list[tuple[int, int]]:
        """The batches from `first` to `last` that have rows for the target, each with how many, in order.

        Raises:
            ConfigError: there is no such table.
            StateError: the table is damaged.
            SetupError: a store does not answer, or refuses a request.
        """
        what = f"batch_id, count(*) AS {_COUNT}"
        _, found = self._asked(what, first, last, "GROUP BY batch_id ORDER BY batch_id")
        return list(zip(found["batch_id"].to_pylist(), found[_COUNT].to_pylist(), strict=True))

    def count(self, batch: BatchReport) -> int:
        """How many rows for the target a batch has written, by its report; raises as `counts`."""
        if self.table == MATCHES:
            return sum(n for rule, n in batch.matches.items() if self._rules is None or rule in self._rules)
        if self.table == "late":
            return batch.late
        if not batch.quarantined:
            return 0
        # of many bad records of a file one row tells
        return sum(count for _, count in self.counts(batch.batch_id, batch.batch_id))

    def waiting(self, place: Place, last: int) -> int:
        """How many rows for the target stand behind a place, up to the batch `last`; raises as `counts`."""
        return sum(count for _, count in self.counts(place.batch, last)) - place.row

    def rows(self, batch: int, first: int, most: int) -> pa.Table:
        """At most so many of a batch's rows for the target, from the row `first` on; raises as `counts`."""
        how = f"ORDER BY {_ORDER[self.table]} LIMIT {most} OFFSET {first}"
        schema, found = self._asked("*", batch, batch, how)
        return found.cast(schema)

    def _asked(self, what: str, first: int, last: int, how: str) -> tuple[pa.Schema, pa.Table]:
        tables = Tables(self._root, [self.table])
        which = f"batch_id BETWEEN {first} AND {last}{self._wanted}"
        answer = tables.query(f"SELECT {what} FROM {self.table} WHERE {which} {how}")
        return tables.schemas[self.table], answer.read_all()


REFUSED_SCHEMA = pa.schema(
    [
        ("refused_at", UTC_TIME),
        ("target", pa.string()),
        ("id", pa.string()),
        ("status", pa.string()),  # the code of an HTTP answer, or the name of an error
        ("reply", pa.string()),
        ("alert", pa.string()),  # as it was sent
    ]
)


class RefusedTable:
    """Adds to the table `alerts_refused`, beside the others of a job. All targets of a job share it."""

    def __init__(self, place: AnyPath) -> None:
        """Take the place of the table, which is made with its first row."""
        self.place = place
        self._lock = threading.Lock()

    def add(self, target: str, refusals: Sequence[Refusal]) -> None:
        """Append alerts that a target has refused."""
        now = datetime.now(timezone.utc)
        rows = [(now, target, one.alert.id, one.status, one.reply, one.alert.text) for one in refusals]
        table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], REFUSED_SCHEMA.names)
        options = delta_rs.options(self.place)
        with self._lock, delta_rs.told(self.place):
            there = DeltaTable.create(str(self.place), REFUSED_SCHEMA, mode="ignore", storage_options=options)
            write_deltalake(there, table.cast(REFUSED_SCHEMA), mode="append")
