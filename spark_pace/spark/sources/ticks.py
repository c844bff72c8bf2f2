"""When a job's clock ticks, as options of a source.

A tick is part of the input: it is noted in the checkpoint before a batch reads it, so that a batch that runs
again, and a job that is started again, read the same ticks at the same places.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Spark's process for sources runs this, so it imports little
    from spark_pace.job_file import Clock

_EVERY, _SLACK = "clock_every_us", "clock_slack_us"


@dataclass(frozen=True)
class Ticks:
    """The times at which a clock ticks: the multiples of `every_us`, each `slack_us` after it has passed."""

    every_us: int
    slack_us: int

    @staticmethod
    def of(options: Mapping[str, str]) -> Ticks | None:
        """The ticks that a source's options name; None if they name none."""
        return Ticks(int(options[_EVERY]), int(options[_SLACK])) if _EVERY in options else None

    def due_us(self) -> int:
        """The last tick that is due by the clock of this machine."""
        return self._us() // self.every_us * self.every_us

    def seconds_to_next(self) -> float:
        """The seconds until the next tick is due."""
        return (self.every_us - self._us() % self.every_us) / 1e6

    def _us(self) -> int:
        return time.time_ns() // 1000 - self.slack_us


def clock_options(clock: Clock | None) -> dict[str, str]:
    """The options that tell a source of a job's clock."""
    return {} if clock is None else {_EVERY: str(clock.every_us), _SLACK: str(clock.slack_us)}
