"""Makes the table of matches of row patterns, whose rows and fields the splitter has found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.match_table import Labels, row_matches
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.split.folds import SELECTION
from spark_pace.core.split.lanes import Lane
from spark_pace.core.split.row_patterns import FIRST, LAST, MATCHED, MEMBERS, ROLES, positions_of
from spark_pace.core.tables import array


def rows_matches(plan: Plan, planned: RulePlan, lane: Lane, stream: Stream) -> pa.Table:
    """The matches of a lane whose rule has a row pattern, as a table."""
    assert lane.selections is not None
    first, members = lane.column(FIRST), array(lane.selections, MEMBERS)
    roles = array(lane.selections, ROLES).values.to_numpy().astype(np.int8)
    offsets, rows = members.offsets.to_numpy().astype(np.int64), members.values.to_numpy()
    found = Found(first, first, np.arange(len(first)), offsets, rows, roles)
    times = stream.time[first], lane.column(MATCHED)
    labels = Labels(lane.column(SELECTION), *times, positions_of(lane))
    fields = lane.selections.select([field.name for field in planned.rule.emit])
    return row_matches(plan, planned, stream, found, labels, (first, lane.column(LAST)), fields)
