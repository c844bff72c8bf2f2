"""The paths of a job file."""

from __future__ import annotations

import os
from pathlib import Path

from spark_pace.errors import SetupError


def resolve(text: str, folder: Path) -> str:
    """A path relative to the job file's folder as an absolute one; addresses such as ``s3://…`` stay."""
    return text if "://" in text else str((folder / text).resolve())


def local_path(path: str, key: str) -> Path:
    """A path of this machine.

    Args:
        path: of the job file.
        key: where it stands there, for the error.

    Raises:
        SetupError: it is an address.
    """
    local = path.removeprefix("file://")
    if "://" in local:
        do = "Mount it, or choose another place."
        raise SetupError(f"{key} — must be on a file system that is mounted here; got {path}. {do}")
    return Path(os.path.abspath(local))
