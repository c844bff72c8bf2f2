"""The search for candidates of a sequence: anchors are placed one by one, depth first.

Where no row of an anchor fits, the search goes back to the last anchor whose row is a reason for that.
"""

from __future__ import annotations

from typing import NamedTuple

from spark_pace.core.match.compiled.arguments import Answers, Placement, Searches, Sequence
from spark_pace.core.match.compiled.between import (
    FITS,
    NO_FURTHER,
    begins_before,
    begins_behind,
    between,
    earliest_begin,
    is_better,
    nearest_allowed,
    written,
)
from spark_pace.core.match.compiled.places import next_place, span_of
from spark_pace.core.tables import Ints
from spark_pace.machine_code.kernel import Kernel, inlined, part

TAKEN, BEST, AT, STOP, REASONS = range(5)  # the rows of the room to work in
_ALL = -1  # the mask of every anchor


class Work(NamedTuple):
    """What is searched, and with what.

    Attributes:
        sequence: the sequence.
        searches: the searches.
        answers: room for what they find.
        room: int64[5, n]: the rows that are placed, and those of the best candidate so far; by level, the
            place to go on at, the end of the rows, and the mask of the anchors that are reasons why rows were
            passed over.
    """

    sequence: Sequence
    searches: Searches
    answers: Answers
    room: Ints


class Turn(NamedTuple):
    """One search.

    Attributes:
        number: the number of the search.
        at: the turn, where rows are used up; else 0.
        end: the row before which the candidate must end.
        lasting: whether what stands behind the last anchor may forbid it.
    """

    number: int
    at: int
    end: int
    lasting: bool


@part
def _enter(work: Work, turn: Turn, level: int) -> None:
    """Begin at a level, with the rows that may follow those placed."""
    sequence, room, taken = work.sequence, work.room, work.room[TAKEN]
    own, bound = sequence.order[level], work.searches.bounds[turn.number, sequence.order[level]]
    placement = Placement(own, sequence.placed[level], taken, turn.at)
    handing = 0  # the anchor before, if another row of it may let the group behind begin at a row that fits
    if sequence.step > 0:
        low, high = work.searches.low[turn.number], min(turn.end, bound)
        if own > 0 and (placement.mask >> (own - 1)) & 1:
            gap = sequence.gaps[own - 1]
            low = taken[own - 1] + 1 - ((gap[3] & gap[4]) | gap[10] | gap[12])
            if gap[11]:
                begins = begins_behind(sequence, placement, own - 1)
                may_differ = sequence.further.numbers[own - 1] >= 0 or gap[12] or gap[13]
                if begins < high or may_differ:  # else later rows lead further
                    handing = 1 << (own - 1)
                low, high = max(low, earliest_begin(sequence, placement, begins)), min(high, begins + 1)
        if own < len(sequence.order) - 1 and (placement.mask >> (own + 1)) & 1:
            low = max(low, nearest_allowed(sequence, placement))
        first, stop, reason = span_of(sequence.searched, placement, low, high)
        room[AT, level], room[STOP, level], room[REASONS, level] = first, stop, reason | handing
    else:
        low = max(work.searches.low[turn.number], bound)
        if (placement.mask >> (own + 1)) & 1:
            gap = sequence.gaps[own]
            high = taken[own + 1] + ((gap[3] & gap[4]) | gap[12])
        else:
            high = begins_before(sequence, placement)
        if own > 0 and sequence.gaps[own - 1, 11]:  # what stands before is placed
            begins = begins_behind(sequence, placement, own - 1)
            low, high = max(low, earliest_begin(sequence, placement, begins)), min(high, begins + 1)
            # Else the row `begins` is tried: `begins_before` has left only rows of the anchor before that let
            # the group begin in time, for groups that read what they have so far are not searched backwards.
            # Where that row does not fit, all that is placed is a reason.
            if sequence.gaps[own - 1, 12] or sequence.gaps[own - 1, 13]:
                handing = 1 << (own - 1)
        first, stop, reason = span_of(sequence.searched, placement, low, high)
        room[AT, level], room[STOP, level], room[REASONS, level] = stop - 1, first - 1, reason | handing


@part
def _back(work: Work, level: int, bottom: int) -> int:
    """The level to go on at where no row of a level is left; below `bottom` if there is none.

    It is the last one that is a reason: another row of any level behind it leaves no other rows, or fewer.
    """
    reasons, room, order = 0, work.room, work.sequence.order
    for earlier in range(1, level + 1):
        reasons |= room[REASONS, earlier]
    level -= 1
    while level >= bottom and not (reasons >> order[level]) & 1:
        level -= 1
    if level >= bottom:
        room[REASONS, level] |= reasons & ~(1 << order[level])
    return level


@inlined
def _search(work: Work, turn: Turn, level: int, bottom: int) -> bool:
    """Go on at a level to the next candidate, and leave its rows in `TAKEN`; False if there is none.

    The rows of levels below `bottom` stay as they are.
    """
    sequence, room, taken = work.sequence, work.room, work.room[TAKEN]
    while level >= bottom:
        placement = Placement(sequence.order[level], sequence.placed[level], taken, turn.at)
        stop = room[STOP, level]
        span = (room[AT, level], stop, sequence.step)
        place, reasons = next_place(sequence.searched, placement, span, sequence.simple)
        room[REASONS, level] |= reasons
        if place == stop or (work.searches.shorten and sequence.searched.rows.pools[place] >= turn.end):
            if not work.searches.second_thoughts:
                return False
            level = _back(work, level, bottom)
            continue
        taken[placement.own], room[AT, level] = sequence.searched.rows.pools[place], place + sequence.step
        if not sequence.simple:
            fits = between(sequence, placement, turn.lasting)
            if fits != FITS:
                room[REASONS, level] |= placement.mask
                room[AT, level] = stop if fits == NO_FURTHER else room[AT, level]
                continue
        if level == len(sequence.order) - 1:
            return True
        level += 1
        _enter(work, turn, level)
    return False


@part
def _search_on(work: Work, turn: Turn, level: int, bottom: int) -> bool:
    """Call `_search` without a copy of its code in the caller, where calls are rare."""
    return _search(work, turn, level, bottom)


@inlined
def _begins(work: Work, turn: Turn) -> bool:
    """Place what is given to a search, and enter the next level; False if no candidate can have it."""
    sequence, taken = work.sequence, work.room[TAKEN]
    taken[sequence.order[0]] = work.searches.given[turn.number]
    placement = Placement(sequence.order[0], 0, taken, turn.at)
    if not sequence.simple and between(sequence, placement, turn.lasting) != FITS:
        return False
    if len(sequence.order) > 1:
        _enter(work, turn, 1)
    return True


@part
def _keep(work: Work) -> None:
    """Note that what is placed is the best candidate so far."""
    for own in range(work.room.shape[1]):
        work.room[BEST, own] = work.room[TAKEN, own]


@part
def _written(work: Work, turn: Turn, kept: int, begin: int) -> int:
    """Write the events of a candidate to the answers, from the place `begin` on; return the one behind.

    `kept` is the row of the room that has its anchors: `TAKEN` or `BEST`.
    """
    placement = Placement(0, _ALL, work.room[kept], turn.at)
    return written(work.sequence, placement, (work.answers.members, work.answers.roles, begin))


@part
def _compare(work: Work, turn: Turn, begin: int) -> None:
    """Go through all candidates behind the first, and keep the best; events are written from `begin` on."""
    sequence, members, roles = work.sequence, work.answers.members, work.answers.roles
    work.room[REASONS, 1] = _ALL
    stop = _written(work, turn, BEST, begin)
    while _search_on(work, turn, len(sequence.order) - 1, sequence.compares):
        other = _written(work, turn, TAKEN, stop)
        if is_better(members, roles, (begin, stop, other), sequence.step):
            _keep(work)
            stop = _written(work, turn, BEST, begin)


@inlined
def _shorten(work: Work, turn: Turn) -> None:
    """Look for candidates that end before the one that is kept, and keep them."""
    last = len(work.sequence.order) - 1
    earlier, level = Turn(turn.number, turn.at, work.room[BEST, last], turn.lasting), _back(work, last, 1)
    while level > 0 and _search(work, earlier, level, 1):
        _keep(work)
        earlier, level = (
            Turn(turn.number, turn.at, work.room[BEST, last], turn.lasting),
            _back(work, last, 1),
        )


@inlined
def _best(work: Work, turn: Turn, begin: int) -> bool:
    """Keep the best candidate of a search in `BEST`; False if there is none. `begin`: see `_compare`."""
    last = len(work.sequence.order) - 1
    if not _begins(work, turn) or (last > 0 and not _search(work, turn, 1, 1)):
        return False
    _keep(work)
    if work.searches.shorten:
        _shorten(work, turn)
    elif work.sequence.compares <= last:
        _compare(work, turn, begin)
    return True


@part
def _latest(work: Work, turn: Turn, latest: int) -> int:
    """The first row of the candidate that starts last, if it is behind `latest`; else `latest`."""
    sequence, taken, searched = work.sequence, work.room[TAKEN], work.sequence.searched
    last = len(sequence.order) - 1
    if not _begins(work, turn):
        return latest
    if last == 0:
        return int(max(latest, taken[0]))
    placement = Placement(0, sequence.placed[1], taken, turn.at)
    low = max(latest + 1, work.searches.low[turn.number])
    first, place, _ = span_of(searched, placement, low, min(turn.end, work.searches.bounds[turn.number, 0]))
    while place > first:
        place, _ = next_place(searched, placement, (place - 1, first - 1, -1), sequence.simple)
        if place >= first:
            taken[0] = searched.rows.pools[place]
            if _completes(work, turn, placement):
                return int(taken[0])
    return latest


@part
def _completes(work: Work, turn: Turn, placement: Placement) -> bool:
    """Tell whether a candidate begins with the first anchor's row, which is not used up."""
    sequence, turns = work.sequence, work.sequence.searched.unused.turns
    if len(turns) and turns[placement.taken[0]] < turn.at:
        return False
    if not sequence.simple and between(sequence, placement, turn.lasting) != FITS:
        return False
    if len(sequence.order) == 2:
        return True
    work.room[REASONS, 1] = 0
    _enter(work, turn, 2)
    return _search_on(work, turn, 2, 2)


@part
def _used(work: Work, turn: Turn, begin: int) -> int:
    """Write the events of the best candidate from a place on, and note that they are used up.

    Returns:
        the place behind them.
    """
    end = _written(work, turn, BEST, begin)
    for place in range(begin, end):
        work.sequence.searched.unused.turns[work.answers.members[place]] = turn.at
    return end


@Kernel
def search_sequences(sequence: Sequence, searches: Searches, answers: Answers, room: Ints) -> None:
    """Search, and write into `answers` what is found; `room` is int64[5, n] to work in."""
    work, turns = Work(sequence, searches, answers, room), sequence.searched.unused.turns
    uses_up, tells, begin, latest, segment = len(answers.ends) > 0, len(answers.latest) > 0, 0, -1, -1
    for index in range(len(searches.given)):
        now = searches.turns[index] if uses_up else 0
        end = searches.bounds[index, len(sequence.order) - 1]
        if not uses_up or turns[searches.given[index]] > now:
            if tells:
                if not uses_up or searches.segments[index] != segment:
                    segment, latest = searches.segments[index] if uses_up else -1, -1
                latest = _latest(work, Turn(index, now, end, False), latest)
            if not searches.only_latest and _best(work, Turn(index, now, end, True), begin):
                for own in range(len(sequence.order)):
                    answers.found[index, own] = room[BEST, own]
                if uses_up:
                    begin = _used(work, Turn(index, now, end, True), begin)
        if tells:
            answers.latest[index] = latest
        if uses_up:
            answers.ends[index] = begin


@Kernel
def search_following(sequence: Sequence, searches: Searches, answers: Answers, room: Ints) -> None:
    """Add to candidates in `answers.found` the first row of the last anchor that fits, if there is one."""
    work, last = Work(sequence, searches, answers, room), len(sequence.order) - 1
    for index in range(len(searches.given)):
        turn = Turn(index, 0, searches.bounds[index, last], False)
        for own in range(last):
            room[TAKEN, own] = answers.found[index, own]
        _enter(work, turn, last)
        if _search(work, turn, last, last):
            answers.found[index, last] = room[TAKEN, last]
