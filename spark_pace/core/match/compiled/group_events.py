"""The events of groups: one after the other, and where a group begins that directly follows another one."""

from __future__ import annotations

from spark_pace.core.match.compiled.arguments import Placement, Sequence
from spark_pace.core.match.compiled.further import group_begun, joins
from spark_pace.core.match.compiled.places import first_unused, place_near, place_of
from spark_pace.machine_code.kernel import part


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
