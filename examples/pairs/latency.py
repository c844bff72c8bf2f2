"""The latencies of answers: from the tick that closes their period to the commit that makes them visible.

Sources: Mendes 2013, sections 7.3.4 (inputTS), 7.3.6 and 7.3.7 (only the measured interval counts).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from examples.pairs.ticks import Floats, Setting
from examples.pairs.validation import INDICATORS, ORDERS
from spark_pace_bench.delta_log import commits


@dataclass
class Sent:
    """The files that came when their ticks were due.

    Attributes:
        began: when second 0 of the ticks was due, seconds since 1970.
        last: the time of the last tick of each file, milliseconds.
        at: when each file was there, seconds since 1970.
    """

    began: float = 0.0
    last: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    def note(self, last: int, at: float) -> None:
        """Note one more file."""
        self.last.append(last)
        self.at.append(at)


@dataclass(frozen=True)
class Latencies:
    """Of the answers of a stream in the measured interval, seconds.

    Attributes:
        from_append: from when the file with the closing tick was there.
        from_due: from when the period was over.
    """

    from_append: Floats
    from_due: Floats


def latencies(table: Path, sent: Sent, setting: Setting) -> dict[str, Latencies]:
    """Those of the rules `INDICATORS` and `ORDERS`, by the log of the table `matches`."""
    parts = [_of_file(path, commit.committed) for commit in commits(table) for path in commit.files]
    found = pa.concat_tables(parts)
    ends = pc.divide(found["matched_at"].cast(pa.int64()), 1000).to_numpy()
    begin, end = (1000 * second for second in setting.measured)
    # the tick that closes a period is in the first file whose last tick is not before the period's end
    files = np.searchsorted(sent.last, ends)
    is_measured = (ends > begin) & (ends <= end) & (files < len(sent.last))
    of_rules = {}
    for rule in (INDICATORS, ORDERS):
        rows = np.flatnonzero(pc.equal(found["rule"], rule).to_numpy() & is_measured)
        committed = found["committed"].to_numpy()[rows]
        appended = np.array(sent.at)[files[rows]]
        of_rules[rule] = Latencies(committed - appended, committed - sent.began - ends[rows] / 1000)
    return of_rules


def _of_file(path: Path, committed: float) -> pa.Table:
    rows = pq.read_table(path, columns=["rule", "matched_at"], partitioning=None)
    rows = rows.set_column(0, "rule", rows["rule"].cast(pa.string()))
    return rows.append_column("committed", pa.array(np.full(rows.num_rows, committed)))
