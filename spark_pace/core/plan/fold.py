"""What a checked fold is: a state for each key, which goes from event to event."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.expr import Expr


@dataclass(frozen=True)
class Move:
    """An event moves its key from one of some states to another.

    Attributes:
        sources: the numbers of the states that it may leave.
        condition: the number of the condition that the event must satisfy; None: any event moves the key.
        target: the number of the state that it leads to.
        emits: True if the move gives a match.
    """

    sources: tuple[int, ...]
    condition: int | None
    target: int
    emits: bool


@dataclass(frozen=True)
class StateMachine:
    """A fold with a table of states and moves. An event takes the first move that fits.

    Attributes:
        states: the names of the states; a key begins in the first one.
        conditions: the distinct conditions of the moves, each over an event and perhaps the events before it.
        moves: the moves, in the order of the rule file.
    """

    states: tuple[str, ...]
    conditions: tuple[Expr, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class PythonFold:
    """A fold by a Python function.

    Attributes:
        function: "module:function".
        version: the version of the function's states, from the rule; states of another version are useless.
    """

    function: str
    version: int = 1


Fold = StateMachine | PythonFold
# columns that ``emit`` of a state machine reads beside the attributes of the event
STATE_BEFORE, STATE_AFTER = "@from", "@to"
STATE_SINCE = "@since"  # the event time at which the state before was entered; null where a key begins in it
