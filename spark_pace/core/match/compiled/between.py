"""What stands between the anchors of a sequence: groups, what they aggregate, and events that forbid.

The events of groups come one after the other: which are in, what they come to, and where a group begins.
Aggregates go, event by event, into the columns from which programs read them.
"""

from __future__ import annotations

from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import (
    BEFORE,
    BEHIND,
    WHOLE,
    Further,
    Placement,
    Programs,
    Sequence,
)
from spark_pace.core.match.compiled.interpreter import first_that_holds, is_active, is_tested
from spark_pace.core.match.compiled.places import first_unused, next_place, place_near, place_of, span_of
from spark_pace.core.tables import Ints
from spark_pace.machine_code.kernel import part

# of the digits of sums
BITS = 32
LOW, HALF = (1 << 32) - 1, 1 << 31
EXACT = 1 << 53  # a DOUBLE holds each whole number up to it


@part
def begun(programs: Programs, one: int, cell: int) -> None:
    """Begin aggregate `one`: write what it is of no events, 0 or null, to the row `cell` of its column."""
    operation, column = programs.aggregates[one, 1] & (do.OF_DOUBLES - 1), programs.aggregates[one, 3]
    programs.ints[column, cell], programs.nulls[column, cell] = 0, operation != do.COUNT
    programs.counts[one], programs.lows[one], programs.highs[one], programs.sums[one] = 0, 0, 0, 0.0


@part
def grown(programs: Programs, one: int, cell: int, row: int) -> None:
    """Add the event of a row to the aggregate."""
    code, values, column = (
        programs.aggregates[one, 1],
        programs.aggregates[one, 2],
        programs.aggregates[one, 3],
    )
    operation, of_doubles = code & (do.OF_DOUBLES - 1), code >= do.OF_DOUBLES
    is_first, null = programs.counts[one] == 0, operation != do.COUNT and programs.nulls[values, row]
    if operation == do.FIRST or operation == do.LAST:
        programs.counts[one] += 1
        if is_first or operation == do.LAST:
            programs.ints[column, cell], programs.nulls[column, cell] = programs.ints[values, row], null
        return
    if null:
        return
    programs.counts[one] += 1
    if operation == do.COUNT:
        programs.ints[column, cell] = programs.counts[one]
        return
    programs.nulls[column, cell] = False
    if operation == do.SUM or operation == do.AVG:
        if of_doubles:
            programs.sums[one] += programs.doubles[values, row]
        else:
            programs.lows[one] += programs.ints[values, row] & LOW
            programs.highs[one] += programs.ints[values, row] >> BITS
    elif of_doubles:
        value, other = programs.doubles[values, row], programs.doubles[column, cell]
        if is_first or _is_beyond(operation, value, other):
            programs.doubles[column, cell] = value
    elif is_first or (programs.ints[values, row] < programs.ints[column, cell]) == (operation == do.MIN):
        programs.ints[column, cell] = programs.ints[values, row]


@part
def _is_beyond(operation: int, value: float, other: float) -> bool:
    """Tell whether a number is less (or greater) than another one. NaN is greater than every number."""
    if operation == do.MIN:
        return bool(value < other or (value == value and other != other))
    return bool(value > other or (value != value and other == other))


@part
def ended(programs: Programs, one: int, cell: int) -> None:
    """End the aggregate: write the sum, or the mean, of the values so far."""
    code, column, count = programs.aggregates[one, 1], programs.aggregates[one, 3], programs.counts[one]
    operation = code & (do.OF_DOUBLES - 1)
    if count == 0 or not (operation == do.SUM or operation == do.AVG):
        return
    if code == do.SUM:
        write_whole(programs, column, cell, programs.lows[one], programs.highs[one])
        return
    total = programs.sums[one]
    if code == do.AVG:
        total = nearest_double(programs.lows[one], programs.highs[one])
    programs.doubles[column, cell] = total / count if operation == do.AVG else total


@part
def write_whole(programs: Programs, column: int, cell: int, low: int, high: int) -> None:
    """Write low + high * 2 ** 32 as a BIGINT; null if it is none."""
    high += low >> BITS
    programs.ints[column, cell] = (high << BITS) | (low & LOW)
    programs.nulls[column, cell] = not -HALF <= high < HALF


@part
def nearest_double(low: int, high: int) -> float:
    """The DOUBLE that is nearest to low + high * 2 ** 32."""
    high, low = high + (low >> BITS), low & LOW
    if -EXACT <= high <= EXACT:
        return high * float(1 << BITS) + low  # rounded once, here
    return ((high << 1) | (low != 0)) * float(HALF)  # the last bit says that there is more below


@part
def group_begun(further: Further, gap: int, row: int) -> None:
    """Begin the group of a gap with the event of a row."""
    bounds, number = further.programs.aggregate_bounds, further.numbers[gap]
    for one in range(bounds[number], bounds[number + 1]):
        begun(further.programs, one, 0)
    further.taken[len(further.numbers)] = row
    _add(further, gap, row)


@part
def joins(further: Further, gap: int, row: int) -> bool:
    """Tell whether the event of a row may join the group that was begun last; if so, it does."""
    further.programs.rows[0] = row
    if first_that_holds(further.programs, Placement(gap, 0, further.taken, 0), 1) != 0:
        return False
    _add(further, gap, row)
    return True


@part
def _add(further: Further, gap: int, row: int) -> None:
    """Add an event to the group."""
    programs, number = further.programs, further.numbers[gap]
    for one in range(programs.aggregate_bounds[number], programs.aggregate_bounds[number + 1]):
        grown(programs, one, 0, row)
        ended(programs, one, 0)
    further.taken[len(further.numbers) + 1] = row


@part
def events_between(sequence: Sequence, placement: Placement, gap: int) -> tuple[int, int, int]:
    """Where the events of the group between two placed anchors stand.

    Returns:
        the place of the first one, the place behind all rows of the set, and the row behind the last one.
    """
    low = placement.taken[gap] + 1 - sequence.gaps[gap, 3]
    first, high = next_of_set(sequence, placement, sequence.gaps[gap, 0], low)
    if sequence.further.numbers[gap] >= 0 and first < high:
        group_begun(sequence.further, gap, sequence.searched.rows.pools[first])
    return first, high, limit_between(sequence, placement, gap)


@part
def next_between(sequence: Sequence, placement: Placement, gap: int, span: tuple[int, int, int]) -> int:
    """The place of the group's next event behind a place; `stop`, or one of a row from `until` on, for none.

    `span` has the place, `stop`, and `until`, as `events_between` gives them.
    """
    place, stop, until = span
    place = first_unused(sequence.searched, placement.turn, place + 1, stop)
    if sequence.further.numbers[gap] < 0:
        return place
    pools = sequence.searched.rows.pools
    while place < stop and pools[place] < until:
        if joins(sequence.further, gap, pools[place]):
            return place
        if sequence.gaps[gap, 9]:  # the run is broken
            return stop
        place = first_unused(sequence.searched, placement.turn, place + 1, stop)
    return place


@part
def next_of_set(sequence: Sequence, placement: Placement, own: int, row: int) -> tuple[int, int]:
    """The place of the first row of a set from a row on that is not used up, and the place behind the set."""
    rows = sequence.searched.rows
    group = rows.first_groups[rows.paths[own]]
    low, high = rows.groups[group], rows.groups[group + 1]
    first = place_near(rows.pools, low, high, row, sequence.searched.hints[own])
    sequence.searched.hints[own] = first
    return first_unused(sequence.searched, placement.turn, first, high), high


@part
def limit_between(sequence: Sequence, placement: Placement, gap: int) -> int:
    """The row behind the last one that the group between two placed anchors can have."""
    limit = placement.taken[gap + 1] + sequence.gaps[gap, 4]
    if sequence.gaps[gap, 7] < 0:
        return int(limit)
    if len(sequence.searched.unused.turns) == 0:
        return int(min(limit, sequence.ends[sequence.gaps[gap, 7], placement.taken[gap]]))
    pools, left = sequence.searched.rows.pools, placement.taken[gap]
    if sequence.gaps[gap, 8] >= 0:
        place, stop = next_of_set(sequence, placement, sequence.gaps[gap, 8], left + 1)
        limit = min(limit, pools[place]) if place < stop else limit
    if sequence.gaps[gap, 9]:
        place, stop = next_of_set(sequence, placement, sequence.gaps[gap, 0], left + 1)
        seq = sequence.seq[left] + 1
        while place < stop and pools[place] < limit and sequence.seq[pools[place]] == seq:
            seq += 1
            place = first_unused(sequence.searched, placement.turn, place + 1, stop)
        limit = min(limit, pools[place]) if place < stop else limit
    return int(limit)


@part
def begins_behind(sequence: Sequence, placement: Placement, gap: int) -> int:
    """The row with which the group begins that directly follows the one in a gap; behind all rows for none.

    It is that of the first event that matches, once the group in the gap has its least number. If the group
    is optional, one behind it may begin in its place.
    """
    pools, least, rows = sequence.searched.rows.pools, sequence.gaps[gap, 1], len(sequence.seq)
    last = placement.taken[gap]
    if least > 0:
        low = last + 1 - sequence.gaps[gap, 3]
        place, stop = next_of_set(sequence, placement, sequence.gaps[gap, 0], low)
        if sequence.further.numbers[gap] >= 0 and place < stop:
            group_begun(sequence.further, gap, pools[place])
        elif len(sequence.searched.unused.turns) == 0:
            place, least = place + least - 1, 1
        while least > 1 and place < stop:
            place, least = next_between(sequence, placement, gap, (place, stop, rows)), least - 1
        if place >= stop:
            return rows
        last = pools[place]
    begins, behind, more = rows, gap + 1, True
    while more:
        place, stop = next_of_set(sequence, placement, sequence.gaps[behind, 0], last + 1)
        begins = min(begins, pools[place]) if place < stop else begins
        more, behind = _is_before_group(sequence, behind), behind + 1
    return int(begins)


@part
def _is_before_group(sequence: Sequence, gap: int) -> bool:
    """Tell whether the group in a gap, which follows another, is optional, and one directly follows it."""
    return bool(sequence.gaps[gap, 12] and sequence.gaps[gap, 11])


@part
def may_begin(sequence: Sequence, placement: Placement, gap: int) -> bool:
    """Tell whether the optional group in a gap begins with the left anchor, and none behind it does."""
    row = placement.taken[gap]
    if not _has(sequence, placement, sequence.gaps[gap, 0], row):
        return False
    while _is_before_group(sequence, gap):
        gap += 1
        if _has(sequence, placement, sequence.gaps[gap, 0], row):
            return False
    return True


@part
def _has(sequence: Sequence, placement: Placement, own: int, row: int) -> bool:
    """Tell whether a set has a row."""
    place, stop = next_of_set(sequence, placement, own, row)
    return bool(place < stop and sequence.searched.rows.pools[place] == row)


@part
def earliest_begin(sequence: Sequence, placement: Placement, begins: int) -> int:
    """The first row that an anchor may have whose group directly follows another one.

    `begins` is that with which the group begins. An optional group may be empty: then the anchor is also
    that of a component behind.
    """
    behind = placement.own
    if sequence.gaps[behind - 1, 12]:
        return int(placement.taken[behind - 1])
    if not sequence.gaps[behind - 1, 13]:
        return begins
    while behind < len(sequence.gaps) and sequence.gaps[behind, 12]:
        behind += 1
    return int(min(begins, placement.taken[behind])) if (placement.mask >> behind) & 1 else 0


@part
def begins_before(sequence: Sequence, placement: Placement) -> int:
    """The row before which an anchor must stand whose group hands over to others; nothing is used up.

    The anchors of these groups are not placed yet, but the one behind them is.
    """
    own, right = placement.own, placement.own + 1
    while not (placement.mask >> right) & 1:
        right += 1
    row = placement.taken[right] + (sequence.gaps[right - 1, 3] & sequence.gaps[right - 1, 4])
    for gap in range(right - 1, own, -1):
        if not sequence.gaps[gap, 12]:  # else its anchor may be that of a component behind
            row = _before(sequence, gap, row, max(1, sequence.gaps[gap, 1]))
    if sequence.gaps[own, 1] > 0:
        row = _before(sequence, own, row, sequence.gaps[own, 1]) + sequence.gaps[own, 3]
    return int(row + sequence.gaps[own, 12])


@part
def _before(sequence: Sequence, gap: int, row: int, number: int) -> int:
    """The row of the event of a gap's group that stands so many places before a row; -1 for none."""
    rows = sequence.searched.rows
    group = rows.first_groups[rows.paths[sequence.gaps[gap, 0]]]
    low, high = rows.groups[group], rows.groups[group + 1]
    place = place_of(rows.pools, low, high, row) - number
    return int(rows.pools[place]) if place >= low else -1


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
