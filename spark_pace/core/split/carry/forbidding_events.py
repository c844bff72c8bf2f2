"""The events that forbid others: the tests of negated components in first place, and what is kept for them.

For each such component a unit keeps a carry of its own. Its keys are the texts of a partition key together
with the values in which the conditions say that both events are equal. Of each it keeps the time of the last
event, and the events themselves only where other conditions read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.columns import BEGUN, GREATEST, LEAST, MASK, OF_KEY, SEQ, TIME, Bools, Ints, has_bit
from spark_pace.core.expr import EventColumns, evaluate
from spark_pace.core.match.first import greatest
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.absence_tests import AbsenceTest, AbsenceTests
from spark_pace.core.ranks import distinct, segments_of
from spark_pace.core.split.batch import Batch
from spark_pace.core.split.carry.carry import Carry, Touched, Wanted, distinct_texts
from spark_pace.core.split.carry.chunk import LAST, Chunk, without
from spark_pace.core.split.carry.forgotten_keys import Forgetting
from spark_pace.core.split.carry.previous_values import InTurn
from spark_pace.core.tables import array, concat, numbers, with_column

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
    """The arguments of the tests in a batch; None if there are no tests. A new carry gets those it needs."""
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
    mask = numbers(events, MASK)
    keys = np.empty(len(mask), np.int64)
    keys[turns.order] = turns.keys
    since = _begun(touched, numbers(events, TIME), turns) if earlier.tests.lasting else None
    cleared = np.zeros(len(mask), np.uint16)
    for place, test in enumerate(earlier.tests.tests):
        asking = _Asking(earlier, test, earlier.carry.forbidding[place])
        _prune(earlier, test, asking.carry)
        cleared |= np.uint16(1 << test.bit)
        cleared[_forbidden(asking, touched, events, (keys, since))] |= 1
    return with_column(events, MASK, mask & ~cleared)


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


@dataclass(frozen=True)
class _Grouped:
    """The events that forbid, and those that may be forbidden, in groups of the same key and equal values.

    Attributes:
        texts: string[g], a text for each group.
        of: string[g], its key.
        group: int64[m], ascending.
        rows: int64[m], the events, which ascend in each group. An event that forbids others of its group, and
            may be forbidden itself, is there twice: first as the latter.
        forbids: bool[m], which of them forbid.
    """

    texts: pa.Array
    of: pa.Array
    group: Ints
    rows: Ints
    forbids: Bools


def _forbidden(asking: _Asking, touched: Touched, events: pa.Table, keys: tuple[Ints, Ints | None]) -> Ints:
    """The rows of the events that an event before forbids; the events that forbid are added to the carry."""
    test, carry = asking.test, asking.carry
    grouped = _grouped(test, touched.texts, events, keys[0])
    if not len(grouped.rows):
        return grouped.rows
    wanted = Wanted(asking.earlier.forgetting(test), _OF if test.within_us is None else pa.schema([]))
    found = carry.find(grouped.texts, wanted)
    if test.within_us is None:
        found.last_values[OF_KEY] = grouped.of
    if test.steps is not None:
        return _forbidden_by_search(asking, found, events, grouped)
    time = numbers(events, TIME)[grouped.rows]
    last_us = _last_before(grouped, time, found.last)
    ends = np.append(segments_of(grouped.group)[1:], len(time)) - 1
    found.last[:] = np.where(grouped.forbids[ends], time[ends], last_us[ends])
    carry.put(found, np.full(len(grouped.texts), -1), None, np.zeros(0, np.int64))
    if test.within_us is None:
        assert keys[1] is not None
        least = keys[1][grouped.rows]
    else:
        least = time - test.within_us
    return grouped.rows[~grouped.forbids & (last_us >= least)]


def _last_before(grouped: _Grouped, time: Ints, known: Ints) -> Ints:
    """int64[m], for each event the time of the last one before it in its group that forbids.

    Args:
        grouped: the events.
        time: int64[m], their times.
        known: int64[g], the time of the last event of each group in earlier batches; `NOTHING_US` if none.
    """
    count = len(time)
    at = np.where(grouped.forbids, np.arange(count), -1)
    before = np.append(-1, np.maximum.accumulate(at)[:-1])
    starts = segments_of(grouped.group)
    first = np.repeat(starts, np.diff(np.append(starts, count)))
    return np.where(before >= first, time[before], known[grouped.group])


def _grouped(test: AbsenceTest, texts: pa.Array, events: pa.Table, keys: Ints) -> _Grouped:
    """Group the events of a test; those with a null among the values that must be equal are in no group."""
    mask = numbers(events, MASK)
    negated, first = (np.flatnonzero(has_bit(mask, bit)) for bit in (test.bit, 0))
    rows, forbids = np.append(negated, first), np.arange(len(negated) + len(first)) < len(negated)
    columns = _values(test, events, (negated, first))
    known = np.ones(len(rows), np.bool_)
    for column in columns:
        known &= pc.is_valid(column).to_numpy(zero_copy_only=False)
    if not known.all():
        rows, forbids = rows[known], forbids[known]
        columns = [column.filter(pa.array(known)) for column in columns]
    one_of, group = distinct([pa.array(keys[rows]), *columns])
    order = np.argsort(2 * (group * len(mask) + rows) + forbids)
    of = texts.take(pa.array(keys[rows[one_of]]))
    names = _texts([of, *(column.take(pa.array(one_of)) for column in columns)])
    return _Grouped(names, of, group[order], rows[order], forbids[order])


def _values(test: AbsenceTest, events: pa.Table, rows: tuple[Ints, Ints]) -> list[pa.Array]:
    """The values that must be equal, for each pair: of the events that forbid, then of the others."""
    tables = [EventColumns(events.take(pa.array(of_side))) for of_side in rows]
    return [
        pa.concat_arrays([evaluate(side, table) for side, table in zip(pair, tables, strict=True)])
        for pair in test.equal
    ]


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


def _forbidden_by_search(asking: _Asking, found: Touched, events: pa.Table, grouped: _Grouped) -> Ints:
    """Do what `_forbidden` does, with conditions besides equalities: by a search among two events each."""
    test, carry = asking.test, asking.carry
    assert test.steps is not None
    asked = np.zeros(len(grouped.texts), np.bool_)
    asked[grouped.group[~grouped.forbids]] = True
    old, owner = carry.events_of(found, asked)
    new = asked[grouped.group]
    names = [name for name in events.column_names if name in {TIME, *asking.earlier.tests.columns}]
    tables = [events.select(names).take(pa.array(grouped.rows[new]))]
    mask = np.where(grouped.forbids[new], 1, 2)
    if old is not None:
        missing = {name: pa.nulls(len(owner), tables[0].schema.field(name).type) for name in names}
        of_old = {name: array(old, name) for name in names if name in old.column_names}
        tables, mask = [pa.table(missing | of_old), *tables], np.append(np.ones(len(owner)), mask)
    group = np.append(owner, grouped.group[new])
    order = np.argsort(group, kind="stable")
    seen = concat(tables).take(pa.array(order))
    seen = with_column(with_column(seen, MASK, mask[order].astype(np.uint16)), SEQ, np.arange(len(order)))
    search = Search(Stream(seen, segments_of(group[order])), test.steps)
    last = search.terminators
    matrix, _ = greatest(search, last, window_start(search.stream, last, test.steps.within))
    rows = np.append(np.full(len(owner), -1), grouped.rows[new])[order]
    _keep(asking, found, (old, owner, asked), (events, grouped))
    return rows[matrix[:, -1]]


def _keep(
    asking: _Asking,
    found: Touched,
    looked_at: tuple[pa.Table | None, Ints, Bools],
    new: tuple[pa.Table, _Grouped],
) -> None:
    """Add the events that forbid to the carry, and let go of those that can forbid no later event.

    Args:
        asking: the test and its carry.
        found: the groups.
        looked_at: the carried events that were read, int64[n], the group of each, and bool[g], which groups
            they are of: of the others, events that are too old stay until they are read.
        new: the events of the batch, and their groups.
    """
    (old, owner, asked), (events, grouped) = looked_at, new
    _, bound = asking.earlier.forgetting(asking.test).bounds()
    since = np.where(asked, found.next_seq, -1)
    found.rows[asked] = 0
    if old is not None:
        alive = numbers(old, TIME) >= bound
        np.minimum.at(since, owner[alive], numbers(old, SEQ)[alive])
        found.rows[:] += np.bincount(owner[alive], minlength=len(asked))
    forbids = np.flatnonzero(grouped.forbids)
    group, time = grouped.group[forbids], numbers(events, TIME)[grouped.rows[forbids]]
    found.last[group] = time  # of several events of a group the last one is written last
    forbids, group = forbids[time >= bound], group[time >= bound]
    first = np.searchsorted(group, group)
    seq = found.next_seq[group] + np.arange(len(group)) - first
    found.next_seq[:] += np.bincount(group, minlength=len(asked))
    found.rows[:] += np.bincount(group, minlength=len(asked))
    kept = events.select([TIME, *asking.test.columns]).take(pa.array(grouped.rows[forbids]))
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
