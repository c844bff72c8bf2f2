"""The names of the columns that we add to tables of events, and the special numbers in them.

Their names start with "@"; a user's attribute never does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TIME = "@time"  # int64, event time in microseconds since 1970 UTC
SOURCE = "@source"  # dictionary<int32, string>: topic and partition, or path
OFFSET = "@offset"  # int64: offset, or row number
HOME = "@home"  # bool: true in one slot only, which counts the event
BITS = "@bits"  # uint64, @bits0, @bits1, …: a bit for each of the plan's `bit_names`, 64 in a column
KEYS = "@key:"  # dictionary<int32, string>: the text of the partition key; named @key:k, @key:k,l, …
JOIN = "@join"  # dictionary<int32, string>: the join value's text, see `core.split.carry.join_values`
SEQ = "@seq"  # int64: position in the rule's stream, per key
OPENING = "@opening"  # int64: the number of initiators before this event, per key
MASK = "@mask"  # uint16, bit k: the event matches component k, or satisfies condition k of a fold's moves
BEGUN = "@begun"  # int64, of a key: the event time of the first event of its stream
OF_KEY = "@of"  # string, of a group of events with equal values: the text of its partition key
SPENT = "@spent"  # int64: says if a match has used the event up, and where, see UNUSED

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
UNKNOWN_TIME = GREATEST  # a time that has not come; as the frontier: the input has ended
END_OF_INPUT = GREATEST - 1  # the time of what only the end of the input decides
UNKNOWN_CODE = GREATEST  # the code of an unknown position, see `core.match.stream.Positions`
NO_ROW = GREATEST  # greater than every row
NULL_ORDER = LEAST  # the number of null in `value_orders`
NO_FRONTIER = LEAST  # the frontier before the first event
NOTHING_US = LEAST  # a time before all others: there is nothing to wait for
# the low bits of `@spent`; the bits above them are the `seq` of the last event of the match
UNUSED = 0  # the event may still be used
USED = 1  # a match that has gone out has used it
USED_OPEN = 2  # likewise, and the event has opened a selection that stays open until its window ends
SPENT_BITS = 2

MOST_COMPONENTS = 16  # of a pattern, and conditions of a fold's moves: each has a bit of `@mask`
MOST_IN_OPENED_SPANS = 14  # components of a pattern in a span with `open`, which has the last two bits
OPEN_BIT = MOST_IN_OPENED_SPANS  # bit of `@mask`: the event satisfies the span's `open`
CLOSE_BIT = OPEN_BIT + 1  # bit of `@mask`: the event satisfies the part of `close` about one event

UTC_TIME = pa.timestamp("us", "UTC")  # the type of every time in a result table

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def has_bit(words: npt.NDArray[Any], bit: int) -> Bools:
    """bool[n]: which of some unsigned integers have the bit set."""
    return words & words.dtype.type(1 << bit) != 0  # type: ignore[no-any-return]


def marks_of(spent: Ints) -> Ints:
    """int64[n]: `UNUSED`, `USED` or `USED_OPEN` for each value of `SPENT`."""
    return spent & ((1 << SPENT_BITS) - 1)
