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
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import METRICS_SCHEMA, Counts, null_in_all
from spark_pace.io.query import Tables, tables_in

MOST_BATCHES = 10_000  # that are kept one by one
MOST_COUNTS = 200_000  # of the matches of a rule in a batch that are kept one by one
MOST_BARS = 64  # of the matches of a rule over time
_LATELY = 10
_MOST_PIECES = 64  # in which the columns of a table lie
_LEAST_BAR_US = 1_000_000
_ROWS_AT_ONCE = 5_000
COUNTED = [counter.name for counter in fields(Counts)]
_SUMMED = ("seconds", "batch_seconds", *COUNTED, "matches")
_TIMES = ("written_at", "frontier", "max_event_time")
_STANDING = ("pending", "carry", "open", "state_bytes", "idle_sources", "idle_names", "unheard_sources")
_COLUMNS = (
    *("batch_id", *_TIMES, *_SUMMED, *_STANDING),
    *("slowest_source", "finished", "over_bound", "absent"),
)
_BY_RULE = "matches_by_rule"
_PAIRS = pa.list_(pa.struct({"key": pa.string(), "value": pa.int64()}))
_SCHEMA = pa.schema({name: METRICS_SCHEMA.field(name).type for name in _COLUMNS} | {_BY_RULE: _PAIRS})


@dataclass(frozen=True)
class History:
    """The history of a job up to some batch.

    Attributes:
        batches: of the last batches the columns of `metrics` that are needed, a row for each, in order.
        by_rule: a row for each rule with matches in each of the last batches; of many rules, of fewer.
        sums: over all batches, by column; `timed_batches` are those of which `batch_seconds` is known.
        greatest: the greatest `batch_seconds` and `max_event_time` of all batches; None before the first.
        totals: of each rule with matches: their number, and when the last was written.
        absent: the attributes that no record had, as far as batches tell; None if none does.
        stands: the greatest frontier, and when the first batch with it was written; None before the first.
        came: when the first and the last of the batches that had records were written, and how many there
            are; None before the first.
    """

    batches: pa.Table
    by_rule: pa.Table
    sums: Mapping[str, float]
    greatest: Mapping[str, Any]
    totals: Mapping[str, tuple[int, datetime]]
    absent: set[str] | None = None
    stands: tuple[datetime, datetime] | None = None
    came: tuple[datetime, datetime, int] | None = None

    def after(self, rows: pa.Table) -> History:
        """The history with further rows of `metrics`, in any order."""
        rows = rows.select(_SCHEMA.names).cast(_SCHEMA)
        added = {"batches": rows.num_rows, "timed_batches": pc.count(rows["batch_seconds"]).as_py()}
        added |= {name: pc.sum(rows[name]).as_py() or 0 for name in _SUMMED}
        greatest, totals = dict(self.greatest), dict(self.totals)
        for name in ("batch_seconds", "max_event_time"):
            there = (one for one in (greatest.get(name), pc.max(rows[name]).as_py()) if one is not None)
            greatest[name] = max(there, default=None)
        counts = _by_rule(rows)
        for rule, matches, at in zip(*(column.to_pylist() for column in _totals(counts)), strict=True):
            before, last = totals.get(rule, (0, at))
            totals[rule] = before + matches, max(last, at)
        batches = pa.concat_tables([self.batches, rows.select(_COLUMNS)])
        by_rule = pa.concat_tables([self.by_rule, counts])
        if (np.diff(batches["batch_id"].to_numpy()) < 0).any():
            batches, by_rule = batches.sort_by("batch_id"), by_rule.sort_by("at")
        return History(
            _last(batches, MOST_BATCHES),
            _last(by_rule, MOST_COUNTS),
            {name: self.sums.get(name, 0) + number for name, number in added.items()},
            greatest,
            totals,
            null_in_all([self.absent, *rows["absent"].to_pylist()]),
            _stands(self.stands, rows),
            _came(self.came, rows),
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
        return _last(self.batches, _LATELY)

    def matrix(self, rules: list[str]) -> tuple[list[int], list[list[int]]]:
        """When stretches of time begin, in us since 1970, and the matches of each rule in each of them."""
        is_drawn = pc.greater_equal(self.by_rule["at"], pc.min(self.batches["written_at"]))
        found = self.by_rule.filter(is_drawn)
        if not found.num_rows:
            return [], [[] for _ in rules]
        at = found["at"].cast(pa.int64()).to_numpy()
        step = max(_LEAST_BAR_US, (at.max() - at.min()) // MOST_BARS + 1)
        ends = np.arange(at.min(), at.max() + 2 * step, step)
        place = pc.index_in(found["rule"], pa.array(rules)).to_numpy()
        bins = (np.arange(len(rules) + 1), ends)
        counts, *_ = np.histogram2d(place, at, bins, weights=found["matches"].to_numpy())
        return ends[:-1].tolist(), counts.astype(np.int64).tolist()


def _last(rows: pa.Table, most: int) -> pa.Table:
    """The last rows, which are not copied for each batch that comes."""
    last = rows.slice(max(0, rows.num_rows - most))
    is_cut = rows[0].num_chunks > _MOST_PIECES or rows.num_rows > 2 * most
    return last.combine_chunks() if is_cut else last


def _stands(before: tuple[datetime, datetime] | None, rows: pa.Table) -> tuple[datetime, datetime] | None:
    frontier = pc.max(rows["frontier"])
    since = pc.min(rows["written_at"].filter(pc.equal(rows["frontier"], frontier)))
    known = [one for one in (before, (frontier.as_py(), since.as_py())) if one is not None and one[0]]
    return max(known, key=lambda one: (one[0], -one[1].timestamp()), default=None)


def _came(
    before: tuple[datetime, datetime, int] | None, rows: pa.Table
) -> tuple[datetime, datetime, int] | None:
    written = rows["written_at"].filter(pc.greater(rows["records"], 0))
    if not len(written):
        return before
    first, last = (end.as_py() for end in pc.min_max(written).values())
    first_before, last_before, number = before or (first, last, 0)
    return min(first, first_before), max(last, last_before), number + len(written)


def _by_rule(rows: pa.Table) -> pa.Table:
    """A row for each rule with matches in each batch."""
    counted = rows[_BY_RULE].combine_chunks()
    entries, written = pc.list_flatten(counted), rows["written_at"].combine_chunks()
    columns = [entries.field("key"), entries.field("value"), written.take(pc.list_parent_indices(counted))]
    return pa.table(columns, ["rule", "matches", "at"])


def _totals(counts: pa.Table) -> pa.Table:
    found = counts.group_by("rule").aggregate([("matches", "sum"), ("at", "max")])
    return found.select(["rule", "matches_sum", "at_max"])


_NONE = _SCHEMA.empty_table()
NOTHING = History(_NONE.select(_COLUMNS), _by_rule(_NONE), {}, {}, {}).after(_NONE)  # before the first batch


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
        shown, read, history = tables.columns("metrics", _SCHEMA.names), list[pa.RecordBatch](), self.history
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
