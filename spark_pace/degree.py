"""The degree of parallelism that keeps queues short, also while one instance is lost.

Each instance is a queue of selections of its own (M/M/1): arrivals and completions are Poisson processes, and
selections are dealt round robin. The model is pessimistic: real arrivals and times vary less.

Sources: Trischler 2013, section 6 (tables 6.1 to 6.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_FEWEST_QUEUED = 2  # a bound of 1 leaves no room for a selection of the lost instance


@dataclass(frozen=True)
class Load:
    """The rate at which selections arrive, and at which one instance completes them.

    Attributes:
        arrivals: selections that arrive in a time unit, for all instances.      # λ
        completions: selections that one instance can complete in a time unit.   # ν

    Raises:
        ValueError: one is not above 0.
    """

    arrivals: float
    completions: float

    def __post_init__(self) -> None:
        """Check the values."""
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} — must be a number above 0; got {value}. Correct it.")

    def utilization(self, instances: int) -> float:
        """The share of its time that each of these instances is busy; queues stay finite below 1."""  # ρ
        return self.arrivals / instances / self.completions


@dataclass(frozen=True)
class Guarantee:
    """A promise: with `probability` an instance has at most `queue` selections, the one it works on included.

    Raises:
        ValueError: the queue is below 1, or the probability not between 0 and 1.
    """

    queue: int  # n
    probability: float  # p

    def __post_init__(self) -> None:
        """Check the values."""
        if self.queue < 1:
            raise ValueError(f"queue — must be 1 or more; got {self.queue}. Correct it.")
        if not 0 < self.probability < 1:
            raise ValueError(f"probability — must be between 0 and 1; got {self.probability}. Correct it.")


def short_queue_probability(utilization: float, queue: int) -> float:
    """The probability that at most `queue` selections are in an instance: P(Q ≤ n) = 1 − ρ^(n + 1)."""
    return 1 - utilization ** (queue + 1) if utilization < 1 else 0.0


def fewest_instances(load: Load, guarantee: Guarantee) -> int:
    """The least number of instances that keeps the guarantee while none is lost."""  # c0
    return _least(1, lambda instances: _keeps(load, instances, guarantee.queue, guarantee.probability))


def queue_before_loss(queue: int, instances: int) -> int:
    """The longest queue with room for a share of a lost one: n − ⌈n / (c − 1)⌉, for two instances or more."""
    return queue + -queue // (instances - 1)  # n_new


def survives_loss(load: Load, guarantee: Guarantee, instances: int) -> bool:
    """True if this many instances keep the guarantee while one is lost.

    The others take all arrivals and the selections of the lost instance, which had as many as the guarantee
    allows. Only one loss at a time counts. False for a guarantee of one selection, which leaves no room.
    """
    if instances < 2 or guarantee.queue < _FEWEST_QUEUED:
        return False
    left = queue_before_loss(guarantee.queue, instances)
    return _keeps(load, instances - 1, left, guarantee.probability)


def fewest_surviving_instances(load: Load, guarantee: Guarantee) -> int:
    """The least number of instances that keeps the guarantee while one is lost.

    Raises:
        ValueError: the guarantee allows one selection only; the formula does not apply to that.
    """
    if guarantee.queue < _FEWEST_QUEUED:
        must = f"must be {_FEWEST_QUEUED} or more, for the selections of a lost instance need room"
        raise ValueError(f"queue — {must}; got {guarantee.queue}. Allow longer queues.")
    return _least(2, lambda instances: survives_loss(load, guarantee, instances))


def _keeps(load: Load, instances: int, queue: int, probability: float) -> bool:
    return short_queue_probability(load.utilization(instances), queue) >= probability


def _least(first: int, enough: Callable[[int], bool]) -> int:
    """The least number from `first` on that is enough; if one is, so is every greater one."""
    last = first
    while not enough(last):
        first, last = last + 1, 2 * last
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if enough(middle) else (middle + 1, last)
    return last
