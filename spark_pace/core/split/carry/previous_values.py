"""The values that ``prev`` reads: attributes of the events before each event in the stream of its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import MASK, Bools, Ints
from spark_pace.core.expr import EventColumns, Expr, evaluate_mask
from spark_pace.core.plan.plan import RulePlan
from spark_pace.core.plan.previous_tests import LookingBack
from spark_pace.core.ranges import expand
from spark_pace.core.ranks import segments_of
from spark_pace.core.split.carry.carry import Touched
from spark_pace.core.split.carry.key_streams import Fresh
from spark_pace.core.tables import array, chosen, numbers, with_column

Masks = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class InTurn:
    """The events of a batch, grouped by key.

    Attributes:
        order: int64[n], the indices of the events, key by key.
        keys: int64[n], the key of each event in this order, ascending.
        starts: int64[s], the places in `order` where streams begin: at the first event of each key, and
            where a key's stream has ended and its next one begins.
        anew: bool[s], which of these streams are new in this batch.
    """

    order: Ints
    keys: Ints
    starts: Ints
    anew: Bools


def tested(looking_back: LookingBack, touched: Touched, events: pa.Table, turns: InTurn) -> pa.Table:
    """Test the conditions on earlier events: remove the bits of ``@mask`` that do not hold. Add the values.

    The values of each key's last events, in `touched`, are updated.

    Args:
        looking_back: the conditions.
        touched: the keys.
        events: the events of a batch, in stream order, with the attributes of the conditions.
        turns: the same events key by key.
    """
    seen = _seen(looking_back, touched, events, turns)
    for one in looking_back.values:
        events = with_column(events, one.column, array(seen, one.column))
    return with_column(events, MASK, masked(numbers(events, MASK), looking_back.conditions, seen))


def passing(planned: RulePlan, touched: Touched, fresh: Fresh) -> Fresh:
    """The events that pass a filter that looks at earlier events, whether these pass it or not.

    The values of each key's last events, in `touched`, are updated.
    """
    back, events, condition = planned.filtering, fresh.events, planned.rule.filter
    if back is None or events is None or condition is None:
        return fresh
    order = np.argsort(fresh.owner, kind="stable")
    keys = fresh.owner[order]
    starts = segments_of(keys)
    turns = InTurn(order, keys, starts, np.zeros(len(starts), np.bool_))
    passes = evaluate_mask(condition, EventColumns(_seen(back, touched, events, turns)))
    if not back.others_count:
        passes &= numbers(events, MASK) > 0
    later = {*planned.columns}
    later.update(*(one.columns for one in (planned.looking_back, planned.absent) if one is not None))
    events = chosen(events.drop_columns([name for name in back.columns if name not in later]), passes)
    return replace(fresh, events=events if events.num_rows else None, owner=fresh.owner[passes])


def _seen(looking_back: LookingBack, touched: Touched, events: pa.Table, turns: InTurn) -> pa.Table:
    """The columns that conditions on earlier events read; each key's last values are updated."""
    seen = events.select(looking_back.columns)
    for columns in looking_back.last:
        kept = [looking_back.kept_as(one) for one in columns]
        known = [touched.last_values[name] for name in kept]
        earlier = _Earlier(array(events, columns[0].attribute), known, turns)
        for back, (one, name) in enumerate(zip(columns, kept, strict=True), 1):
            seen = with_column(seen, one.column, earlier.of_events(back))
            touched.last_values[name] = earlier.of_keys(back)
    return seen


def masked(mask: Masks, conditions: Sequence[tuple[int, Expr]], events: pa.Table) -> Masks:
    """Remove the bits of the masks whose conditions do not hold."""
    columns = EventColumns(events)
    for bit, condition in conditions:
        holds = evaluate_mask(condition, columns).astype(np.uint16)
        mask = mask & ((holds << np.uint16(bit)) | np.uint16(0xFFFF ^ (1 << bit)))
    return mask


class _Earlier:
    """Looks up an attribute in the events before each new event, and before each key's next event."""

    def __init__(self, new: pa.Array, known: list[pa.Array], turns: InTurn) -> None:
        """Take the new events' values; `known[k]` has each key's value k + 1 events before its next one."""
        self._turns, self._rows, self._keys = turns, len(new), len(known[0])
        self._alone = self._keys == 1 and len(turns.starts) == 1 and not turns.anew[0]
        self._values = pa.concat_arrays([*known[::-1], new] if self._alone else [new, *known])
        self._reach = len(known)

    def of_events(self, back: int) -> pa.Array:
        """For each event the value `back` events before it in its stream; null if there is none."""
        if self._alone:
            return self._values.slice(self._reach - back, self._rows)
        order, starts = self._turns.order, self._turns.starts
        before = np.full(self._rows, -1)
        before[back:] = order[:-back]
        stream, place = expand(starts, np.minimum(starts + back, np.append(starts[1:], self._rows)))
        before[place] = self._carried(stream, back - (place - starts[stream]))
        rows = np.empty(self._rows, np.int64)
        rows[order] = before
        return self._take(rows)

    def of_keys(self, back: int) -> pa.Array:
        """For each key the value `back` events before its next event; null if there is none."""
        if self._alone:
            return self._values.slice(self._reach + self._rows - back, 1)
        turns = self._turns
        behind = np.flatnonzero(np.diff(turns.keys, append=-1)) + 1
        stream = np.searchsorted(turns.starts, behind) - 1
        new = behind - turns.starts[stream]
        rows = self._rows + (back - 1) * self._keys + np.arange(self._keys)
        rows[turns.keys[behind - 1]] = np.where(
            new < back, self._carried(stream, back - new), turns.order[np.maximum(behind - back, 0)]
        )
        return self._take(rows)

    def _carried(self, stream: Ints, back: Ints) -> Ints:
        """The place of the value `back` events before each stream's first new event; -1 if there is none."""
        turns = self._turns
        place = self._rows + (back - 1) * self._keys + turns.keys[turns.starts[stream]]
        return np.where(turns.anew[stream], -1, place)

    def _take(self, rows: Ints) -> pa.Array:
        return self._values.take(pa.array(rows, mask=rows < 0))
