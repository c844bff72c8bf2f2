"""How far a job is behind the clock, and whether it falls further behind or catches up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace.watching.words import shown_length

CLOSE_SECONDS = 60  # who is no further behind keeps up
MOST_SEEN = 256  # of the last batches, or stretches of time
LATELY_SECONDS = 60
_FEW = 3  # what lies further back than these, and than a minute, says nothing of now
_LEAST_SECONDS = 20  # a shorter time does not tell the speed
_STEADY = 0.2  # seconds a second by which a lag may change
_BUSY = 0.7  # of its time a job takes for batches where it cannot keep up


@dataclass(frozen=True)
class Reached:
    """How far a job was once a batch, or those of a stretch of time, were done.

    Attributes:
        at: when that was, in seconds since 1970.
        newest: the time of the newest event until then, in seconds since 1970.
        seconds: since the batch before.
        batch_seconds: what the batch itself took.
    """

    at: float
    newest: float
    seconds: float
    batch_seconds: float

    @property
    def lag(self) -> float:
        """How far the newest event is behind the clock, in seconds."""
        return self.at - self.newest


@dataclass(frozen=True)
class Lag:
    """Whether a job falls behind, or its input does, or it catches up; and a sentence about it."""

    kind: str
    told: str


def lag_of(seen: Sequence[Reached]) -> Lag | None:
    """How a lag of more than a minute has changed lately; None if it has not, or there is none.

    Args:
        seen: how far the job was, after all batches with records or the last of them, in order.
    """
    last, few = seen[-1], len(seen) - _FEW
    lately = [one for place, one in enumerate(seen) if place >= few or one.at >= last.at - LATELY_SECONDS]
    first, lasted = lately[0], last.at - lately[0].at
    if last.lag <= CLOSE_SECONDS or lasted < _LEAST_SECONDS or first.newest == last.newest:
        return None
    grown = last.lag - first.lag
    told = f"the newest event is {shown_length(last.lag)} behind the clock"
    if grown < -_STEADY * lasted:
        left = shown_length(last.lag * lasted / -grown)
        return Lag(
            "catches up", f"The job is behind: {told}. At this speed it has caught up in about {left}."
        )
    if grown <= _STEADY * lasted:
        return None
    told += f", {shown_length(grown)} more than {shown_length(lasted)} before"
    if sum(one.batch_seconds for one in lately[1:]) >= _BUSY * sum(one.seconds for one in lately[1:]):
        return Lag("falls behind", f"The job falls behind: {told}. It is too slow for its input.")
    return Lag("input", f"The input falls behind: {told}, and the job waits for it. What sends it is slow.")
