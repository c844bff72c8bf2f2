"""What a run was, and all that was seen of it."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.sizing.bench.results.latency import Latencies, Sent
from spark_pace.sizing.bench.results.watch import Watched
from spark_pace.sizing.bench.spec import RunSpec


@dataclass(frozen=True)
class Driven:
    """What a run was and has shown.

    Attributes:
        run: its specification.
        began: when its first event was due, seconds since 1970.
        first: how many records came before the schedule.
        sent: all records, those before the schedule included.
        watched: what was seen of the job.
        stopped: when the job was told to stop.
        latencies: of the matches that were visible when it had stopped.
        matches: how many there are with those that only the end of the input decides.
        expected: how many the core finds.
        differences: of the job's matches from the core's, in sentences.
    """

    run: RunSpec
    began: float
    first: int
    sent: Sent
    watched: Watched
    stopped: float
    latencies: Latencies
    matches: int
    expected: int
    differences: list[str]
