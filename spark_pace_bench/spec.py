"""What a checked run file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spark_pace.job_file import JobSpec
from spark_pace_bench.generators import Generator

Arrivals = Literal["constant", "poisson"]
Role = Literal["warm_up", "steady", "peak", "recovery"]


@dataclass(frozen=True)
class Phase:
    """A part of a run with a rate of its own.

    Attributes:
        name: of the phase.
        seconds: how long it lasts.
        rate: events a second at its begin and at its end; between them it changes evenly.
        arrivals: ``constant`` distances, or those of a Poisson process.
        role: ``warm_up`` is not measured; a burst is ``steady``, ``peak``, ``recovery``.
    """

    name: str
    seconds: float
    rate: tuple[float, float]
    arrivals: Arrivals
    role: Role


@dataclass(frozen=True)
class Replay:
    """A file, or a folder of files, whose events are sent in the order of their times.

    Attributes:
        path: the file or folder.
        own_times: events keep their event times; else these are the times at which they are due.
    """

    path: Path
    own_times: bool


@dataclass(frozen=True)
class RunSpec:
    """One run of the driver.

    Attributes:
        name: of the run file.
        variant: which of its variants this is; empty if it has none.
        job_file: the job that is driven.
        job: what that file says.
        rules: the names of the rules that run; None: all of the job.
        copies: how many of each rule run.
        phases: at least one.
        seed: of all chance.
        events: a generator for each attribute but the event time, or what is replayed.
        file_seconds: the time from one file to the next, where the job reads files.
        limit_seconds: how long the job may take after the last event is due.
    """

    name: str
    variant: str
    job_file: Path
    job: JobSpec
    rules: tuple[str, ...] | None
    copies: int
    phases: tuple[Phase, ...]
    seed: int
    events: Mapping[str, Generator] | Replay
    file_seconds: float
    limit_seconds: float
