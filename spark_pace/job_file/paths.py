"""The paths of a job file."""

from __future__ import annotations

import os
from pathlib import Path

from spark_pace.errors import UnfitError
from spark_pace.io.files.store_settings import PLACES

SINKS = (*PLACES, "viewfs")  # which the writer of tables reaches


def resolve(text: str, folder: Path) -> str:
    """The absolute path of a path relative to `folder`; addresses such as ``s3://…`` stay as they are."""
    return text if "://" in text else str((folder / text).resolve())


def local_path(path: str, key: str) -> Path:
    """The absolute path, on this machine, of a path in the job file.

    Args:
        path: the path; ``file://`` may stand before it.
        key: the key of the job file that names it, for the error.

    Raises:
        SetupError: it is an address, such as ``s3://…``.
    """
    local = path.removeprefix("file://")
    if "://" in local:
        do = "Mount it, or choose another place."
        raise UnfitError(f"{key} — must be on a file system that is mounted here; got {path}. {do}")
    return Path(os.path.abspath(local))


def in_store(path: str) -> bool:
    """True if a path is the address of something in an object store or on HDFS, whose files jobs can read."""
    return path.startswith(tuple(f"{scheme}://" for scheme in PLACES))
