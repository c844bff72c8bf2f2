"""How much the next batch of a job may read: a rate that follows what the last batches took.

Amounts are in a unit that a source knows before it reads: records of Kafka, bytes of files. Nothing here
decides what a batch finds, only where the input is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_SEEN = 3  # batches that the speed is taken from
_AHEAD = 2.0  # times the last speed: no batch is planned to take longer than twice `batch_seconds`
# No cap is below a hundredth of the first one. For Kafka that is 1,000 records: `_FIRST_CAPS` in
# `spark_pace.spark.sources.kinds` is the other number that makes it.
_LEAST = 100


@dataclass(frozen=True)
class Batch:
    """What a batch took.

    Attributes:
        amount: how much it read, in the source's unit.
        seconds: what it took, without waiting for the trigger.
        records: the records it brought.
        pending: the events that wait for the frontier after it.
    """

    amount: int
    seconds: float
    records: int
    pending: int


@dataclass(frozen=True)
class Pace:
    """How fast a job reads.

    Attributes:
        first: the cap of the first batch.
        cap: the most that the next batch reads, in the source's unit.
        doublings: how often the cap may still double; 0: the job is warm.
        seen: the last batches that told something of the speed.
        pending: the events that waited for the frontier after the last batch.
        rate: the desired rate in units a second; it counts once the job is warm.
    """

    first: int
    cap: int
    doublings: int
    seen: tuple[Batch, ...]
    pending: int
    rate: float


@dataclass(frozen=True)
class Admission:
    """The settings.

    Attributes:
        batch_seconds: what a batch is to take.
        warm_up: how often the cap may double at the start.
        max_deviation: the most by which the rate changes from a batch to the next, as a part of it.
    """

    batch_seconds: float = 5.0
    warm_up: int = 5
    max_deviation: float = 0.25

    def every(self, seconds: float) -> Admission:
        """Give the settings for a job that starts a batch every so many seconds.

        Its batches should take that long: with shorter ones it would idle, and could fall behind for ever,
        though it has the time to keep up.
        """
        return replace(self, batch_seconds=max(self.batch_seconds, seconds))

    def begin(self, first: int) -> Pace:
        """The pace of a job that starts with a batch of `first` units."""
        return Pace(first, first, self.warm_up, (), 0, first / self.batch_seconds)

    def after(self, pace: Pace, batch: Batch) -> Pace:
        """The pace after one more batch.

        A batch that read less than half of its cap, and quickly, tells nothing: there was no more to read.
        If more than half of a batch's records had to wait, the job reads ahead of what it can decide: then
        the cap does not rise.

        Sources:
            SPACE, section 4.5: the source's rate follows the speed of the instances within a maximum
            deviation, falls when what is buffered grows, and is raised gradually at the start. The formula is
            this project's.
        """
        swells = batch.pending - pace.pending > batch.records / 2
        pace = replace(pace, pending=batch.pending)
        if batch.amount == 0 or (2 * batch.amount < pace.cap and batch.seconds <= self.batch_seconds):
            return pace
        cold = not pace.seen
        pace = replace(pace, seen=(*pace.seen, batch)[-_SEEN:])
        return self._warmer(pace, cold, swells) if pace.doublings else self._steered(pace, swells)

    def _warmer(self, pace: Pace, cold: bool, swells: bool) -> Pace:
        """Double the cap, but not beyond what the last batch's speed allows: then the job is warm.

        The very first batch starts processes, so its speed says nothing if it is quick enough.
        """
        last = pace.seen[-1]
        quick = cold and last.seconds <= self.batch_seconds
        allowed = 2 * pace.cap if quick else round(_speed((last,)) * self.batch_seconds)
        if swells and allowed > pace.cap:
            return pace
        cap = max(min(2 * pace.cap, allowed), self._least(pace))
        warm = cap < 2 * pace.cap
        doublings = 0 if warm else pace.doublings - 1
        seen = () if not doublings else pace.seen
        return replace(pace, cap=cap, doublings=doublings, seen=seen, rate=cap / self.batch_seconds)

    def _steered(self, pace: Pace, swells: bool) -> Pace:
        """Move the rate towards the speed; down, though not below the first batch's, while events pile up."""
        step = self.max_deviation * pace.rate
        rate = min(max(_speed(pace.seen), pace.rate - step), pace.rate + step)
        if swells:
            floor = min(pace.rate, pace.first / self.batch_seconds)
            rate = min(rate, max(pace.rate - step, floor))
        rate = max(rate, self._least(pace) / self.batch_seconds)
        cap = round(min(rate, _AHEAD * _speed(pace.seen[-1:])) * self.batch_seconds)
        return replace(pace, cap=max(cap, self._least(pace)), rate=rate)

    def _least(self, pace: Pace) -> int:
        return max(1, pace.first // _LEAST)


def _speed(batches: tuple[Batch, ...]) -> float:
    """Units a second over some batches."""
    return sum(batch.amount for batch in batches) / sum(max(batch.seconds, 1e-3) for batch in batches)
