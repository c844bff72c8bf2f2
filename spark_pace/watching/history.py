"""What the batches of a job did: the last of them one by one, and sums over all, however long the job runs.

Who looks often reads each time only what is new in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.errors import StateError
from spark_pace.io.delta_rs import tables_in
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import METRICS_SCHEMA, Counts, null_in_all
from spark_pace.io.query import Tables

MOST_BATCHES = 10_000  # that are kept one by one
MOST_BARS = 64  # of the matches of a rule over time
_LATELY = 10
_LEAST_BAR_US = 1_000_000
_ROWS_AT_ONCE = 5_000
COUNTED = [counter.name for counter in fields(Counts)]
_SUMMED = ("seconds", "batch_seconds", *COUNTED, "matches")
_TIMES = ("written_at", "frontier", "max_event_time")
_STANDING = ("pending", "carry", "open", "state_bytes", "idle_sources", "idle_names", "unheard_sources")
_COLUMNS = (
    *("batch_id", *_TIMES, *_SUMMED, "matches_by_rule", *_STANDING),
    *("slowest_source", "finished", "over_bound", "absent"),
)
_PAIRS = pa.list_(pa.struct({"key": pa.string(), "value": pa.int64()}))
_SCHEMA = pa.schema(
    {name: _PAIRS if name == "matches_by_rule" else METRICS_SCHEMA.field(name).type for name in _COLUMNS}
)


@dataclass(frozen=True)
class History:
    """The history of a job up to some batch.

    Attributes:
        batches: of the last batches the columns of `metrics` that are needed, a row for each, in order.
        sums: over all batches, by column; `timed_batches` are those of which `batch_seconds` is known.
        greatest: the greatest `batch_seconds` and `max_event_time` of all batches; None before the first.
        totals: of each rule with matches: their number, and when the last was written.
        absent: the attributes that no record had, as far as batches tell; None if none does.
    """

    batches: pa.Table
    sums: Mapping[str, float]
    greatest: Mapping[str, Any]
    totals: Mapping[str, tuple[int, datetime]]
    absent: set[str] | None = None

    def after(self, rows: pa.Table) -> History:
        """The history with further rows of `metrics`, in any order."""
        rows = rows.select(_COLUMNS).cast(_SCHEMA)
        added = {"batches": rows.num_rows, "timed_batches": pc.count(rows["batch_seconds"]).as_py()}
        added |= {name: pc.sum(rows[name]).as_py() or 0 for name in _SUMMED}
        greatest, totals = dict(self.greatest), dict(self.totals)
        for name in ("batch_seconds", "max_event_time"):
            there = (one for one in (greatest.get(name), pc.max(rows[name]).as_py()) if one is not None)
            greatest[name] = max(there, default=None)
        for rule, matches, at in zip(*(column.to_pylist() for column in _totals(rows)), strict=True):
            before, last = totals.get(rule, (0, at))
            totals[rule] = before + matches, max(last, at)
        batches = pa.concat_tables([self.batches, rows]).combine_chunks()
        if (np.diff(batches["batch_id"].to_numpy()) < 0).any():
            batches = batches.sort_by("batch_id")
        return History(
            batches.slice(max(0, batches.num_rows - MOST_BATCHES)),
            {name: self.sums.get(name, 0) + number for name, number in added.items()},
            greatest,
            totals,
            null_in_all([self.absent, *rows["absent"].to_pylist()]),
        )

    @property
    def last(self) -> dict[str, Any] | None:
        """The row of the last batch; None before the first."""
        count = self.batches.num_rows
        return self.batches.slice(count - 1).to_pylist()[0] if count else None

    @property
    def newest(self) -> datetime | None:
        """The time of the newest event of all batches, for the last one may have none; None before it."""
        newest: datetime | None = self.greatest["max_event_time"]
        return newest

    def lately(self) -> pa.Table:
        """The last few rows of `batches`."""
        return self.batches.slice(max(0, self.batches.num_rows - _LATELY))

    def matrix(self, rules: list[str]) -> tuple[list[int], list[list[int]]]:
        """When stretches of time begin, in us since 1970, and the matches of each rule in each of them."""
        found = _by_rule(self.batches)
        if not found.num_rows:
            return [], [[] for _ in rules]
        at = found["at"].cast(pa.int64()).to_numpy()
        step = max(_LEAST_BAR_US, (at.max() - at.min()) // MOST_BARS + 1)
        ends = np.arange(at.min(), at.max() + 2 * step, step)
        place = pc.index_in(found["rule"], pa.array(rules)).to_numpy()
        bins = (np.arange(len(rules) + 1), ends)
        counts, *_ = np.histogram2d(place, at, bins, weights=found["matches"].to_numpy())
        return ends[:-1].tolist(), counts.astype(np.int64).tolist()


def _by_rule(rows: pa.Table) -> pa.Table:
    """A row for each rule with matches in each batch."""
    counted = rows["matches_by_rule"].combine_chunks()
    entries, written = pc.list_flatten(counted), rows["written_at"].combine_chunks()
    columns = [entries.field("key"), entries.field("value"), written.take(pc.list_parent_indices(counted))]
    return pa.table(columns, ["rule", "matches", "at"])


def _totals(rows: pa.Table) -> pa.Table:
    found = _by_rule(rows).group_by("rule").aggregate([("matches", "sum"), ("at", "max")])
    return found.select(["rule", "matches_sum", "at_max"])


NOTHING = History(_SCHEMA.empty_table(), {}, {}, {}).after(_SCHEMA.empty_table())  # before the first batch


class Seen:
    """What is known of the tables in a place.

    Attributes:
        out: the place.
        history: of all batches.
    """

    def __init__(self, out: str | AnyPath) -> None:
        """Read nothing yet."""
        self.out = tables_in(out)
        self.history = NOTHING
        self._ended = False
        self._answers: dict[str, tuple[int, Any]] = {}

    def look(self) -> None:
        """Read the batches that were written since the last look.

        Raises:
            ConfigError: there is no table yet.
            StateError: a table is damaged.
        """
        after = -1 if (last := self.history.last) is None else last["batch_id"]
        tables = Tables(self.out, ["metrics"])
        shown, read, history = tables.columns("metrics", _COLUMNS), list[pa.RecordBatch](), self.history
        for batch in tables.query(f"SELECT {shown} FROM metrics WHERE batch_id > {after}"):
            if self._ended:
                must, do = "must be looked at while the job runs", "Start the job again."
                raise StateError(f"{self.out} — {must}; got its end. {do}")
            read.append(batch)
            if sum(one.num_rows for one in read) >= _ROWS_AT_ONCE:
                history, read = history.after(pa.Table.from_batches(read)), []
        # all of it or, after an error, nothing
        self.history = history.after(pa.Table.from_batches(read)) if read else history

    def end(self) -> None:
        """Let a look that another thread takes end early, in an error."""
        self._ended = True

    def asked(self, table: str, ask: Callable[[Tables], Any]) -> Any:
        """The answer of `ask` to a table in its present state; asked once for each state of it.

        Raises:
            ConfigError: there is no such table.
            StateError: the table is damaged.
        """
        tables = Tables(self.out, [table])
        version = tables.version(table)
        if self._answers.get(table, (None,))[0] != version:
            self._answers[table] = (version, ask(tables))
        return self._answers[table][1]
