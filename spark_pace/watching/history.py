"""What the batches of a job did over time, in few rows however long the job runs.

Time is cut into stretches of 2^n microseconds, and batches that were written in one stretch become one row. A
longer run has longer stretches: two of them are joined to one exactly, so what was read before is never read
again, and who looks often sees what one sees who looks once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.tables import UTC_TIME
from spark_pace.io.metrics import Counts, null_in_all

MOST_POINTS = 512  # stretches of the history
_LATELY = 10
_COARSER = 3  # the stretches of rules are 2^3 times as long
_SHORTEST = 20  # of 2^20 microseconds, about a second
_SUMMED = {
    "batches": pa.int64(),
    "timed_batches": pa.int64(),  # those of which `batch_seconds` is known
    "seconds": pa.float64(),
    "batch_seconds": pa.float64(),
    **{counter.name: pa.int64() for counter in fields(Counts)},
    "matches": pa.int64(),
}
_GREATEST = {
    "written_at": UTC_TIME,
    "longest": pa.float64(),  # the `batch_seconds` of a batch
    "lag_us": pa.int64(),  # by which the frontier is behind the greatest event time of its batch
    **{name: pa.int64() for name in ("pending", "carry", "open", "state_bytes", "idle_sources")},
    "frontier": UTC_TIME,
    "max_event_time": UTC_TIME,
}
_BY_RULE = pa.schema(
    [("rule", pa.string()), ("begins_us", pa.int64()), ("matches", pa.int64()), ("last_us", pa.int64())]
)
_DERIVED = ("batches", "timed_batches", "longest", "lag_us")
COLUMNS = [name for name in (*_SUMMED, *_GREATEST) if name not in _DERIVED]  # of `metrics`, which are needed
COUNTED = [counter.name for counter in fields(Counts)]


@dataclass(frozen=True)
class History:
    """The history of a job up to some batch.

    Attributes:
        batches: a row for each stretch of time in which batches were written, in order: the sums and the
            greatest values of their columns in `metrics`, and what this module adds to them.
        matches: how many matches of each rule were written in each longer stretch, from `begins_us` on, and
            when the last of them was; a row for each rule that has any there.
        stands: the frontier, and when the first batch that had it was written, both in microseconds since
            1970; None if there is no frontier yet.
        came: of the batches that had records when the first and the last were written, in microseconds since
            1970, and how many there are; None before the first.
        absent: the attributes that no record had, as far as batches tell; None if none does.
    """

    batches: pa.Table
    matches: pa.Table
    stands: tuple[int, int] | None = None
    came: tuple[int, int, int] | None = None
    absent: set[str] | None = None

    def after(self, rows: pa.Table) -> History:
        """The history with further rows of `metrics`: `COLUMNS` and `matches_by_rule`."""
        batches = pa.concat_tables([self.batches, _batches(rows)])
        matches = pa.concat_tables([self.matches, _by_rule(rows)])
        power = _power(batches)
        return History(
            _joined(batches, power),
            _joined_by_rule(matches, power + _COARSER),
            _standing(self.stands, rows),
            _came(self.came, rows),
            null_in_all([self.absent, *rows["absent"].to_pylist()]),
        )

    def lately(self) -> pa.Table:
        """The last few rows of `batches`."""
        return self.batches.slice(max(0, self.batches.num_rows - _LATELY))

    def sums(self) -> dict[str, float]:
        """The sums over the whole history, by column."""
        return {name: pc.sum(self.batches[name]).as_py() or 0 for name in _SUMMED}

    def totals(self) -> dict[str, tuple[int, int]]:
        """Of each rule with matches: their number, and when the last was written, in us since 1970."""
        found = self.matches.group_by("rule").aggregate([("matches", "sum"), ("last_us", "max")])
        columns = (found[name].to_pylist() for name in ("rule", "matches_sum", "last_us_max"))
        return {rule: (matches, at) for rule, matches, at in zip(*columns, strict=True)}

    def matrix(self, rules: list[str]) -> tuple[list[int], list[list[int]]]:
        """When stretches begin, in microseconds since 1970, and the matches of each rule in each of them."""
        begins = np.unique(self.matches["begins_us"].to_numpy())
        step = 1 << (_power(self.batches) + _COARSER)
        every = np.arange(begins[0], begins[-1] + step, step) if len(begins) else begins
        counts = np.zeros((len(rules), len(every)), np.int64)
        place = pc.index_in(self.matches["rule"], pa.array(rules, pa.string())).to_numpy()
        counts[place, np.searchsorted(every, self.matches["begins_us"].to_numpy())] = self.matches["matches"]
        return every.tolist(), counts.tolist()


NOTHING = History(
    pa.schema([*_SUMMED.items(), *_GREATEST.items()]).empty_table(), _BY_RULE.empty_table()
)  # before the first batch


def _standing(before: tuple[int, int] | None, rows: pa.Table) -> tuple[int, int] | None:
    frontiers, written = (rows[name].cast(UTC_TIME).cast(pa.int64()) for name in ("frontier", "written_at"))
    last = pc.max(frontiers)
    if not last.is_valid or (before is not None and last.as_py() < before[0]):
        return before
    first = pc.min(written.filter(pc.equal(frontiers, last))).as_py()
    return (
        (last.as_py(), first)
        if before is None or last.as_py() > before[0]
        else (before[0], min(before[1], first))
    )


def _came(before: tuple[int, int, int] | None, rows: pa.Table) -> tuple[int, int, int] | None:
    written = rows["written_at"].filter(pc.greater(rows["records"], 0)).cast(UTC_TIME).cast(pa.int64())
    if not len(written):
        return before
    first, last = (value.as_py() for value in pc.min_max(written).values())
    if before is None:
        return first, last, len(written)
    return min(first, before[0]), max(last, before[1]), len(written) + before[2]


def _batches(rows: pa.Table) -> pa.Table:
    columns = {name: rows[name] for name in COLUMNS}
    columns["batches"] = pa.array(np.ones(rows.num_rows, np.int64))
    columns["timed_batches"] = rows["batch_seconds"].is_valid()
    columns["longest"] = rows["batch_seconds"]
    times = (rows[name].cast(UTC_TIME).cast(pa.int64()) for name in ("max_event_time", "frontier"))
    columns["lag_us"] = pc.max_element_wise(pc.subtract(*times), 0, skip_nulls=False)
    schema = NOTHING.batches.schema
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def _by_rule(rows: pa.Table) -> pa.Table:
    """A row for each rule with matches in each batch."""
    counted = rows["matches_by_rule"].combine_chunks()
    counted = counted.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())])))
    entries, parents = pc.list_flatten(counted), pc.list_parent_indices(counted)
    written = rows["written_at"].cast(UTC_TIME).cast(pa.int64()).combine_chunks().take(parents)
    found = [entries.field("key"), written, entries.field("value"), written]
    return pa.table(found, schema=_BY_RULE)


def _power(batches: pa.Table) -> int:
    """The n of the shortest stretches, of 2^n microseconds, of which there are no more than `MOST_POINTS`."""
    if not batches.num_rows:
        return _SHORTEST
    bounds = pc.min_max(batches["written_at"].cast(pa.int64()))
    first, last = (value.as_py() for value in bounds.values())
    power = _SHORTEST
    while (last >> power) - (first >> power) >= MOST_POINTS:
        power += 1
    return power


def _joined(batches: pa.Table, power: int) -> pa.Table:
    stretch = pc.shift_right(batches["written_at"].cast(pa.int64()), power)
    kinds = [*((name, "sum") for name in _SUMMED), *((name, "max") for name in _GREATEST)]
    joined = batches.append_column("stretch", stretch).group_by("stretch").aggregate(kinds)
    joined = joined.sort_by("stretch")
    columns = [joined[f"{name}_{kind}"] for name, kind in kinds]
    return pa.table(columns, schema=batches.schema)


def _joined_by_rule(matches: pa.Table, power: int) -> pa.Table:
    begins = pc.shift_left(pc.shift_right(matches["begins_us"], power), power)
    cut = matches.set_column(1, "begins_us", begins)
    joined = cut.group_by(["rule", "begins_us"]).aggregate([("matches", "sum"), ("last_us", "max")])
    return joined.rename_columns(_BY_RULE.names).cast(_BY_RULE)
