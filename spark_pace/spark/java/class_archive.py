"""Finds the archive of classes beside the jars, which Spark's JVM maps into memory.

A job needs more than ten thousand classes from some 270 jars. Finding, checking and laying them out takes a
quarter of the processor time of a start. Java ignores an archive that is not sound, or was made by another
Java or from other jars. It crashes on an archive that is cut short, so the file's name contains its size.
`spark_pace.cli.archive` makes the archive.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def archives(directory: Path) -> list[Path]:
    """The archives in `directory`, complete or not; there are several if processes have made them at once."""
    return sorted(directory.glob("classes-*.jsa"))


def keep(made: Path, directory: Path) -> Path:
    """Move a new archive into `directory`, on the same file system, so that others see only complete ones."""
    return made.replace(directory / f"classes-{made.stat().st_size}.jsa")


def archive_options(directory: Path) -> list[str]:
    """The Java options to use the archive in `directory`; none if there is no archive."""
    for archive in archives(directory):
        with suppress(OSError):  # it was removed just now
            if archive.name == f"classes-{archive.stat().st_size}.jsa" and os.access(archive, os.R_OK):
                # without a comparison of checksums a spoilt archive would crash the JVM
                checked = ["-XX:+VerifySharedSpaces", "-Xlog:cds*=off"]
                return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *checked]
    return []
