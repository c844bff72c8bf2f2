"""Files of a checkpoint that are either there whole or not at all, whenever the process or the machine stops.

The small ones hold a JSON object with a checksum of itself: a changed digit would otherwise leave a number
that looks right.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from spark_pace.errors import StateError

RESTORE = "Restore the whole checkpoint together with its tables, or start a new one with a sink of its own."
_CHECKSUM = "checksum"


def write_whole(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file by temporary file, sync and rename. Make its folder if it is missing.

    Several processes, of several machines too, may write the same file at once, if they write the same.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{token_hex(8)}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a small file whole, see `write_whole`."""
    write_whole(path, [json.dumps({**value, _CHECKSUM: _checksum(value)}).encode()])


def read_json(path: Path) -> dict[str, Any] | None:
    """The value in a file; None if there is no such file. Files of version 2 have no checksum that tells.

    Raises:
        StateError: the file is damaged.
    """
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise damaged(path, f"damaged text ({error})") from error
    if not isinstance(stored, dict):
        raise damaged(path, f"damaged text ({str(stored)[:100]})")
    kept = stored.pop(_CHECKSUM, None)
    if kept is not None and kept != _checksum(stored):
        raise damaged(path, "another content than its checksum is of")
    return stored


def damaged(path: Path, got: str) -> StateError:
    """The error for a file of the checkpoint that is not as this program left it."""
    return StateError(f"{path} — must be as this program wrote it; got {got}. {RESTORE}")


def digest(content: bytes, before: str = "0") -> str:
    """A checksum of bytes as eight hexadecimal digits. `before` is that of all bytes in front of them."""
    return f"{zlib.crc32(content, int(before, 16)):08x}"


def _checksum(value: Mapping[str, Any]) -> str:
    return digest(json.dumps(value, sort_keys=True).encode())
