"""What a measurement gives, and how large it is made."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, process_time

NO_RESULT = "nothing: it has no result"


@dataclass(frozen=True)
class Row:
    """One figure. What it is of was checked before.

    Attributes:
        measurement: the name in the table of measurements (`benchmarks/run.py`).
        case: what was measured of it; cases of a table are ``line; column``.
        value: in `unit`.
        ratio: of `value` to that of the floor, which is measured in the same run; None: no floor.
        target: such as ``>= 1.5``, of the ratio, or of the value where there is no ratio; None: none.
        checked: what the results were compared with before.
    """

    measurement: str
    case: str
    value: float
    unit: str
    ratio: float | None = None
    target: str | None = None
    checked: str = ""

    @property
    def reached(self) -> bool | None:
        """True if the target is reached; None without a target."""
        if self.target is None:
            return None
        sign, bound = self.target.split()
        figure = self.value if self.ratio is None else self.ratio
        return figure >= float(bound) if sign == ">=" else figure <= float(bound)


@dataclass(frozen=True)
class Sizes:
    """How large the measurements are.

    Attributes:
        events: of the stream of the patterns, and of the backlog in Kafka.
        rounds: how often each job is timed; the figure is the median.
        peer_rounds: the same of the peers, behind a round to warm up; 0: no peers.
        kernel_events: of a measurement in the core.
        carried: how many events wait when a batch comes.
        keys: how many keys are live.
        rules: how many rules there are.
        selections: of the operator that takes a millisecond.
        batches: of each kind whose fixed cost is measured.
        starts: how often a job is started.
        minutes: of the stream of faces.
    """

    events: int
    rounds: int
    peer_rounds: int
    kernel_events: int
    carried: tuple[int, ...]
    keys: tuple[int, ...]
    rules: tuple[int, ...]
    selections: int
    batches: int
    starts: int
    minutes: int

    def with_events(self, events: int) -> Sizes:
        """Return these sizes with streams of so many events."""
        return replace(self, events=events, kernel_events=events)


SIZES = {
    "small": Sizes(20_000, 1, 1, 20_000, (0, 20_000), (10, 1_000), (1, 10), 500, 4, 1, 5),
    "bench": Sizes(2_000_000, 2, 0, 500_000, (0, 1_000_000), (10, 1_000_000), (1, 1_000), 5_000, 24, 1, 5),
    "full": Sizes(
        5_000_000,
        3,
        1,
        1_000_000,
        (0, 100_000, 1_000_000, 2_000_000),
        (10, 1_000, 100_000, 1_000_000),
        (1, 10, 100, 1_000),
        20_000,
        40,
        3,
        8,
    ),
}


def wall(action: Callable[[], object]) -> float:
    """Seconds on the clock."""
    began = perf_counter()
    action()
    return perf_counter() - began


def processor(action: Callable[[], object]) -> float:
    """Processor seconds of this process, of all its threads."""
    began = process_time()
    action()
    return process_time() - began


def ratio_in_turns(ours: Sequence[float], floors: Sequence[float]) -> float:
    """How many times as fast as the floor, by the median of the turns."""
    return statistics.median(floor / our for our, floor in zip(ours, floors, strict=True))


def require(holds: bool, message: str) -> None:
    """End the measurement if its results are wrong.

    Raises:
        SystemExit: they are.
    """
    if not holds:
        raise SystemExit(message)
