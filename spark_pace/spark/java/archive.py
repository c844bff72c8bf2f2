"""The archive of classes beside the jars: Spark's JVM maps it into memory instead of loading them anew.

A job needs more than ten thousand classes of some 270 jars. To find, check and lay them out takes a quarter
of the processor time of a start. Java itself looks whether an archive is sound and was made by the same Java
from the same jars; if not, it silently does without. It crashes where an archive is cut short, so the name of
the file says its size. `spark_pace.cli.archive` makes the archive.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def archives(directory: Path) -> list[Path]:
    """The archives in `directory`, whole or not; several only if processes have made them at once."""
    return sorted(directory.glob("classes-*.jsa"))


def keep(made: Path, directory: Path) -> Path:
    """Move an archive that Java has made into `directory`, on the same file system: others see it whole."""
    return made.replace(directory / f"classes-{made.stat().st_size}.jsa")


def archive_options(directory: Path) -> list[str]:
    """The options of a JVM that takes classes from the archive in `directory`; none if there is none."""
    for archive in archives(directory):
        with suppress(OSError):  # it was removed just now
            if archive.name == f"classes-{archive.stat().st_size}.jsa" and os.access(archive, os.R_OK):
                # a spoilt archive would crash the JVM if it did not compare checksums
                checked = ["-XX:+VerifySharedSpaces", "-Xlog:cds*=off"]
                return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *checked]
    return []
