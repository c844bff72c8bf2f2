"""Decides which keys a batch forgets: those without events for longer than the rule's `forget_key_after`.

A longer gap ends the stream of a key. What follows the gap is the stream of another key with the same text,
so the old counters and events are useless once the frontier has passed the end. This module only tells when
that
is: `Carry.find` then leaves the counters out, and `event_numbers` begins a new stream at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.columns import NO_FRONTIER, NOTHING_US, UNKNOWN_TIME, Bools, Ints


@dataclass(frozen=True)
class Forgetting:
    """Tells when keys of a rule are forgotten.

    Attributes:
        after_us: the longest gap between two events of a stream.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
    """

    after_us: int
    passed_us: int
    frontier_us: int

    def before(self, last_us: Ints) -> Bools:
        """bool[k], which streams with these last event times had ended before the batch."""
        return last_us < self._bound(self.passed_us)

    def by_now(self, last_us: Ints) -> Bools:
        """bool[k], which streams have ended by now."""
        return last_us < self._bound(self.frontier_us)

    def for_good(self, last_us: Ints) -> Bools:
        """bool[k], which streams have ended and are not read again in this batch.

        At the end of the input every stream ends, but the keys are processed one part after the other.
        """
        return self.before(last_us) if self.frontier_us == UNKNOWN_TIME else self.by_now(last_us)

    def bounds(self) -> tuple[int, int]:
        """(low, high): a stream ends in this batch if its last event time is in [low, high)."""
        return self._bound(self.passed_us), self._bound(self.frontier_us)

    def _bound(self, frontier_us: int) -> int:
        return NOTHING_US if frontier_us == NO_FRONTIER else frontier_us - self.after_us
