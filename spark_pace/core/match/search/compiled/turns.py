"""*earliest, selected* of patterns with groups and negations: terminator by terminator, depth-first."""

from __future__ import annotations

from spark_pace.core.columns import NULL_ORDER, Ints
from spark_pace.core.match.search.compiled.aggregates import begun, ended, grown
from spark_pace.core.match.search.compiled.compilation import compiled, kept
from spark_pace.core.match.search.compiled.interpreter import first_that_holds
from spark_pace.core.match.search.turn_arguments import BEFORE, BEHIND, WHOLE, Forms, Matches, Turns

_FITS, _DIFFERS, _NO_LATER = 1, 0, -1  # what is said of a row: the last one, that no later one fits either


@compiled
def _unused(forms: Forms, turns: Turns, now: int, place: int, stop: int) -> int:
    """The first place from `place` on whose row is not used up; `stop`, or one behind it, for none."""
    first, following = place, turns.following
    while place < stop and turns.used[forms.rows[place]] < now:
        place = following[place]
    while first < place:  # the next search passes over what is used at once
        first_following = following[first]
        following[first] = place
        first = first_following
    return place


@compiled
def _from(forms: Forms, turns: Turns, now: int, which: int, row: int) -> int:
    """The first place of an anchor's rows, or of a row set, whose row is not below `row` and not used up."""
    low, stop = forms.begins[which], forms.begins[which + 1]
    high = stop
    while low < high:
        middle = (low + high) // 2
        if forms.rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return _unused(forms, turns, now, low, stop)


@compiled
def _accepted(forms: Forms, test: int, row: int, other: int) -> bool:
    """Tell whether a comparison holds between a row of its level and another row."""
    left, right = forms.ranks[forms.tests[test, 1], row], forms.ranks[forms.tests[test, 2], other]
    order = 1 + (left > right) - (left < right)
    return bool(left != NULL_ORDER and right != NULL_ORDER and (forms.tests[test, 3] >> order) & 1)


@compiled
def _all_accepted(forms: Forms, tests: int, taken: Ints, row: int) -> bool:
    """Tell whether all comparisons of a level (or a negated component) hold of taken rows and this one."""
    for test in range(forms.test_bounds[tests], forms.test_bounds[tests + 1]):
        if not _accepted(forms, test, taken[forms.tests[test, 0]], row):
            return False
    return True


@compiled
def _aggregate(forms: Forms, turns: Turns, now: int, one: int, taken: Ints) -> None:
    """Write an aggregate over a group of what is taken to where programs read it."""
    gap, count = forms.programs.aggregates[one, 0], 0
    which, cell, until = forms.gaps[gap, 0], taken[gap + 1], taken[gap + 1] + forms.gaps[gap, 4]
    stop, place = forms.begins[which + 1], taken[gap] + 1 - forms.gaps[gap, 3]
    place = _from(forms, turns, now, which, place)
    begun(forms.programs, one, cell)
    while place < stop and forms.rows[place] < until:
        count = grown(forms.programs, one, cell, forms.rows[place], count)
        place = _unused(forms, turns, now, place + 1, stop)
    ended(forms.programs, one, cell, count)


@compiled
def _aggregates(forms: Forms, turns: Turns, now: int, tests: int, taken: Ints) -> None:
    """Write the aggregates that the programs of a level (or of a negated component) read."""
    bounds = forms.programs.aggregate_bounds
    for one in range(bounds[tests], bounds[tests + 1]):
        _aggregate(forms, turns, now, one, taken)


@compiled
def _holds(forms: Forms, tests: int, taken: Ints, row: int) -> bool:
    """Tell whether the programs of a level (or of a negated component) hold of taken rows and this one."""
    if forms.programs.bounds[tests] == forms.programs.bounds[tests + 1]:
        return True
    forms.programs.rows[0] = row
    return bool(first_that_holds(forms.programs, tests, taken, 1) == 0)


@compiled
def _size(forms: Forms, turns: Turns, now: int, gap: int, taken: Ints) -> int:
    """How many events the group between two anchors has; more than it may have are not counted."""
    which, least, most = forms.gaps[gap, 0], forms.gaps[gap, 1], forms.gaps[gap, 2]
    until, size = taken[gap + 1] + forms.gaps[gap, 4], 0
    limit = forms.seq[taken[gap + 1]] + 1 if forms.strict else max(least, most + 1)
    stop = forms.begins[which + 1]
    place = _from(forms, turns, now, which, taken[gap] + 1 - forms.gaps[gap, 3])
    while place < stop and forms.rows[place] < until and size < limit:
        size += 1
        place = _unused(forms, turns, now, place + 1, stop)
    return size


@compiled
def _group_fits(forms: Forms, turns: Turns, now: int, gap: int, taken: Ints) -> int:
    """Tell whether the group before the row that was taken last has as many events as it must."""
    size, least, most = 0, forms.gaps[gap, 1], forms.gaps[gap, 2]
    if forms.gaps[gap, 0] >= 0:
        size = _size(forms, turns, now, gap, taken)
    if forms.strict:
        missing = forms.seq[taken[gap + 1]] - forms.seq[taken[gap]] - 1
        missing -= size - forms.gaps[gap, 3] - forms.gaps[gap, 4]
        if missing > 0:
            return _NO_LATER
    if most >= 0 and size > most:
        return _NO_LATER
    return _FITS if size >= least else _DIFFERS


@compiled
def _region(forms: Forms, turns: Turns, now: int, one: int, taken: Ints) -> tuple[int, int]:
    """The rows between which a component forbids, both excluded."""
    gap, where = forms.forbids[one, 1], forms.forbids[one, 2]
    if gap < 0:
        return taken[len(forms.alone) - 1], forms.window_end[taken[0]]
    after, until = taken[gap], taken[gap + 1]
    if where == WHOLE:
        return after, until
    which = forms.gaps[gap, 0]
    stop, right = forms.begins[which + 1], until + forms.gaps[gap, 4]
    place = _from(forms, turns, now, which, after + 1 - forms.gaps[gap, 3])
    while place < stop and forms.rows[place] < right:
        if where == BEFORE:
            return after, forms.rows[place]
        after = forms.rows[place]
        place = _unused(forms, turns, now, place + 1, stop)
    return after, until


@compiled
def _is_forbidden(forms: Forms, turns: Turns, now: int, one: int, taken: Ints) -> bool:
    """Tell whether an event of a negated component forbids what is taken."""
    which, tests = forms.forbids[one, 0], len(forms.alone) + one
    after, until = _region(forms, turns, now, one, taken)
    stop = forms.begins[which + 1]
    place = _from(forms, turns, now, which, after + 1)
    if place < stop and forms.rows[place] < until:
        _aggregates(forms, turns, now, tests, taken)
    while place < stop and forms.rows[place] < until:
        row = forms.rows[place]
        if _all_accepted(forms, tests, taken, row) and _holds(forms, tests, taken, row):
            return True
        place = _unused(forms, turns, now, place + 1, stop)
    return False


@compiled
def _fits(forms: Forms, turns: Turns, now: int, level: int, taken: Ints, lasting: bool) -> int:
    """What is said of the row that is taken at `level`; `lasting`: with what stands behind the last one."""
    if not forms.strict and not _all_accepted(forms, level, taken, taken[level]):
        return _DIFFERS
    if level > 0:
        fits = _group_fits(forms, turns, now, level - 1, taken)
        if fits != _FITS:
            return fits
    if forms.strict and not _all_accepted(forms, level, taken, taken[level]):
        return _DIFFERS
    _aggregates(forms, turns, now, level, taken)
    if not _holds(forms, level, taken, taken[level]):
        return _DIFFERS
    for one in range(len(forms.forbids)):
        gap = forms.forbids[one, 1]
        if forms.forbids[one, 3] != level or (gap < 0 and not lasting):
            continue
        if _is_forbidden(forms, turns, now, one, taken):
            stays = gap == level - 1 and forms.forbids[one, 2] != BEHIND and not forms.forbids[one, 4]
            return _NO_LATER if stays and gap >= 0 else _DIFFERS
    return _FITS


@compiled
def _next(forms: Forms, turns: Turns, now: int, state: tuple[int, int, bool], taken: Ints, at: Ints) -> bool:
    """Take the next row that fits at a level, from the place ``at[level]`` on; False for none."""
    turn, level, lasting = state
    last = len(forms.alone) - 1
    if level == last:
        row, fresh = turns.terminators[turn], at[level] == 0
        at[level], taken[level] = 1, row
        own = level > 0 and forms.gaps[level - 1, 3] and forms.gaps[level - 1, 4]
        behind = level == 0 or taken[level - 1] < row + own
        return bool(fresh and behind and _fits(forms, turns, now, level, taken, lasting) == _FITS)
    stop, place = forms.begins[level + 1], _unused(forms, turns, now, at[level], forms.begins[level + 1])
    while place < stop and forms.rows[place] < turns.bounds[turn, level]:
        taken[level] = forms.rows[place]
        fits = _fits(forms, turns, now, level, taken, lasting)
        if fits == _NO_LATER:
            return False
        at[level] = place + 1
        if fits == _FITS:
            return True
        place = _unused(forms, turns, now, place + 1, stop)
    return False


@compiled
def _enter(forms: Forms, turns: Turns, now: int, level: int, room: Ints) -> None:
    """Begin at a level, behind what is taken."""
    own = forms.gaps[level - 1, 3] and forms.gaps[level - 1, 4]
    is_last = level == len(forms.alone) - 1
    room[1, level] = 0 if is_last else _from(forms, turns, now, level, room[0, level - 1] + 1 - own)


@compiled
def _search(forms: Forms, turns: Turns, state: tuple[int, int, bool], bottom: int, room: Ints) -> bool:
    """Take the next candidate, from the rows taken below a level and the place there on; False for none.

    Args:
        forms: the pattern.
        turns: the turns.
        state: the number of the terminator, the level, and whether what stands behind the last row counts.
        bottom: the level below which the rows stay.
        room: int64[2, n], the rows that are taken, and places.
    """
    turn, level, lasting = state
    taken, at, last = room[0], room[1], len(forms.alone) - 1
    while level >= bottom:
        if not _next(forms, turns, turns.number[turn], (turn, level, lasting), taken, at):
            level -= 1
        elif level == last:
            return True
        else:
            level += 1
            _enter(forms, turns, turns.number[turn], level, room)
    return False


@compiled
def _write(forms: Forms, turns: Turns, now: int, taken: Ints, events: tuple[Ints, Ints, int]) -> int:
    """Write the events of a candidate from a place on, in stream order; gives the place behind them."""
    rows, roles, place = events
    for level in range(len(forms.alone)):
        if level > 0 and forms.gaps[level - 1, 0] >= 0:
            which = forms.gaps[level - 1, 0]
            stop, until = forms.begins[which + 1], taken[level] + forms.gaps[level - 1, 4]
            at = _from(forms, turns, now, which, taken[level - 1] + 1 - forms.gaps[level - 1, 3])
            while at < stop and forms.rows[at] < until:
                rows[place], roles[place] = forms.rows[at], forms.roles[which]
                place += 1
                at = _unused(forms, turns, now, at + 1, stop)
        if forms.alone[level]:
            rows[place], roles[place] = taken[level], forms.roles[level]
            place += 1
    return place


@compiled
def _is_less(rows: Ints, roles: Ints, bounds: tuple[int, int, int]) -> bool:
    """Tell whether the events between the last two bounds are less than those between the first two."""
    start, middle, stop = bounds
    sizes = min(middle - start, stop - middle)
    for place in range(sizes):
        if rows[middle + place] != rows[start + place]:
            return bool(rows[middle + place] < rows[start + place])
    if middle - start != stop - middle:
        return stop - middle < middle - start
    for place in range(sizes):
        if roles[middle + place] != roles[start + place]:
            return bool(roles[middle + place] < roles[start + place])
    return False


@compiled
def _least(forms: Forms, turns: Turns, turn: int, matches: Matches, room: Ints, begin: int) -> int:
    """Write the least candidate of a terminator from the place `begin` on; gives the place behind it."""
    now, rows, roles = turns.number[turn], matches.rows, matches.roles
    last = len(forms.alone) - 1
    room[1, 0] = 0 if last == 0 else _from(forms, turns, now, 0, turns.starts[turn])
    if not _search(forms, turns, (turn, 0, True), 0, room):
        return begin
    end = _write(forms, turns, now, room[0], (rows, roles, begin))
    while forms.compares and _search(forms, turns, (turn, last, True), 1, room):
        other = _write(forms, turns, now, room[0], (rows, roles, end))
        if _is_less(rows, roles, (begin, end, other)):
            for place in range(other - end):
                rows[begin + place], roles[begin + place] = rows[end + place], roles[end + place]
            end = begin + other - end
    return end


@compiled
def _latest(forms: Forms, turns: Turns, turn: int, latest: int, room: Ints) -> int:
    """The first row of a terminator's candidate that starts last, if it is behind `latest`; else `latest`."""
    now, low = turns.number[turn], max(latest + 1, turns.starts[turn])
    if len(forms.alone) == 1:
        room[1, 0] = 0
        return turns.terminators[turn] if _search(forms, turns, (turn, 0, False), 0, room) else latest
    place = _from(forms, turns, now, 0, turns.bounds[turn, 0]) - 1
    while place >= forms.begins[0] and forms.rows[place] >= low:
        row = forms.rows[place]
        if row < turns.bounds[turn, 0] and turns.used[row] >= now:
            room[0, 0] = row
            _enter(forms, turns, now, 1, room)
            if _search(forms, turns, (turn, 1, False), 1, room):
                return int(row)
        place -= 1
    return latest


@kept
def in_turn(forms: Forms, turns: Turns, matches: Matches, room: Ints) -> None:
    """Find the match of each terminator in turn, which uses up its events, and write it into `matches`.

    Args:
        forms: the pattern.
        turns: the turns.
        matches: room for the matches; `rows` and `roles` have room for each row, and for a candidate more.
        room: int64[2, n] to work in.
    """
    end, latest, segment = 0, -1, -1
    for turn in range(len(turns.terminators)):
        terminator = turns.terminators[turn]
        now, begin = turns.number[turn], end
        if turns.segments[turn] != segment:
            segment, latest = turns.segments[turn], -1
        if turns.used[terminator] > now and turns.starts[turn] < turns.bounds[turn, 0]:
            if len(forms.window_end):
                latest = _latest(forms, turns, turn, latest, room)
            end = _least(forms, turns, turn, matches, room, begin)
            for place in range(begin, end):
                turns.used[matches.rows[place]] = now
        matches.ends[turn], matches.latest[turn] = end, latest
