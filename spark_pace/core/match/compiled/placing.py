"""Anchors of a part of a conjunction are placed: some of them at given rows, the others at rows that fit."""

from __future__ import annotations

from typing import NamedTuple

from spark_pace.core.columns import Ints
from spark_pace.core.match.compiled.arguments import Conjunction, Placement
from spark_pace.core.match.compiled.interpreter import first_that_holds, is_tested
from spark_pace.core.match.compiled.places import fits, next_place, span_of
from spark_pace.machine_code.kernel import inlined, part

NONE = -1  # no row, and no anchor

# The rows of the room to work in. By anchor: the row that is placed, that of the best candidate, the place at
# which a single one was looked for last; and by part: until where no row is the last one of a candidate, and
# the first row of the candidate that ends there.
TAKEN, FOUND, HINT, KNOWN, FIRST = range(5)
# By level: the anchor, the place to go on at, the end of its rows, the anchors that are reasons why rows were
# passed over; the given rows; the other rows of the best candidate, in order.
ANCHOR, AT, STOP, REASONS, GIVEN, OTHERS = range(5, 11)
# By anchor, where the next given row is sought: the place to go on at, the end, the row.
CURSOR, CURSOR_STOP, CURSOR_ROW = range(11, 14)
ROOM = 14


class ConjunctionPart(NamedTuple):
    """A part of a conjunction of n anchors, as it is searched.

    Attributes:
        conjunction: the conjunction.
        number: that of the part.
        mask: its anchors.
        exclusive: whether no row may be that of two of them.
        turn: the turn in which rows are sought.
        room: int64[ROOM, n].
    """

    conjunction: Conjunction
    number: int
    mask: int
    exclusive: bool
    turn: int
    room: Ints


class Bounds(NamedTuple):
    """The first row that may be taken, the one behind the last, and the order: 1, or -1 from the last on."""

    low: int
    high: int
    step: int


@part
def count_of(mask: int) -> int:
    """How many bits a mask has."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@part
def anchor_of(mask: int) -> int:
    """The first anchor of a mask."""
    own = 0
    while not (mask >> own) & 1:
        own += 1
    return own


@part
def _anchor_at(one: ConjunctionPart, row: int, mask: int, own: int, step: int) -> int:
    """The next anchor of a part, from `own` on, that a row fits beside those placed; `NONE` for none."""
    searched, free = one.conjunction.searched, one.conjunction.masks[row] & one.mask & ~mask
    programs = searched.programs
    while 0 <= own < len(searched.shared):
        placement = Placement(own, mask, one.room[TAKEN], one.turn)
        if (free >> own) & 1 and fits(searched.rows, placement, row):
            programs.rows[0] = row
            if not is_tested(programs, own, mask) or first_that_holds(programs, placement, 1) == 0:
                return own
        own += step
    return NONE


@part
def _enter(one: ConjunctionPart, level: int, mask: int, given: int, bounds: Bounds) -> None:
    """Begin at a level: with the first anchor for its given row, or with the first row for its anchor."""
    room, searched = one.room, one.conjunction.searched
    if level < given:
        room[AT, level] = 0 if bounds.step > 0 else len(searched.shared) - 1
        return
    own = one.conjunction.following[one.number, mask]
    placement = Placement(own, mask, room[TAKEN], one.turn)
    first, stop, reason = span_of(searched, placement, bounds.low, bounds.high)
    if bounds.step < 0:
        first, stop = stop - 1, first - 1
    room[ANCHOR, level], room[REASONS, level] = own, reason
    room[AT, level], room[STOP, level] = first, stop


@inlined
def _place(one: ConjunctionPart, level: int, mask: int, given: int, step: int) -> bool:
    """Place an anchor at the next row, or a given row at the next anchor; False where there is none."""
    room, searched = one.room, one.conjunction.searched
    if level < given:
        row = room[GIVEN, level]
        own = _anchor_at(one, row, mask, room[AT, level], step)
        room[ANCHOR, level], room[AT, level] = own, own + step
        if own != NONE:
            room[TAKEN, own] = row
        return bool(own != NONE)
    own, stop = room[ANCHOR, level], room[STOP, level]
    placement = Placement(own, mask, room[TAKEN], one.turn)
    place, reasons = next_place(searched, placement, (room[AT, level], stop, step), 1)
    room[REASONS, level] |= reasons
    if place != stop:
        room[TAKEN, own], room[AT, level] = searched.rows.pools[place], place + step
    return bool(place != stop)


@part
def find(one: ConjunctionPart, given: int, bounds: Bounds) -> bool:
    """Place all anchors of a part; False if that cannot be.

    Args:
        one: the part.
        given: how many rows are given: those in `GIVEN`.
        bounds: of the other rows.
    """
    room, need, level, mask = one.room, count_of(one.mask), 0, 0
    _enter(one, level, mask, given, bounds)
    while level < need:
        if _place(one, level, mask, given, bounds.step):
            mask |= 1 << room[ANCHOR, level]
            level += 1
            if level < need:
                _enter(one, level, mask, given, bounds)
            continue
        reasons = room[REASONS, level]
        level -= 1
        while level >= 0:
            mask &= ~(1 << room[ANCHOR, level])
            if level < given or (reasons >> room[ANCHOR, level]) & 1:
                break
            level -= 1
        if level < 0:
            return False
        if level >= given:
            room[REASONS, level] |= reasons & ~(1 << room[ANCHOR, level])
    return True


@part
def _filled(one: ConjunctionPart, given: int) -> int:
    """The mask of the anchors that other rows than the given ones cannot have.

    Given rows fill anchors if as many of them may be at no others.
    """
    filled = 0
    if one.exclusive:
        for level in range(given):
            filled |= one.conjunction.masks[one.room[GIVEN, level]] & one.mask
        return filled
    for subset in range(1, 1 << given):
        union = 0
        for level in range(given):
            if (subset >> level) & 1:
                union |= one.conjunction.masks[one.room[GIVEN, level]] & one.mask
        if count_of(union) == count_of(subset):
            filled |= union
    return filled


@part
def point(one: ConjunctionPart, given: int, bounds: Bounds) -> int:
    """Point at the first row of each anchor that may be given beside the given ones.

    Returns:
        the mask of the given rows' anchors, as far as they are certain: other rows must fit these.
    """
    room, searched, filled, mask = one.room, one.conjunction.searched, _filled(one, given), 0
    if one.exclusive:
        for level in range(given):
            own = anchor_of(one.conjunction.masks[room[GIVEN, level]] & one.mask)
            room[TAKEN, own] = room[GIVEN, level]
            mask |= 1 << own
    for own in range(len(searched.shared)):
        room[CURSOR_ROW, own] = NONE
        if ((one.mask & ~filled) >> own) & 1:
            placement = Placement(own, mask, room[TAKEN], one.turn)
            first, stop, _ = span_of(searched, placement, bounds.low, bounds.high)
            if bounds.step < 0:
                first, stop = stop - 1, first - 1
            room[CURSOR, own], room[CURSOR_STOP, own] = first, stop
            _advance(one, own, mask, bounds.step)
    return mask


@part
def _advance(one: ConjunctionPart, own: int, mask: int, step: int) -> None:
    """Point at the next row of an anchor."""
    room, searched = one.room, one.conjunction.searched
    placement, stop = Placement(own, mask, room[TAKEN], one.turn), room[CURSOR_STOP, own]
    place, _ = next_place(searched, placement, (room[CURSOR, own], stop, step), 1)
    room[CURSOR_ROW, own] = NONE
    if place != stop:
        room[CURSOR_ROW, own], room[CURSOR, own] = searched.rows.pools[place], place + step


@part
def pass_over(one: ConjunctionPart, row: int, mask: int, step: int) -> None:
    """Point at other rows than this one."""
    for own in range(one.room.shape[1]):
        if one.room[CURSOR_ROW, own] == row:
            _advance(one, own, mask, step)


@part
def pointed(one: ConjunctionPart, step: int) -> int:
    """The first of the rows that are pointed at; `NONE` where there is none."""
    row = NONE
    for own in range(one.room.shape[1]):
        other = one.room[CURSOR_ROW, own]
        if other != NONE and (row == NONE or (row - other) * step > 0):
            row = other
    return row
