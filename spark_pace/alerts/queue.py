"""The tables of a job as the queue of a target: their rows, batch by batch, and how far it has come.

Each row has the number of its batch. The rows of a batch come in an order that never changes: matches by rule
and number, others by their place in the input. So a place in a table is a batch and a number of its rows,
whatever becomes of the table's files.

How far a target has come is in a small file for each target in the checkpoint. The file is written before a
piece is sent, with the piece, and without one when nothing more is to be sent. So after a crash it is known
which rows may have been sent already: those of the piece that the file names. What a target refuses goes to a
table of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from spark_pace.alerts.sender import Refusal
from spark_pace.core.tables import UTC_TIME
from spark_pace.errors import StateError
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import read_json, write_json
from spark_pace.io.metrics import BatchReport
from spark_pace.io.query import REFUSED, Tables, store_options, text_of, told_by_store

MATCHES = "matches"
_COUNT = "row_count"
_ORDER = {
    MATCHES: "rule, out_seq",
    "late": 'source, "offset", reason',
    "quarantine": 'source, "offset", kind, rule, key, selection_id',
}


@dataclass(frozen=True)
class Queue:
    """Where the alerts of a job wait.

    Attributes:
        root: the place of the job's tables.
        cursor_file: for the name of a target, where its cursor is kept.
        checkpoint_id: the id of the job's checkpoint.
        done: the last batch of which all rows are there; -1 if none is.
        is_new: True before the checkpoint has its id for good: a start that ended before had another one, so
            its cursors are none of this checkpoint.
    """

    root: AnyPath
    cursor_file: Callable[[str], AnyPath]
    checkpoint_id: str
    done: int
    is_new: bool = False


@dataclass(frozen=True)
class Place:
    """How far a table was sent.

    Attributes:
        batch: the first batch whose rows were not all sent.
        row: how many of its rows were sent.
    """

    batch: int
    row: int = 0


@dataclass(frozen=True)
class Sending:
    """The piece that is being sent: rows of a table from its place to the row `until` of the same batch."""

    table: str
    until: int


@dataclass(frozen=True)
class Failure:
    """The last failure of a target: since when it is this one (UTC), what it was, and whether it is over."""

    at: str
    text: str
    over: bool = False


@dataclass(frozen=True)
class Cursor:
    """How far a target has come.

    Attributes:
        places: of the tables whose rows it is sent.
        sending: the piece that is being sent; None if none is.
        failure: the last failure; None if there was none.
    """

    places: dict[str, Place]
    sending: Sending | None = None
    failure: Failure | None = None

    def at(self, table: str, place: Place) -> Cursor:
        """This cursor with another place of a table."""
        return replace(self, places={**self.places, table: place})


def short(checkpoint_id: str) -> str:
    """Of the id of a checkpoint the beginning, which alerts and cursors have in them."""
    return checkpoint_id[:8]


def read_cursor(path: AnyPath, checkpoint: str) -> Cursor | None:
    """The cursor in a file of a checkpoint with the id of which `short` is `checkpoint`; None without one.

    Raises:
        StateError: the file is damaged.
    """
    try:
        stored = read_json(path, checkpoint)
        return None if stored is None else _cursor(stored)
    except (StateError, KeyError, TypeError, AttributeError) as error:
        do = "Restore the whole checkpoint, or remove this file: its target then begins as a new one."
        raise StateError(f"{path} — must be as this program wrote it; got another content. {do}") from error


def write_cursor(path: AnyPath, cursor: Cursor, checkpoint: str) -> None:
    """Write a cursor to its file."""
    write_json(path, asdict(cursor), checkpoint)


def _cursor(stored: dict[str, Any]) -> Cursor:
    places = {table: Place(**place) for table, place in stored["places"].items()}
    sending, failure = stored["sending"], stored["failure"]
    return Cursor(places, sending and Sending(**sending), failure and Failure(**failure))


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
        """About how many rows for the target a batch has written, by its report; 0 if it has none.

        Of many bad records of a file one row tells, so those of a batch count as one.
        """
        if self.table == MATCHES:
            return sum(n for rule, n in batch.matches.items() if self._rules is None or rule in self._rules)
        return batch.late if self.table == "late" else min(batch.quarantined, 1)

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


_APPENDING = threading.Lock()  # all targets of a job add to one table


def add_refused(root: AnyPath, target: str, refusals: Sequence[Refusal]) -> None:
    """Append alerts that a target has refused to the table of them, which is made with its first row."""
    now, place = datetime.now(timezone.utc), root / REFUSED
    rows = [(now, target, one.alert.id, one.status, one.reply, one.alert.text) for one in refusals]
    named = [dict(zip(REFUSED_SCHEMA.names, row, strict=True)) for row in rows]
    table, options = pa.Table.from_pylist(named, REFUSED_SCHEMA), store_options(place)
    with _APPENDING, told_by_store(place):
        write_deltalake(str(place), table, mode="append", storage_options=options)
