"""The walk of keys through the states of a fold, event by event."""

from __future__ import annotations

from typing import NamedTuple

from spark_pace.core.tables import Ints
from spark_pace.machine_code.kernel import Kernel


class Moves(NamedTuple):
    """The moves of a state machine, state by state.

    Attributes:
        begins: int64[states + 1], where the moves of each state begin, and where the last ones end.
        bits: int64[m], the bit of ``@mask`` of each one's condition; -1: any event satisfies it.
        targets: int64[m], the state that it leads to.
        numbers: int64[m], its number.
    """

    begins: Ints
    bits: Ints
    targets: Ints
    numbers: Ints


class Walk(NamedTuple):
    """Where the walk stands, and what it has come by. The kernel writes into all of it.

    Attributes:
        state: int64[streams], the state of each stream.
        since: int64[streams], when it was entered.
        before: int64[n], the state before each event.
        before_since: int64[n], when that was entered.
        taken: int64[n], the number of the move that the event takes; -1 for none.
    """

    state: Ints
    since: Ints
    before: Ints
    before_since: Ints
    taken: Ints


@Kernel
def walk_states(moves: Moves, bounds: Ints, mask: Ints, time: Ints, walk: Walk) -> None:
    """Let each event take the first move that fits.

    Args:
        moves: the moves.
        bounds: int64[streams + 1], where the events of each stream begin, and where the last ones end.
        mask: int64[n], which conditions each event satisfies.
        time: int64[n], its time.
        walk: where the streams stand; it goes on.
    """
    for stream in range(len(bounds) - 1):
        state, since = walk.state[stream], walk.since[stream]
        for row in range(bounds[stream], bounds[stream + 1]):
            walk.before[row], walk.before_since[row], walk.taken[row] = state, since, -1
            for place in range(moves.begins[state], moves.begins[state + 1]):
                if moves.bits[place] < 0 or (mask[row] >> moves.bits[place]) & 1:
                    walk.taken[row] = moves.numbers[place]
                    state, since = moves.targets[place], time[row]
                    break
        walk.state[stream], walk.since[stream] = state, since
