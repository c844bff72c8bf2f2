"""Places in the pools of anchors: by row, of rows that are not used up, of rows that fit those placed."""

from __future__ import annotations

from spark_pace.core.match.compiled.arguments import Placement, Rows, Searched
from spark_pace.core.match.compiled.interpreter import first_that_holds, is_tested
from spark_pace.core.match.compiled.operations import EQUAL, GREATER, LESS
from spark_pace.core.tables import NULL_ORDER, Ints
from spark_pace.machine_code.kernel import inlined, part

_FIRST_ROWS = 16  # programs are first run for so many rows together, then for ever more


@part
def place_of(rows: Ints, low: int, high: int, least: int) -> int:
    """The first place from `low` on whose row is not below `least`; `high` where there is none before it."""
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@part
def place_near(rows: Ints, low: int, high: int, least: int, hint: int) -> int:
    """What `place_of` gives, sought from the place `hint` on in ever larger steps."""
    step, place = 1, min(max(hint, low), high)
    if place < high and rows[place] < least:
        while place + step < high and rows[place + step] < least:
            place, step = place + step, 2 * step
        return place_of(rows, place + 1, min(place + step, high), least)
    while place - step >= low and rows[place - step] >= least:
        place, step = place - step, 2 * step
    return place_of(rows, max(low, place - step), place, least)


@part
def first_unused(searched: Searched, turn: int, place: int, stop: int) -> int:
    """The first place from `place` on whose row is not used up in a turn; `stop` or a later one for none."""
    turns, following, pools = searched.unused.turns, searched.unused.following, searched.rows.pools
    if len(turns) == 0:
        return place
    first = place
    while place < stop and turns[pools[place]] < turn:
        place = following[place]
    while first < place:  # the next search passes over what is used at once
        first_following = following[first]
        following[first] = place
        first = first_following
    return place


@part
def span_of(searched: Searched, placement: Placement, low: int, high: int) -> tuple[int, int, int]:
    """Where the rows from `low` to the one before `high` stand that an anchor (or set) may have.

    If an equality with a placed anchor looks it up, only the rows that satisfy the equality are in the span.

    Returns:
        the first place, the place behind the last one, and the mask of the placed anchor; 0 without equality.
    """
    rows, own = searched.rows, placement.own
    path, rank, reason = rows.paths[own], 0, 0
    for other_path in range(path, rows.paths[own + 1]):
        other = rows.equals[other_path, 0]
        if other >= 0 and (placement.mask >> other) & 1:
            path, reason = other_path, 1 << other
            rank = rows.ranks[rows.equals[other_path, 1], placement.taken[other]]
            break
    if rank < 0 or low >= high:
        return 0, 0, reason
    group = rows.first_groups[path] + rank
    begin, end = rows.groups[group], rows.groups[group + 1]
    if reason:
        first = place_of(rows.pools, begin, end, low)
    else:
        first = place_near(rows.pools, begin, end, low, searched.hints[own])
        searched.hints[own] = first
    return first, place_near(rows.pools, first, end, high, first), reason


@part
def fits(rows: Rows, placement: Placement, row: int) -> bool:
    """Tell whether the comparisons of an anchor (or set) with placed anchors hold for a row."""
    for test in range(rows.test_bounds[placement.own], rows.test_bounds[placement.own + 1]):
        other = rows.tests[test, 0]
        if (placement.mask >> other) & 1:
            left = rows.ranks[rows.tests[test, 1], placement.taken[other]]
            right = rows.ranks[rows.tests[test, 2], row]
            order = 1 + (left > right) - (left < right)
            if left == NULL_ORDER or right == NULL_ORDER or not (rows.tests[test, 3] >> order) & 1:
                return False
    return True


@part
def may_fit(rows: Rows, placement: Placement, block: int) -> bool:
    """Tell whether what `fits` tests may hold for some row of a block, as far as the block's ranks say so."""
    for test in range(rows.test_bounds[placement.own], rows.test_bounds[placement.own + 1]):
        other, accepts = rows.tests[test, 0], rows.tests[test, 3]
        if (placement.mask >> other) & 1:
            left = rows.ranks[rows.tests[test, 1], placement.taken[other]]
            least, greatest = rows.least[test, block], rows.greatest[test, block]
            if left == NULL_ORDER or not (
                (accepts & LESS and left < greatest)
                or (accepts & EQUAL and least <= left <= greatest)
                or (accepts & GREATER and left > least)
            ):
                return False
    return True


@part
def _same(searched: Searched, placement: Placement, row: int) -> int:
    """The mask of the placed anchors that have this row already; only those count that `shared` names."""
    shared, same, other = searched.shared[placement.own] & placement.mask, 0, 0
    while shared >> other:
        if (shared >> other) & 1 and placement.taken[other] == row:
            same |= 1 << other
        other += 1
    return same


@inlined
def next_place(
    searched: Searched, placement: Placement, span: tuple[int, int, int], with_programs: int
) -> tuple[int, int]:
    """The next place of a span whose row is not used up and fits what is placed.

    If the step is -1, used rows are not passed over: the caller must test them, unless nothing is used up.

    Args:
        searched: what is searched.
        placement: the anchor, or set, and what is placed.
        span: the place to begin with, the one behind the last, and the step from one to the next: 1 or -1.
        with_programs: 1 if programs are tested, too.

    Returns:
        the place, or the one behind the last if no row fits; and the mask of the placed anchors because of
        whose rows others were passed over.
    """
    if with_programs and is_tested(searched.programs, placement.own, placement.mask):
        return _next_tested(searched, placement, span)
    return _next_compared(searched, placement, span)


@inlined
def _next_compared(searched: Searched, placement: Placement, span: tuple[int, int, int]) -> tuple[int, int]:
    """What `next_place` gives, without programs."""
    rows, (place, stop, step), reasons = searched.rows, span, 0
    inside, ties = (1 << rows.block_bits) - 1, rows.ties[placement.own] & placement.mask
    edge = 0 if step > 0 else inside
    compared = rows.test_bounds[placement.own] < rows.test_bounds[placement.own + 1]
    while (stop - place) * step > 0:
        if compared and (place & inside) == edge and not may_fit(rows, placement, place >> rows.block_bits):
            place, reasons = place + step * (inside + 1), reasons | ties
            continue
        if step > 0:
            unused = first_unused(searched, placement.turn, place, stop)
            if unused != place:
                place = unused
                continue
        row = rows.pools[place]
        same = _same(searched, placement, row)
        if not same and (not compared or fits(rows, placement, row)):
            return place, reasons
        place, reasons = place + step, reasons | (same if same else ties)
    return stop, reasons


@part
def _next_tested(searched: Searched, placement: Placement, span: tuple[int, int, int]) -> tuple[int, int]:
    """What `next_place` gives, with programs, which are run for several rows together."""
    programs, (place, stop, step) = searched.programs, span
    waiting, most, reasons = 0, min(_FIRST_ROWS, len(programs.rows)), 0
    while (stop - place) * step > 0:
        place, passed = _next_compared(searched, placement, (place, stop, step))
        reasons |= passed
        if place != stop:
            programs.rows[waiting], programs.places[waiting] = searched.rows.pools[place], place
            waiting, place = waiting + 1, place + step
        if waiting == most or (waiting > 0 and (stop - place) * step <= 0):
            held = first_that_holds(programs, placement, waiting)
            reasons |= searched.rows.ties[placement.own] & placement.mask if held > 0 else 0
            if held < waiting:
                return programs.places[held], reasons
            waiting, most = 0, min(4 * most, len(programs.rows))
    return stop, reasons
