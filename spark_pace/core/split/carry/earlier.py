"""What `prev` reads: the attributes of the events before each event in the stream of its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import MASK, Bools, Ints, array, numbers, with_column
from spark_pace.core.expr import EventColumns, Expr, evaluate_mask
from spark_pace.core.plan.looking_back import LookingBack
from spark_pace.core.split.carry.carry import Touched

Masks = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class InTurn:
    """The events of a batch, those of one key after those of another.

    Attributes:
        order: int64[n], the events.
        keys: int64[n], the key of each of them, ascending.
        starts: int64[s], the places in `order` where streams begin: where another key follows, and where the
            stream of one has ended and the next begins.
        anew: bool[s], which of these streams have no events of earlier batches.
    """

    order: Ints
    keys: Ints
    starts: Ints
    anew: Bools


def tested(looking_back: LookingBack, touched: Touched, events: pa.Table, turns: InTurn) -> pa.Table:
    """The events with only those bits left in ``@mask`` whose conditions on earlier events hold.

    What is known of the last events of each key moves on.

    Args:
        looking_back: the conditions.
        touched: the keys.
        events: the events of a batch, in stream order, with the attributes of the conditions.
        turns: the same key by key.
    """
    seen, places = events.select(looking_back.columns), _Places(touched, turns)
    for columns in looking_back.last:
        values = [array(events, columns[0].attribute), *(touched.last_values[one.column] for one in columns)]
        both = pa.concat_arrays(values)
        for back, one in enumerate(columns, 1):
            seen = with_column(seen, one.column, _taken(both, places.of_events(back)))
            touched.last_values[one.column] = _taken(both, places.of_keys(back))
    return with_column(events, MASK, masked(numbers(events, MASK), looking_back.conditions, seen))


def masked(mask: Masks, conditions: Sequence[tuple[int, Expr]], events: pa.Table) -> Masks:
    """The masks without the bits whose conditions do not hold."""
    columns = EventColumns(events)
    for bit, condition in conditions:
        left_out = np.where(evaluate_mask(condition, columns), np.uint16(0), np.uint16(1 << bit))
        mask = mask & ~left_out
    return mask


def _taken(values: pa.Array, rows: Ints) -> pa.Array:
    return values.take(pa.array(rows, mask=rows < 0))


class _Places:
    """Where values stand: those of the new events, then of each key's last event, then of the one before."""

    def __init__(self, touched: Touched, turns: InTurn) -> None:
        count = len(turns.order)
        self._turns, self._count, self._touched = turns, count, len(touched.texts)
        self._stream = np.repeat(np.arange(len(turns.starts)), np.diff(np.append(turns.starts, count)))

    def of_events(self, back: int) -> Ints:
        """int64[n], for each event the place of the one so far before it in its stream; -1 for none."""
        rows = np.empty(self._count, np.int64)
        rows[self._turns.order] = self._before(np.arange(self._count), self._stream, back)
        return rows

    def of_keys(self, back: int) -> Ints:
        """int64[k], for each key the place of the event so far before the one that comes next."""
        keys = self._turns.keys
        last = np.flatnonzero(np.diff(keys, append=-1))
        rows = self._count + (back - 1) * self._touched + np.arange(self._touched)
        rows[keys[last]] = self._before(last + 1, self._stream[last], back)
        return rows

    def _before(self, places: Ints, streams: Ints, back: int) -> Ints:
        """The same for the event at each of some places in the turn of its stream."""
        turns, start = self._turns, self._turns.starts[streams]
        here = places - back
        key = turns.keys[start]
        carried = self._count + (start - here - 1) * self._touched + key
        carried = np.where(turns.anew[streams], -1, carried)
        return np.where(here >= start, turns.order[np.maximum(here, 0)], carried)
