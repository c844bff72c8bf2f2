"""The search for candidates of a conjunction: of each of its parts for itself.

Where some anchors have given rows, the others are placed depth first, in an order in which conditions tie
each to those before it. The least and the greatest candidate are found row by row: the next row is the first
one that some candidate has beside the rows that are found.
"""

from __future__ import annotations

from typing import NamedTuple

from spark_pace.core.match.compiled.arguments import COMPLETION, GREATEST, Conjunction, Ends, Placement
from spark_pace.core.match.compiled.interpreter import first_that_holds, is_tested
from spark_pace.core.match.compiled.places import first_unused, fits, next_place, span_of
from spark_pace.core.tables import Ints
from spark_pace.machine_code.kernel import Kernel, inlined, part

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


@part
def _keep(one: ConjunctionPart, given: int, step: int) -> None:
    """Note that what is placed is the best candidate of a part so far, and put its other rows in order."""
    room, count = one.room, 0
    for own in range(room.shape[1]):
        if (one.mask >> own) & 1:
            row, place = room[TAKEN, own], count
            room[FOUND, own] = row
            for level in range(given):
                if room[GIVEN, level] == row:
                    place = NONE
            if place != NONE:
                while place > 0 and (room[OTHERS, place - 1] - row) * step > 0:
                    room[OTHERS, place] = room[OTHERS, place - 1]
                    place -= 1
                room[OTHERS, place] = row
                count += 1


@part
def _improve(one: ConjunctionPart, given: int, bounds: Bounds) -> None:
    """Find the best row to stand beside the given ones, and keep a candidate with it.

    The kept candidate's first other row is the best one so far. Better rows are tried from the best on; the
    first that some candidate has is taken.
    """
    room, step, mask = one.room, bounds.step, point(one, given, bounds)
    row = pointed(one, step)
    while row != NONE and (room[OTHERS, 0] - row) * step > 0:
        room[GIVEN, given] = row
        if find(one, given + 1, _beyond(bounds, row)):
            _keep(one, given, step)
            return
        pass_over(one, row, mask, step)
        row = pointed(one, step)


@part
def _beyond(bounds: Bounds, row: int) -> Bounds:
    """The bounds of the rows behind a row, in the order of the bounds."""
    return Bounds(row + 1, bounds.high, 1) if bounds.step > 0 else Bounds(bounds.low, row, -1)


@part
def _best(one: ConjunctionPart, first: int, bounds: Bounds) -> bool:
    """Find the best candidate of a part, beside a given row if `first` is 1; False if there is none.

    Rows are compared in the order of the bounds, then their anchors.
    """
    room, need, given = one.room, count_of(one.mask), first
    if not find(one, given, bounds):
        return False
    _keep(one, given, bounds.step)
    while given < need and not (one.exclusive and need - first == 1):
        if not one.exclusive or given < need - 1:
            _improve(one, given, bounds)
        elif find(one, given, bounds):  # the first row that fits is the best one for the last anchor
            _keep(one, given, bounds.step)
        room[GIVEN, given] = room[OTHERS, 0]
        for place in range(need - given - 1):
            room[OTHERS, place] = room[OTHERS, place + 1]
        bounds = _beyond(bounds, room[GIVEN, given])
        given += 1
    if not one.exclusive:
        _place_in_order(one, first, bounds.step)
    return True


@part
def _place_in_order(one: ConjunctionPart, first: int, step: int) -> None:
    """Place the rows of a part's candidate at the best anchors; the row that was given first is its last."""
    room, need = one.room, count_of(one.mask)
    if step > 0 and first == 1:
        row = room[GIVEN, 0]
        for level in range(need - 1):
            room[GIVEN, level] = room[GIVEN, level + 1]
        room[GIVEN, need - 1] = row
    find(one, need, Bounds(0, 0, step))
    for own in range(room.shape[1]):
        if (one.mask >> own) & 1:
            room[FOUND, own] = room[TAKEN, own]


@part
def _end(one: ConjunctionPart, given: int, low: int, bounds: Bounds) -> int:
    """The first row that is the last one of a candidate of a part; `NONE` for none.

    Args:
        one: the part.
        given: how many rows are given.
        low: the first row that a candidate may have, given ones aside.
        bounds: of the row that is sought.
    """
    mask = point(one, given, bounds)
    row = pointed(one, 1)
    while row != NONE:
        one.room[GIVEN, given] = row
        if find(one, given + 1, Bounds(low, row, -1)):
            return row
        pass_over(one, row, mask, 1)
        row = pointed(one, 1)
    return NONE


@part
def _is_known_to_fail(one: ConjunctionPart, low: int, high: int) -> bool:
    """Tell whether a part has no candidate in a window, by what an earlier search has found.

    That is forgotten where one of the rows since is the last one of a candidate.
    """
    known = one.room[KNOWN, one.number]
    if known <= low:
        return False
    fails = _end(one, 0, low, Bounds(known, high, 1)) == NONE
    one.room[KNOWN, one.number] = high if fails else 0
    return fails


@inlined
def _single(one: ConjunctionPart, own: int, bounds: Bounds) -> int:
    """The first row of an anchor within bounds; `NONE` for none. Bounds never descend.

    If the step is -1, used rows are not passed over: then nothing may be used up.
    """
    rows, room = one.conjunction.searched.rows, one.room
    group = rows.first_groups[rows.paths[own]]
    begin, end, place = rows.groups[group], rows.groups[group + 1], room[HINT, own]
    limit = bounds.low if bounds.step > 0 else bounds.high
    while place < end and rows.pools[place] < limit:
        place += 1
    room[HINT, own] = place
    if bounds.step > 0:
        place = first_unused(one.conjunction.searched, one.turn, place, end)
        return int(rows.pools[place]) if place < end and rows.pools[place] < bounds.high else NONE
    return int(rows.pools[place - 1]) if place > begin and rows.pools[place - 1] >= bounds.low else NONE


@inlined
def _part(conjunction: Conjunction, number: int, turn: int, room: Ints) -> ConjunctionPart:
    """A part of a conjunction."""
    mask, exclusive = conjunction.parts[number], conjunction.exclusive[number]
    return ConjunctionPart(conjunction, number, mask, exclusive, turn, room)


@inlined
def _best_of_all(conjunction: Conjunction, ends: Ends, index: int, turn: int, room: Ints) -> bool:
    """Find the best candidate that ends with the given row; False if there is none."""
    row, low = ends.given[index], ends.low[index]
    bounds = Bounds(low, row, -1 if ends.sought == GREATEST else 1)
    for number in range(len(conjunction.parts)):
        one = _part(conjunction, number, turn, room)
        here = conjunction.masks[row] & one.mask != 0
        if not one.mask & (one.mask - 1):
            own = anchor_of(one.mask)
            room[FOUND, own] = row if here else _single(one, own, bounds)
            if room[FOUND, own] == NONE:
                return False
            continue
        if here:
            room[GIVEN, 0] = row
        elif _is_known_to_fail(one, low, row):
            return False
        if not _best(one, 1 if here else 0, bounds):
            if not here:
                room[KNOWN, number] = row
            return False
    return True


@part
def _end_of_another(one: ConjunctionPart, row: int, high: int) -> int:
    """The first row at which a part ends a candidate that begins behind a row; `NONE` for none.

    What is found for a row holds for later ones, as long as they are not behind the candidate's first row.
    """
    room, number = one.room, one.number
    if room[FIRST, number] > row:
        return int(room[KNOWN, number]) if room[KNOWN, number] < high else NONE
    first = max(row + 1, room[KNOWN, number])
    last = _end(one, 0, row + 1, Bounds(first, high, 1))
    room[KNOWN, number], room[FIRST, number] = last, NONE
    if last == NONE:
        room[KNOWN, number] = max(first, high)
        return NONE
    room[FIRST, number] = last
    for own in range(room.shape[1]):
        if (one.mask >> own) & 1:
            room[FIRST, number] = min(room[FIRST, number], room[TAKEN, own])
    return last


@inlined
def _completion(conjunction: Conjunction, ends: Ends, index: int, room: Ints) -> int:
    """The first row that completes a candidate which begins with the given row; `NONE` for none."""
    row, high, found = ends.given[index], ends.high[index], ends.given[index]
    for number in range(len(conjunction.parts)):
        one, last = _part(conjunction, number, 0, room), row
        here, single = conjunction.masks[row] & one.mask != 0, not one.mask & (one.mask - 1)
        if single and not here:
            last = _single(one, anchor_of(one.mask), Bounds(row + 1, high, 1))
        elif here and not single:
            room[GIVEN, 0] = row
            last = _end(one, 1, row + 1, Bounds(row + 1, high, 1))
        elif not here:
            last = _end_of_another(one, row, high)
        if last == NONE:
            return NONE
        found = max(found, last)
    return int(found)


@part
def _allowed(conjunction: Conjunction, ends: Ends, index: int, first: int, room: Ints) -> int:
    """The first allowed row, from `first` on, at which a candidate ends that begins with the given row.

    All parts have ended candidates by row `first`.
    """
    row, last = ends.given[index], first
    while last < ends.high[index]:
        for number in range(len(conjunction.parts) if ends.allowed[last] else 0):
            one = _part(conjunction, number, 0, room)
            if conjunction.masks[last] & one.mask and _ends_at(one, row, last):
                return last
        last += 1
    return NONE


@part
def _ends_at(one: ConjunctionPart, row: int, last: int) -> bool:
    """Tell whether a part has a candidate that lies from one row to another and has the last one.

    If the first row can be of the part, the candidate must have it as well.
    """
    here = one.conjunction.masks[row] & one.mask != 0
    if last == row:
        return bool(len(one.conjunction.parts) == 1 and not one.mask & (one.mask - 1))
    given = 2 if here else 1
    one.room[GIVEN, 0], one.room[GIVEN, given - 1] = row, last
    return bool(given <= count_of(one.mask) and find(one, given, Bounds(row + 1, last, 1)))


@Kernel
def search_conjunctions(conjunction: Conjunction, ends: Ends, found: Ints, room: Ints) -> None:
    """Search, and write what is found.

    Args:
        conjunction: the conjunction.
        ends: the searches.
        found: int64[m, n], to which the rows of the anchors are written; where no candidate is found, a row
            stays as it is. For completions int64[m, 1], to which the last row is written, or `NONE`.
        room: int64[ROOM, n] to work in; `HINT` has the places where the anchors' rows begin, `FIRST` has -1,
            the rest is 0.
    """
    turns = conjunction.searched.unused.turns
    for index in range(len(ends.given)):
        if ends.sought == COMPLETION:
            last = _completion(conjunction, ends, index, room)
            if last != NONE and len(ends.allowed):
                last = _allowed(conjunction, ends, index, last, room)
            found[index, 0] = last
            continue
        turn = ends.turns[index] if len(ends.turns) else 0
        if len(ends.turns) and turns[ends.given[index]] < turn:
            continue
        if _best_of_all(conjunction, ends, index, turn, room):
            for own in range(found.shape[1]):
                found[index, own] = room[FOUND, own]
                if len(ends.turns):
                    turns[room[FOUND, own]] = turn
