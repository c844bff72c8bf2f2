"""How far the sources have come: tasks find it out from their records.

Which of the sources are waited for, `spark_pace.core.order.order` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FileProgress:
    """How far the sources have come in one file that has a record.

    Attributes:
        entry: the file's place in the order of the files.
        name: the file, which is the source of its events (``@source``).
        max_time_us: the greatest event time.
        least_us: the least event time.
        sources: as in `Progress`.
    """

    entry: int
    name: str
    max_time_us: int
    least_us: int
    sources: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """How far the sources have come, over all valid records of a batch. Every slot is told the same.

    Attributes:
        max_time_us: the greatest event time; None where the batch had no record.
        finish: whether the input ends with this batch.
        sources: the greatest event time of each source; empty unless the frontier follows the sources.
        least_us: the least event time; None where the batch had no record.
        files: the progress of each file, in any order; empty unless the files before an event decide whether
            it is late.
    """

    max_time_us: int | None = None
    finish: bool = False
    sources: dict[str, int] = field(default_factory=dict)
    least_us: int | None = None
    files: tuple[FileProgress, ...] = ()

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Progress:
        """The progress of which `dataclasses.asdict` has made these fields."""
        files = tuple(FileProgress(**file) for file in fields["files"])
        return Progress(**{**fields, "files": files})


def together(parts: Iterable[Progress]) -> Progress:
    """The progress of a batch of which several tasks have each read a part."""
    parts = list(parts)
    sources: dict[str, int] = {}
    for part in parts:
        move_on(sources, part.sources)
    greatest = max((part.max_time_us for part in parts if part.max_time_us is not None), default=None)
    least = min((part.least_us for part in parts if part.least_us is not None), default=None)
    files = tuple(file for part in parts for file in part.files)
    return Progress(greatest, any(part.finish for part in parts), sources, least, files)


def move_on(sources: dict[str, int], reached: Mapping[str, int]) -> None:
    """Move each source on to the time that it has reached, where that is greater."""
    for source, time_us in reached.items():
        sources[source] = max(time_us, sources.get(source, time_us))


def file_progress(entry: int, name: str, progress: Progress) -> tuple[FileProgress, ...]:
    """Turn the progress of one file's records into that of the file; empty if it has no record."""
    if progress.max_time_us is None or progress.least_us is None:
        return ()
    return (FileProgress(entry, name, progress.max_time_us, progress.least_us, progress.sources),)
