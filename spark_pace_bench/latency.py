"""The latencies of matches: from the last event of each to the commit that made it visible.

Three clocks start at that event: when it was due, when it was sent, and when the job took it into a batch. A
match that names no events of the input (that of an aggregate, or of other rules' matches) ends at the event
of its `matched_at`; if there is none, as at the end of a window of time, this end counts as due and sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_pace_bench.delta_log import commits
from spark_pace_bench.schedule import Floats, Ints
from spark_pace_bench.targets import Target

PERCENTS = (50.0, 90.0, 99.0, 99.9)
KINDS = ("end_to_end", "processing", "scheduled")


@dataclass(frozen=True)
class Sent:
    """What was sent.

    Attributes:
        due: float64[n], when each record was due, seconds since 1970.
        at: float64[n], when it was sent; NaN where it was not.
        taken: float64[n], when the job took it into a batch; NaN where that is not known.
        phase: int64[n], the number of its phase; -1 before the first.
        own_times: the events' times are not those at which they are due.
    """

    due: Floats
    at: Floats
    taken: Floats
    phase: Ints
    own_times: bool = False

    @property
    def due_us(self) -> Ints:
        """The event times, unless events have their own: int64[n], microseconds since 1970."""
        return (self.due * 1e6).astype(np.int64)


@dataclass(frozen=True)
class Latencies:
    """The latencies of m matches, in the order in which they became visible.

    Attributes:
        rule: the name of each match's rule.
        committed: float64[m], when it became visible, seconds since 1970.
        due: float64[m], when its last event was due.
        phase: int64[m], of its last event or its window's end; -1 where neither is known.
        seconds: for each of `KINDS` float64[m].
    """

    rule: list[str]
    committed: Floats
    due: Floats
    phase: Ints
    seconds: Mapping[str, Floats]


def taken_times(batches: Mapping[int, tuple[float, Any]], target: Target, count: int) -> Floats:
    """When each of `count` records was taken into a batch: float64[count], NaN where no batch is known.

    Args:
        batches: by number, when a batch had taken its records, and Spark's offset of the source then.
        target: what knows which records that are.
        count: of records.
    """
    taken = np.full(count, np.nan)
    for batch in sorted(batches, reverse=True):  # an earlier batch overrules: it has read them first
        at, offset = batches[batch]
        taken[target.read_by(offset)] = at
    return taken


def latencies(table: Path, target: Target, sent: Sent, until: float) -> Latencies:
    """Measure the latencies of the matches that became visible up to a time, by their table."""
    parts = [
        _of_file(path, commit.committed)
        for commit in commits(table)
        if commit.committed <= until
        for path in commit.files
    ]
    found = pa.concat_tables([_SCHEMA.empty_table(), *parts])
    committed = found["committed"].to_numpy()
    record = np.full(found.num_rows, -1)
    of_matches = pa.compute.is_in(found["source"], pa.compute.unique(found["rule"]))
    named = np.flatnonzero(found["source"].is_valid().to_numpy() & ~of_matches.to_numpy())
    if len(named):
        sources = found["source"].take(named).to_pylist()
        record[named] = target.numbers(sources, found["offset"].take(named).to_numpy())
    matched_us = found["matched_us"].to_numpy()
    place = np.clip(np.searchsorted(sent.due_us, matched_us, "right") - 1, 0, None)
    there = (sent.due_us[place] == matched_us) & (not sent.own_times)
    record = np.where((record < 0) & there, place, record)
    known = record >= 0
    due = np.where(known, sent.due[record], np.nan if sent.own_times else matched_us / 1e6)
    seconds = {
        "end_to_end": committed - np.where(known, sent.at[record], due),
        "processing": committed - np.where(known, sent.taken[record], np.nan),
        "scheduled": committed - due,
    }
    phase = np.where(known, sent.phase[record], -1 if sent.own_times else sent.phase[place])
    return Latencies(found["rule"].to_pylist(), committed, due, phase, seconds)


_SCHEMA = pa.schema(
    [
        ("rule", pa.string()),
        ("committed", pa.float64()),
        ("matched_us", pa.int64()),
        ("source", pa.string()),  # of the match's last event; null where it names none
        ("offset", pa.int64()),
    ]
)


def _of_file(path: Path, committed: float) -> pa.Table:
    rows = pq.read_table(path, columns=["rule", "matched_at", "events"], partitioning=None).combine_chunks()
    events = rows["events"].combine_chunks()
    events = pa.concat_arrays(events.chunks) if isinstance(events, pa.ChunkedArray) else events
    match = pa.compute.list_parent_indices(events).to_numpy()
    inner = events.flatten()
    order = np.lexsort((inner.field("seq").to_numpy(zero_copy_only=False), match))
    last = order[np.flatnonzero(np.diff(match[order], append=-1))]
    of_match = np.full(rows.num_rows, -1)
    of_match[match[last]] = last
    picked = pa.array(of_match, mask=of_match < 0)
    values = [
        rows["rule"].cast(pa.string()),
        pa.array(np.full(rows.num_rows, committed)),
        rows["matched_at"].cast(pa.int64()),
        inner.field("source").cast(pa.string()).take(picked),
        inner.field("offset").take(picked),
    ]
    return pa.table(values, schema=_SCHEMA)


def percentiles(values: Floats) -> dict[str, float]:
    """Give `p50`, `p90`, `p99`, `p99.9`, `mean`, `least` and `greatest` of the values that are known."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {}
    found = np.percentile(known, PERCENTS)
    named = {f"p{percent:g}": float(value) for percent, value in zip(PERCENTS, found, strict=True)}
    return {**named, "mean": float(known.mean()), "least": float(known.min()), "greatest": float(known.max())}
