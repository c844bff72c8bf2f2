"""The columns that we add to a table of events, and the numbers in them that have a meaning of their own.

Our columns start with "@"; a user's attribute never does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TIME = "@time"  # int64, event time in microseconds since 1970 UTC
SOURCE = "@source"  # dictionary<int32, string>: topic and partition, or path
OFFSET = "@offset"  # int64: offset, or row number
HOME = "@home"  # bool: true in one slot only, which counts and reports the event
BITS = "@bits"  # uint64, @bits0, @bits1, …: what each of the plan's `bit_names` says, 64 in a column
KEYS = "@key:"  # dictionary<int32, string>: the partition key's text; @key:k, @key:k,l, … by partition_by
JOIN = "@join"  # dictionary<int32, string>: the join value's text, see `core.split.carry.join_values`
SEQ = "@seq"  # int64: place in the rule's stream, per key
OPENING = "@opening"  # int64: how many initiators stand before this event, per key
MASK = "@mask"  # uint16, bit k: the event matches component k, or satisfies condition k of a fold's moves
SPENT = "@spent"  # int64: whether a match that is out has used the event up, and when, see UNUSED

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
UNKNOWN_TIME = GREATEST  # a time that has not come; as the frontier: the input has ended
END_OF_INPUT = GREATEST - 1  # the time of what only the end of the input decides
UNKNOWN_CODE = GREATEST  # the code of a position that is not known, see `core.match.stream.Positions`
NO_ROW = GREATEST  # stands behind every row
NULL_ORDER = LEAST  # of null among `value_orders`
NO_FRONTIER = LEAST  # no event has come yet
NOTHING_US = LEAST  # a time before all others: there is nothing to wait for

# `@spent` of an event: one of these, and above these bits the `seq` of the last event of its match
UNUSED = 0  # it may still be used
USED = 1  # a match that is out has used it
USED_OPEN = 2  # the same, and it has opened a selection that is open until its window ends
SPENT_BITS = 2

MOST_CONDITIONS = 16  # of a fold's moves: each has a bit of `@mask`
MOST_COMPONENTS = 8  # of a pattern: each has a bit of `@mask`
OPEN_BIT = MOST_COMPONENTS  # bit of `@mask`: the event satisfies the span's open
CLOSE_BIT = OPEN_BIT + 1  # bit of `@mask`: the event satisfies what the span's close says of one event

UTC_TIME = pa.timestamp("us", "UTC")  # the type of every time in a result table

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def has_bit(words: npt.NDArray[Any], bit: int) -> Bools:
    """bool[n], in which of some unsigned integers the bit is set."""
    return words & words.dtype.type(1 << bit) != 0  # type: ignore[no-any-return]


def marks_of(spent: Ints) -> Ints:
    """int64[n], of values of `SPENT` what is said of the event: `UNUSED`, `USED` or `USED_OPEN`."""
    return spent & ((1 << SPENT_BITS) - 1)
