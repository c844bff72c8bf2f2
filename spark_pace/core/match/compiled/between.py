"""What stands between the anchors of a sequence: groups, what they aggregate, and events that forbid."""

from __future__ import annotations

from spark_pace.core.match.compiled.arguments import BEFORE, BEHIND, WHOLE, Placement, Sequence
from spark_pace.core.match.compiled.group_events import (
    begins_behind,
    begun,
    ended,
    events_between,
    grown,
    limit_between,
    may_begin,
    next_between,
)
from spark_pace.core.match.compiled.interpreter import first_that_holds, is_active, is_tested
from spark_pace.core.match.compiled.places import next_place, place_of, span_of
from spark_pace.core.tables import Ints
from spark_pace.machine_code.kernel import part

FITS, DIFFERS, NO_FURTHER = (
    1,
    0,
    -1,
)  # a row fits; it does not; neither it nor any that is tried next


@part
def between(sequence: Sequence, placement: Placement, lasting: bool) -> int:
    """Tell whether an anchor's row, which is in `taken` already, fits by what stands between the anchors.

    Args:
        sequence: the sequence.
        placement: the anchor, and what is placed.
        lasting: whether what stands behind the last anchor is tested, too.

    Returns:
        `FITS`, `DIFFERS` or `NO_FURTHER`.
    """
    own, last = placement.own, len(sequence.order) - 1
    near = own - 1 if sequence.step > 0 else own  # the gap that grows with each row that is tried
    for gap in range(max(0, own - 1), min(own, last - 1) + 1):
        if (placement.mask >> (gap if gap < own else own + 1)) & 1:
            fits = _group_fits(sequence, placement, gap)
            if fits != FITS:
                return fits if gap == near else DIFFERS
    if not _programs_hold(sequence, placement):
        return DIFFERS
    for one in range(len(sequence.forbids)):
        gap, needs = sequence.forbids[one, 1], sequence.forbids[one, 3]
        if not (needs >> own) & 1 or needs & ~(placement.mask | 1 << own) or (gap < 0 and not lasting):
            continue
        if _is_forbidden(sequence, placement, one):
            return NO_FURTHER if gap == near and gap >= 0 and _stays(sequence, one, own) else DIFFERS
    return FITS


@part
def _stays(sequence: Sequence, one: int, own: int) -> bool:
    """Tell whether an event that forbids a row of an anchor forbids those that are tried next, too."""
    moving = BEHIND if sequence.step > 0 else BEFORE
    return bool(sequence.forbids[one, 2] != moving and not (sequence.forbids[one, 4] >> own) & 1)


@part
def _size(sequence: Sequence, placement: Placement, gap: int) -> int:
    """How many events the group between two anchors has; where rows are used up, no more than need be.

    It is -1 if the group passes over the right anchor, which should be its last event.
    """
    own, least, most = sequence.gaps[gap, 0], sequence.gaps[gap, 1], sequence.gaps[gap, 2]
    if own < 0:
        return 0
    if len(sequence.searched.unused.turns) == 0:
        before = sequence.before[own - len(sequence.order)]
        low, high = placement.taken[gap] + 1 - sequence.gaps[gap, 3], limit_between(sequence, placement, gap)
        return int(max(0, before[high] - before[low]))
    right, needs_right = (
        placement.taken[gap + 1],
        sequence.further.numbers[gap] >= 0 and sequence.gaps[gap, 4],
    )
    limit = sequence.seq[right] + 1 if sequence.gaps[gap, 5] or needs_right else max(least, most + 1)
    place, stop, until = events_between(sequence, placement, gap)
    size, last = 0, -1
    while place < stop and sequence.searched.rows.pools[place] < until and size < limit:
        size, last = size + 1, sequence.searched.rows.pools[place]
        place = next_between(sequence, placement, gap, (place, stop, until))
    return -1 if needs_right and last != right else size


@part
def _group_fits(sequence: Sequence, placement: Placement, gap: int) -> int:
    """Tell whether a gap has the events that it must: `FITS`, `DIFFERS` or `NO_FURTHER`.

    Its group must have as many events as `times` says, and no other event may stand where none may.
    """
    if sequence.gaps[gap, 10]:
        if placement.taken[gap] == placement.taken[gap + 1]:
            return FITS
        place, stop, _ = events_between(sequence, placement, gap)
        if place >= stop or sequence.searched.rows.pools[place] != placement.taken[gap]:
            return DIFFERS  # it is the event of the component behind, and cannot begin the group
    empty = sequence.gaps[gap, 12] and placement.taken[gap] == placement.taken[gap + 1]
    if sequence.gaps[gap, 12] and not empty and not may_begin(sequence, placement, gap):
        return NO_FURTHER if sequence.step > 0 else DIFFERS
    if sequence.gaps[gap, 11] and not empty:
        begins, right = begins_behind(sequence, placement, gap), placement.taken[gap + 1]
        if right > begins or (right < begins and not sequence.gaps[gap, 13]):
            return DIFFERS
    size, least, most = _size(sequence, placement, gap), sequence.gaps[gap, 1], sequence.gaps[gap, 2]
    ends = sequence.gaps[gap, 7] >= 0
    if ends and sequence.gaps[gap, 4] and limit_between(sequence, placement, gap) <= placement.taken[gap + 1]:
        return NO_FURTHER
    if size < 0:
        return DIFFERS
    if sequence.gaps[gap, 5]:
        missing = sequence.seq[placement.taken[gap + 1]] - sequence.seq[placement.taken[gap]] - 1
        missing -= size - sequence.gaps[gap, 3] - sequence.gaps[gap, 4]
        if missing > 0:
            return NO_FURTHER
    if most >= 0 and size > most:
        sooner = sequence.step < 0 and (ends or sequence.gaps[gap, 11])  # it may end further back
        return DIFFERS if sooner else NO_FURTHER
    if sequence.gaps[gap, 6]:
        last = _last_before(sequence, placement, gap)
        if sequence.seq[placement.taken[gap + 1]] - sequence.seq[last] != 1:
            return DIFFERS
    return FITS if size >= least else DIFFERS


@part
def _last_before(sequence: Sequence, placement: Placement, gap: int) -> int:
    """The last row of a candidate before the right anchor of a gap with a group."""
    last = _last_of_group(sequence, placement, gap)
    while last < 0 and sequence.gaps[gap, 12]:
        gap -= 1
        last = _last_of_group(sequence, placement, gap)
    return int(last if last >= 0 else placement.taken[gap])


@part
def _last_of_group(sequence: Sequence, placement: Placement, gap: int) -> int:
    """The row of the last event of the group between two anchors; -1 if it is empty."""
    pools, turns = sequence.searched.rows.pools, sequence.searched.unused.turns
    first, stop, until = events_between(sequence, placement, gap)
    if sequence.further.numbers[gap] >= 0:
        last = -1
        while first < stop and pools[first] < until:
            last, first = pools[first], next_between(sequence, placement, gap, (first, stop, until))
        return int(last)
    place = place_of(pools, first, stop, until) - 1
    while place >= first and len(turns) and turns[pools[place]] < placement.turn:
        place -= 1
    return int(pools[place]) if place >= first else -1


@part
def _aggregate(sequence: Sequence, placement: Placement, one: int) -> None:
    """Write an aggregate over a group of what is placed to where programs read it."""
    programs = sequence.searched.programs
    gap = programs.aggregates[one, 0]
    cell = placement.taken[gap + 1]
    place, stop, until = events_between(sequence, placement, gap)
    begun(programs, one, cell)
    while place < stop and sequence.searched.rows.pools[place] < until:
        grown(programs, one, cell, sequence.searched.rows.pools[place])
        place = next_between(sequence, placement, gap, (place, stop, until))
    ended(programs, one, cell)


@part
def _aggregates(sequence: Sequence, placement: Placement) -> None:
    """Write the aggregates that are read by the conditions which are tested once `own` is placed."""
    programs = sequence.searched.programs
    for condition in range(len(programs.names)):
        if is_active(programs, condition, placement.own, placement.mask):
            bounds = programs.aggregate_bounds
            for one in range(bounds[condition], bounds[condition + 1]):
                _aggregate(sequence, placement, one)


@part
def _programs_hold(sequence: Sequence, placement: Placement) -> bool:
    """Tell whether all programs hold which are tested once `own` is placed."""
    programs = sequence.searched.programs
    if not is_tested(programs, placement.own, placement.mask):
        return True
    _aggregates(sequence, placement)
    programs.rows[0] = placement.taken[placement.own]
    return bool(first_that_holds(programs, placement, 1) == 0)


@part
def _region(sequence: Sequence, placement: Placement, one: int) -> tuple[int, int]:
    """The rows between which a component forbids, both excluded."""
    gap, where = sequence.forbids[one, 1], sequence.forbids[one, 2]
    if gap < 0:
        return placement.taken[len(sequence.order) - 1], sequence.window_end[placement.taken[0]]
    after, until = placement.taken[gap], placement.taken[gap + 1]
    if where == WHOLE:
        return after, until
    if where == BEHIND:
        return _last_before(sequence, placement, gap), until
    place, stop, right = events_between(sequence, placement, gap)
    pools = sequence.searched.rows.pools
    has_event = place < stop and pools[place] < right
    return after, pools[place] if has_event else until


@part
def _is_forbidden(sequence: Sequence, placement: Placement, one: int) -> bool:
    """Tell whether an event of a negated component forbids what is placed."""
    of_set = Placement(sequence.forbids[one, 0], sequence.forbids[one, 3], placement.taken, placement.turn)
    after, until = _region(sequence, placement, one)
    first, stop, _ = span_of(sequence.searched, of_set, after + 1, until)
    if first < stop and is_tested(sequence.searched.programs, of_set.own, of_set.mask):
        _aggregates(sequence, of_set)
    place, _ = next_place(sequence.searched, of_set, (first, stop, 1), 1)
    return bool(place < stop)


@part
def nearest_allowed(sequence: Sequence, placement: Placement) -> int:
    """The first row that an anchor may have, as far as the gap between it and the next anchor says so.

    The next anchor is placed. If the two must be neighbours, it is the row before that one. Else it is the
    last row before it that forbids a match whatever row the anchor has: the anchor may stand there or later.
    """
    searched, own = sequence.searched, placement.own
    neighbours = sequence.gaps[own, 5] and sequence.gaps[own, 0] < 0
    allowed = placement.taken[own + 1] - 1 if neighbours else 0
    rows, turns = searched.rows, searched.unused.turns
    for one in range(len(sequence.forbids)):
        if sequence.forbids[one, 1] != own or sequence.forbids[one, 2] != WHOLE or sequence.forbids[one, 4]:
            continue
        group = rows.first_groups[rows.paths[sequence.forbids[one, 0]]]
        begin = rows.groups[group]
        place = place_of(rows.pools, begin, rows.groups[group + 1], placement.taken[own + 1]) - 1
        while place >= begin and len(turns) and turns[rows.pools[place]] < placement.turn:
            place -= 1
        if place >= begin:
            allowed = max(allowed, rows.pools[place])
    return allowed


@part
def written(sequence: Sequence, placement: Placement, events: tuple[Ints, Ints, int]) -> int:
    """Write the events of a candidate from a place on, in stream order; return the place behind them."""
    members, roles, place = events
    for own in range(len(sequence.order)):
        if own > 0 and sequence.gaps[own - 1, 0] >= 0:
            at, stop, until = events_between(sequence, placement, own - 1)
            while at < stop and sequence.searched.rows.pools[at] < until:
                members[place], roles[place] = (
                    sequence.searched.rows.pools[at],
                    sequence.roles[sequence.gaps[own - 1, 0]],
                )
                place += 1
                at = next_between(sequence, placement, own - 1, (at, stop, until))
        if sequence.alone[own]:
            members[place], roles[place] = placement.taken[own], sequence.roles[own]
            place += 1
    return place


@part
def is_better(members: Ints, roles: Ints, bounds: tuple[int, int, int], step: int) -> bool:
    """Tell whether one candidate is better than another.

    If the step is 1, events are compared from the first one on, and the less candidate is better. If it is
    -1, they are compared from the last one back, and the greater candidate is better.

    Args:
        members: the events of both candidates.
        roles: the components that these stand for.
        bounds: where the other candidate begins, where it ends and this one begins, and where this one ends.
        step: 1 or -1.
    """
    start, middle, stop = bounds
    sizes = min(middle - start, stop - middle)
    for place in range(sizes):
        one, other = (start + place, middle + place) if step > 0 else (middle - 1 - place, stop - 1 - place)
        if members[other] != members[one]:
            return bool((members[one] - members[other]) * step > 0)
    if middle - start != stop - middle:
        return bool(((middle - start) - (stop - middle)) * step > 0)
    for place in range(sizes):
        one, other = (start + place, middle + place) if step > 0 else (middle - 1 - place, stop - 1 - place)
        if roles[other] != roles[one]:
            return bool((roles[one] - roles[other]) * step > 0)
    return False
