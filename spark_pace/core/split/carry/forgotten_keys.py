"""Which keys a batch forgets: those of which no event has come for longer than the rule's `forget_key_after`.

A gap of more than that ends the stream of a key. What comes behind the gap is the stream of another key with
the same text, so neither counters nor events of before are needed any more once the frontier has passed the
end. This module only says when that is: `Carry.find` leaves the counters out, and `numbering` begins a new
stream at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.columns import NO_FRONTIER, NOTHING_US, UNKNOWN_TIME, Bools, Ints


@dataclass(frozen=True)
class Forgetting:
    """When the keys of a rule are forgotten.

    Attributes:
        after_us: the longest gap between two events of a stream.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
    """

    after_us: int
    passed_us: int
    frontier_us: int

    def before(self, last_us: Ints) -> Bools:
        """bool[k], which streams had ended before the batch, by the event time of their last event."""
        return last_us < self._bound(self.passed_us)

    def by_now(self, last_us: Ints) -> Bools:
        """bool[k], which streams have ended by now."""
        return last_us < self._bound(self.frontier_us)

    def for_good(self, last_us: Ints) -> Bools:
        """bool[k], which streams have ended and are not to be looked at any more in this batch.

        At the end of the input every stream ends, but the keys are looked at one part after the other.
        """
        return self.before(last_us) if self.frontier_us == UNKNOWN_TIME else self.by_now(last_us)

    def bounds(self) -> tuple[int, int]:
        """Two times: streams with a last event from the first on, before the second, end in this batch."""
        return self._bound(self.passed_us), self._bound(self.frontier_us)

    def _bound(self, frontier_us: int) -> int:
        return NOTHING_US if frontier_us == NO_FRONTIER else frontier_us - self.after_us
