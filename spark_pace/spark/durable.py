"""Small JSON files that are either there whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from spark_pace.errors import StateError

RESTORE = "Restore the whole checkpoint together with its tables, or start a new one with a sink of its own."


def write_json(path: Path, value: Any) -> None:
    """Write by temporary file, sync and rename; the folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: Path) -> Any:
    """The value, or None if there is no such file.

    Raises:
        StateError: the file is damaged.
    """
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StateError(f"{path} — must be as this program wrote it; got damaged text ({error}). {RESTORE}") from error
