"""The progress of the sources, which tasks find out from their records.

`spark_pace.core.order.order` decides which sources are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FileProgress:
    """The progress of the sources in one file that has records.

    Attributes:
        entry: the file's index in the order of files.
        name: the file, which is the source of its events (``@source``).
        listed: what a task must know to read the file.
        max_time_us: the greatest event time.
        least_us: the least event time.
        sources: as in `Progress`.
    """

    entry: int
    name: str
    listed: str
    max_time_us: int
    least_us: int
    sources: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Tick:
    """A reading of the clock that is part of the input: what is earlier and comes after it is late.

    Attributes:
        time_us: the time before which nothing more is waited for.
        entry: its index in the order of files; 0 if files do not decide which events are late.
    """

    time_us: int
    entry: int = 0


@dataclass(frozen=True)
class Progress:
    """The progress of the sources by all good records of a batch; the same for every slot.

    Attributes:
        max_time_us: the greatest event time; None if the batch has no record.
        finish: True if the input ends with this batch.
        sources: the greatest event time of each source; empty unless the frontier follows sources.
        least_us: the least event time; None if the batch has no record.
        files: the progress of each file, in any order; empty unless earlier files decide which events are
            late.
        ticks: the readings of the clock, in any order.
    """

    max_time_us: int | None = None
    finish: bool = False
    sources: dict[str, int] = field(default_factory=dict)
    least_us: int | None = None
    files: tuple[FileProgress, ...] = ()
    ticks: tuple[Tick, ...] = ()

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Progress:
        """Make the progress from the fields that `dataclasses.asdict` gives."""
        files = tuple(FileProgress(**file) for file in fields["files"])
        ticks = tuple(Tick(**tick) for tick in fields["ticks"])
        return Progress(**{**fields, "files": files, "ticks": ticks})


def together(parts: Iterable[Progress]) -> Progress:
    """The progress of a batch, from the progress of its tasks."""
    parts = list(parts)
    sources: dict[str, int] = {}
    for part in parts:
        move_on(sources, part.sources)
    greatest = max((part.max_time_us for part in parts if part.max_time_us is not None), default=None)
    least = min((part.least_us for part in parts if part.least_us is not None), default=None)
    files = tuple(file for part in parts for file in part.files)
    ticks = tuple(tick for part in parts for tick in part.ticks)
    return Progress(greatest, any(part.finish for part in parts), sources, least, files, ticks)


def move_on(sources: dict[str, int], reached: Mapping[str, int]) -> None:
    """Raise the time of each source in `sources` to the time in `reached`."""
    for source, time_us in reached.items():
        sources[source] = max(time_us, sources.get(source, time_us))


def file_progress(entry: int, name: str, listed: str, progress: Progress) -> tuple[FileProgress, ...]:
    """The progress of one file from that of its records; empty if it has no record."""
    if progress.max_time_us is None or progress.least_us is None:
        return ()
    return (FileProgress(entry, name, listed, progress.max_time_us, progress.least_us, progress.sources),)
