"""Reads, writes, lists and removes the files of a checkpoint; no other module does.

An object store would be added here: the functions up to `remove` are what it must be able to do. A file is
complete or absent, whenever the process or the machine stops; only `append` may leave a part of what it adds.
Locks are elsewhere, because they are the kernel's (`spark_pace.spark.checkpoint.lock`).

Small files hold a JSON object with a checksum of itself, because a changed digit would otherwise go
unnoticed. This module imports little, because Spark's process for sources imports it.
"""

from __future__ import annotations

import json
import mmap
import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spark_pace.errors import StateError

RESTORE = "Restore the whole checkpoint together with its tables, or start a new one with a sink of its own."
_CHECKSUM = "checksum"
_READ_BYTES = 1 << 20


def read(path: Path) -> bytes | None:
    """The content of a file; None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the content of a large file, piece by piece.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with open(path, "rb") as file:
        while piece := file.read(_READ_BYTES):
            yield piece


def mapped(path: Path) -> memoryview:
    """The content of a large file, mapped into memory, so that only the parts that are used are read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is empty.
    """
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def write(path: Path, content: bytes) -> None:
    """Write a complete file, and make its folder if it is missing. One process at a time may write it."""

    def fill(file: IO[bytes]) -> str:
        file.write(content)
        return path.name

    _put(path.with_name(f".{path.name}.tmp"), fill)


def write_named(folder: Path, fill: Callable[[IO[bytes]], str]) -> str:
    """Write a complete file, and return its name. Several processes may write the same file at once.

    Args:
        folder: the file's folder, which is made if it is missing.
        fill: writes the content, and returns the file's name.
    """
    return _put(folder / f".{uuid.uuid4().hex}.tmp", fill)


def append(path: Path, content: bytes, length: int | None) -> None:
    """Add to the end of a file, which is made if it is missing; after a crash it may end with a part of that.

    Args:
        path: the file.
        content: the bytes to add.
        length: how many bytes of the file are valid, if a crash has left more; None: all.
    """
    with _named(path), open(path, "ab") as file:
        if length is not None:
            file.truncate(length)
        file.write(content)
        _sync(file)


def names(folder: Path) -> list[str]:
    """The names of a folder's files, in any order; none if the folder is missing."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return []


def folders(folder: Path) -> list[Path]:
    """The folders in a folder, in any order; none if it is missing."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def written_at(path: Path) -> float | None:
    """When a file was written, in seconds since 1970; None if there is no such file."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def remove(path: Path) -> None:
    """Remove a file if it exists."""
    path.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with its checksum, as `write` does."""
    write(path, json.dumps({**value, _CHECKSUM: _checksum(value)}).encode())


def read_json(
    path: Path, *, unsigned: Callable[[dict[str, Any]], bool] = lambda stored: False
) -> dict[str, Any] | None:
    """Read the JSON object in a file; None if there is no such file.

    Args:
        path: the file.
        unsigned: True for an object that may lack the checksum, as in files of the first builds.

    Raises:
        StateError: the file is damaged.
    """
    content = read(path)
    if content is None:
        return None
    try:
        stored = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise damaged(path, f"damaged text ({error})") from error
    if not isinstance(stored, dict):
        raise damaged(path, f"damaged text ({str(stored)[:100]})")
    checksum = stored.pop(_CHECKSUM, None)
    if checksum != _checksum(stored) and not (checksum is None and unsigned(stored)):
        raise damaged(path, "another content than its checksum is of")
    return stored


def damaged(path: Path, got: str) -> StateError:
    """The error for a file of the checkpoint that was damaged or changed."""
    return StateError(f"{path} — must be as this program wrote it; got {got}. {RESTORE}")


def digest(content: bytes, before: str = "0") -> str:
    """A checksum of eight hexadecimal digits, which continues the checksum `before` with `content`."""
    return f"{zlib.crc32(content, int(before, 16)):08x}"


def _checksum(value: Mapping[str, Any]) -> str:
    return digest(json.dumps(value, sort_keys=True).encode())


def _put(temporary: Path, fill: Callable[[IO[bytes]], str]) -> str:
    """Write a file under a temporary name, and rename it to what `fill` returns once it is on the disk."""
    folder = temporary.parent
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _named(temporary), open(temporary, "wb") as file:
            name = fill(file)
            _sync(file)
        os.replace(temporary, folder / name)
    except OSError:
        remove(temporary)
        raise
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
    return name


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let errors of the system name the file: those of a write, as on a full disk, do not by themselves."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
