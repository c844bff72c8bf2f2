"""Decides how much the next batch of a job may read, from the time that the last batches took.

Amounts are in a unit that the source knows before it reads: records of Kafka, bytes of files. They decide
where the input is cut into batches, never what is found in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_pace.job_file.keys import duration, key, single, whole

_SEEN = 3  # the last batches, from which the speed is computed
_AHEAD = 2.0  # by the last batch's speed, no batch is planned for more than twice `batch_seconds`
# A cap is at least a hundredth of the first one, which is in `_FIRST_CAPS` of
# `spark_pace.spark.start`. For Kafka that gives 1,000 records.
_LEAST = 100
_SECONDS = duration("5 s", bounds=(1_000_000, 3_600_000_000), told="1 s to 1 h").to(lambda time: time / 1e6)


def _part(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0.01 <= value <= 1 else None


_PART = single("0.25", "a number from 0.01 to 1", _part, "Correct the number.")


@dataclass(frozen=True)
class Batch:
    """The input of one batch, and the time it took.

    Attributes:
        amount: how much it read, in the source's unit.
        seconds: its time, without the wait for the trigger.
        records: how many records it had.
        pending: how many events wait for the frontier after it.
    """

    amount: int
    seconds: float
    records: int
    pending: int


@dataclass(frozen=True)
class Pace:
    """The state of admission between two batches.

    Attributes:
        first: the cap of the first batch.
        cap: the most that the next batch reads, in the source's unit.
        doublings: how often the cap may still double; 0: the job is warm.
        seen: the last batches from which the speed can be computed.
        pending: how many events waited for the frontier after the last batch.
        rate: the rate to read at, in units a second; used once the job is warm.
    """

    first: int
    cap: int
    doublings: int
    seen: tuple[Batch, ...]
    pending: int
    rate: float


@dataclass(frozen=True)
class Admission:
    """The settings of admission, and the rule by which they change the pace after each batch.

    Attributes:
        batch_seconds: how long a batch should take.
        warm_up: how often the cap may double at the start.
        max_deviation: the largest change of the rate from one batch to the next, as a fraction of it.
    """

    batch_seconds: float = key(_SECONDS, 5.0)
    warm_up: int = key(whole(5, 0, 20), 5)
    max_deviation: float = key(_PART, 0.25)

    def every(self, seconds: float) -> Admission:
        """These settings, adapted to a job that starts a batch every `seconds`.

        Its batches should take at least that long. With shorter ones it would idle, and could fall behind for
        ever although it has the time to keep up.
        """
        return replace(self, batch_seconds=max(self.batch_seconds, seconds))

    def begin(self, first: int) -> Pace:
        """The pace of a job that starts with a batch of `first` units."""
        return Pace(first, first, self.warm_up, (), 0, first / self.batch_seconds)

    def after(self, pace: Pace, batch: Batch) -> Pace:
        """The pace after one more batch.

        A batch that read less than half of its cap, and quickly, says nothing about the speed: there was no
        more to read. If more than half of a batch's records had to wait, the job reads ahead of what it can
        decide, so the cap does not rise.

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
        """Double the cap. Where the last batch's speed does not allow that, the job is warm.

        The very first batch starts processes, so its speed is ignored if it was quick enough.
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
        """Move the rate towards the speed; while events pile up, lower it to the first batch's at most."""
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
    """The mean speed of some batches, in units a second."""
    return sum(batch.amount for batch in batches) / sum(max(batch.seconds, 1e-3) for batch in batches)
