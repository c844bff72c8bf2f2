"""The events of groups, one after the other: which are in, what they come to, and where a group begins.

Aggregates go, event by event, into the columns from which programs read them; they are what
`spark_pace.core.match.search.groups` makes of whole columns.
"""

from __future__ import annotations

from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Further, Placement, Programs, Sequence
from spark_pace.core.match.compiled.interpreter import first_that_holds
from spark_pace.core.match.compiled.places import first_unused, place_near, place_of
from spark_pace.machine_code.kernel import part

# of the digits of sums
BITS = 32
LOW, HALF = (1 << 32) - 1, 1 << 31
WHOLE = 1 << 53  # a DOUBLE holds each whole number up to it


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
    if -WHOLE <= high <= WHOLE:
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
