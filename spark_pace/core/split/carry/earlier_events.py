"""What is kept of earlier events: those that forbid others, and the values that ``prev`` reads.

Events that forbid are those of negated components in first place; their tests are made here. ``prev`` reads
attributes of the events before each event in the stream of its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.expr import EventColumns, Expr, evaluate_mask
from spark_pace.core.match.absences import Grouped, forbidden_by_steps, grouped, without_bits
from spark_pace.core.plan.earlier_tests import AbsenceTest, AbsenceTests, LookingBack
from spark_pace.core.plan.plan import RulePlan
from spark_pace.core.ranks import expand, segments_of
from spark_pace.core.split.carry.carry import Carry, Touched, Wanted, distinct_texts
from spark_pace.core.split.carry.chunk import LAST, Chunk, without
from spark_pace.core.split.carry.examined_keys import Forgetting
from spark_pace.core.split.carry.key_streams import Fresh
from spark_pace.core.split.task import Batch
from spark_pace.core.tables import (
    BEGUN,
    GREATEST,
    LEAST,
    MASK,
    NO_ROW,
    OF_KEY,
    SEQ,
    TIME,
    Bools,
    Ints,
    array,
    chosen,
    concat,
    numbers,
    with_column,
)

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


EVER_US = 1 << 61  # longer than between any two times
_OF = pa.schema([(OF_KEY, pa.string())])


@dataclass(frozen=True)
class Earlier:
    """The arguments of testing the events of a batch.

    Attributes:
        tests: the tests.
        carry: the unit's carry, of its keys; `Carry.forbidding` is changed in place.
        wanted: what the unit wants of its keys.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
    """

    tests: AbsenceTests
    carry: Carry
    wanted: Wanted
    passed_us: int
    frontier_us: int

    def forgetting(self, test: AbsenceTest) -> Forgetting:
        """When an event is too long ago to forbid another one."""
        after_us = EVER_US if test.within_us is None else test.within_us
        return Forgetting(after_us, self.passed_us, self.frontier_us)


def earlier_events(tests: AbsenceTests | None, carry: Carry, wanted: Wanted, batch: Batch) -> Earlier | None:
    """What `without_forbidden` needs to test the events of a batch; None if the rule has no tests.

    A carry that has no carries for the tests yet gets an empty one for each.
    """
    if tests is None:
        return None
    carry.forbidding = carry.forbidding or [Carry() for _ in tests.tests]
    return Earlier(tests, carry, wanted, batch.passed_us, batch.frontier_us)


def kept_of_keys(tests: AbsenceTests | None) -> pa.Schema:
    """What must be known of each key: when its stream has begun, if events forbid for as long as it lasts."""
    return pa.schema([(BEGUN, pa.int64())] if tests is not None and tests.lasting else [])


def without_forbidden(earlier: Earlier, touched: Touched, events: pa.Table, turns: InTurn) -> pa.Table:
    """Clear the first component's bit of ``@mask`` where an event before forbids it, and the tests' own bits.

    Args:
        earlier: the tests, and the events of earlier batches. The events of this one are added to them.
        touched: the keys; the times at which their streams have begun are updated.
        events: the events of a batch, in stream order, with the attributes of the tests.
        turns: the same events key by key.
    """
    keys = np.empty(events.num_rows, np.int64)
    keys[turns.order] = turns.keys
    since = _begun(touched, numbers(events, TIME), turns) if earlier.tests.lasting else None

    def forbidden() -> Iterator[tuple[AbsenceTest, Ints]]:
        for test, carry in zip(earlier.tests.tests, earlier.carry.forbidding, strict=True):
            _prune(earlier, test, carry)
            yield test, _forbidden(_Asking(earlier, test, carry), touched, events, (keys, since))

    return without_bits(events, forbidden())


def _begun(touched: Touched, time: Ints, turns: InTurn) -> Ints:
    """int64[n], when the stream of each event's key has begun; the times in `touched` are updated."""
    order, keys, starts = turns.order, turns.keys, turns.starts
    known = touched.last_values[BEGUN]
    before = pc.fill_null(known, LEAST).to_numpy().copy()
    of_streams = np.where(turns.anew, time[order[starts]], before[keys[starts]])
    in_turn = np.repeat(of_streams, np.diff(np.append(starts, len(keys))))
    before[keys] = in_turn  # of several streams of a key the last one is written last
    touched.last_values[BEGUN] = pa.array(before, mask=before == LEAST)
    begun = np.empty(len(keys), np.int64)
    begun[order] = in_turn
    return begun


@dataclass(frozen=True)
class _Asking:
    """A test with the carry of its events."""

    earlier: Earlier
    test: AbsenceTest
    carry: Carry


def _forbidden(asking: _Asking, touched: Touched, events: pa.Table, keys: tuple[Ints, Ints | None]) -> Ints:
    """The rows of the events that an event before forbids; the events that forbid are added to the carry."""
    test, carry = asking.test, asking.carry
    among = grouped(test, events, keys[0])
    if not len(among.rows):
        return among.rows
    of = touched.texts.take(pa.array(among.keys))
    wanted = Wanted(asking.earlier.forgetting(test), _OF if test.within_us is None else pa.schema([]))
    found = carry.find(_texts([of, *among.values]), wanted)
    if test.within_us is None:
        found.last_values[OF_KEY] = of
    if test.steps is not None:
        return _forbidden_by_search(asking, found, events, among)
    time = numbers(events, TIME)[among.rows]
    last_us = among.last_before(time, found.last)
    ends = np.append(among.starts[1:], len(time)) - 1
    found.last[:] = np.where(among.forbids[ends], time[ends], last_us[ends])
    carry.put(found, np.full(len(of), -1), None, np.zeros(0, np.int64))
    if test.within_us is None:
        assert keys[1] is not None
        least = keys[1][among.rows]
    else:
        least = time - test.within_us
    return among.rows[~among.forbids & (last_us >= least)]


def _texts(columns: Sequence[pa.Array]) -> pa.Array:
    """string[g], a text for each combination of values, another one for each."""
    parts = []
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, 0.0)  # turns -0.0 into 0.0
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        text = column.cast(pa.string())
        parts += [pc.binary_length(text).cast(pa.string()), text]
    return pc.binary_join_element_wise(*parts, ":") if len(parts) > 2 else parts[1]


def _forbidden_by_search(asking: _Asking, found: Touched, events: pa.Table, among: Grouped) -> Ints:
    """Do what `_forbidden` does, with conditions besides equalities: by a search among two events each."""
    test, carry = asking.test, asking.carry
    assert test.steps is not None
    asked = np.zeros(len(among.keys), np.bool_)
    asked[among.group[~among.forbids]] = True
    old, owner = carry.events_of(found, asked)
    new = asked[among.group]
    rows, forbids, group = among.rows[new], among.forbids[new], among.group[new]
    names = [name for name in events.column_names if name in {TIME, *asking.earlier.tests.columns}]
    seen = events.select(names).take(pa.array(rows))
    if old is not None:
        missing = {name: pa.nulls(len(owner), seen.schema.field(name).type) for name in names}
        known = {name: array(old, name) for name in names if name in old.column_names}
        seen = concat([pa.table(missing | known), seen])
    forbids = np.append(np.ones(len(owner), np.bool_), forbids)
    forbidden = forbidden_by_steps(test.steps, seen, forbids, np.append(owner, group))
    _keep(asking, found, (old, owner, asked), (events, among))
    return rows[forbidden - len(owner)]


def _keep(
    asking: _Asking,
    found: Touched,
    looked_at: tuple[pa.Table | None, Ints, Bools],
    new: tuple[pa.Table, Grouped],
) -> None:
    """Add the events that forbid to the carry, and let go of those that can forbid no later event.

    Args:
        asking: the test and its carry.
        found: the groups.
        looked_at: the carried events that were read, int64[n], the group of each, and bool[g], which groups
            they are of: of the others, events that are too old stay until they are read.
        new: the events of the batch, and their groups.
    """
    (old, owner, asked), (events, among) = looked_at, new
    _, bound = asking.earlier.forgetting(asking.test).bounds()
    since = np.where(found.next_seq == 0, NO_ROW, np.where(asked, found.next_seq, -1))
    found.rows[asked] = 0
    if old is not None:
        alive = numbers(old, TIME) >= bound
        np.minimum.at(since, owner[alive], numbers(old, SEQ)[alive])
        found.rows[:] += np.bincount(owner[alive], minlength=len(asked))
    forbids = np.flatnonzero(among.forbids)
    group, time = among.group[forbids], numbers(events, TIME)[among.rows[forbids]]
    found.last[group] = time  # of several events of a group the last one is written last
    forbids, group = forbids[time >= bound], group[time >= bound]
    first = np.searchsorted(group, group)
    seq = found.next_seq[group] + np.arange(len(group)) - first
    found.next_seq[:] += np.bincount(group, minlength=len(asked))
    found.rows[:] += np.bincount(group, minlength=len(asked))
    kept = events.select([TIME, *asking.test.columns]).take(pa.array(among.rows[forbids]))
    asking.carry.put(found, since, with_column(kept, SEQ, seq), group)


def _prune(earlier: Earlier, test: AbsenceTest, carry: Carry) -> None:
    """Remove what can forbid no event any more, once about as much has been added as was left the last time.

    It is called before the events of a batch are added, neither here nor to the carry of keys.
    """
    bound, _ = earlier.forgetting(test).bounds()
    carry.chunks = [one for one in carry.chunks if one.ranges.get(LAST, (LEAST, LEAST))[1] >= bound]
    if not ways.is_pruned(sum(chunk.weight for chunk in carry.chunks), carry.left):
        return
    chunks = [without(chunk, np.flatnonzero(_too_old(earlier, test, chunk, bound))) for chunk in carry.chunks]
    carry.chunks = [chunk for chunk in chunks if chunk.weight]
    carry.keys = sum(chunk.keys.num_rows for chunk in carry.chunks)
    carry.left = sum(chunk.weight for chunk in carry.chunks)


def _too_old(earlier: Earlier, test: AbsenceTest, chunk: Chunk, bound: int) -> Bools:
    """bool[k], the groups of a chunk whose last event can forbid no later one."""
    last_us = chunk.column(LAST)
    if test.within_us is not None:
        return last_us < bound
    of = array(chunk.keys, OF_KEY)
    keys = distinct_texts([of])
    begun = pc.fill_null(earlier.carry.find(keys, earlier.wanted).last_values[BEGUN], GREATEST).to_numpy()
    ended: Bools = last_us < begun[pc.index_in(of, value_set=keys).to_numpy()]
    return ended
