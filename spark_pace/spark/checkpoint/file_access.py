"""Reads, writes, lists and removes the files of a checkpoint; no other module does.

They lie on a disk, or in an object store or on HDFS: the two modules in `files` have the same functions. A
file is complete or absent, whenever the process or the machine stops; only `append` may leave a part of what
it adds on a disk. Locks are elsewhere (`spark_pace.spark.checkpoint.lock` and `lease`).

Small files hold a JSON object with a checksum of it and of their name, because a changed digit, or the file
of another batch in its place, would otherwise go unnoticed. This module imports little, because Spark's
process for sources imports it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spark_pace.errors import StateError
from spark_pace.io.files.store_path import AnyPath
from spark_pace.spark.checkpoint.files import on_disk

RESTORE = "Restore the whole checkpoint together with its tables, or start a new one with a sink of its own."
_CHECKSUM = "checksum"


def read(path: AnyPath) -> bytes | None:
    """The content of a file; None if there is no such file."""
    with _in_its_place(path):
        content: bytes | None = _side(path).read(path)
    return content


@contextmanager
def _in_its_place(path: AnyPath) -> Iterator[None]:
    """Refuse a folder where a file is to be, or a file where a folder is."""
    try:
        yield
    except (IsADirectoryError, NotADirectoryError) as error:
        got = (
            "a folder in its place" if isinstance(error, IsADirectoryError) else "a file in place of a folder"
        )
        raise StateError(f"{path} — must be as it was written; got {got}. {RESTORE}") from error


def pieces(path: AnyPath) -> Iterator[bytes]:
    """Yield the content of a large file, piece by piece; what `write_named` has packed is unpacked.

    Raises:
        FileNotFoundError: there is no such file.
    """
    with _in_its_place(path):
        yield from _side(path).pieces(path)


def mapped(path: AnyPath) -> memoryview:
    """The content of a large file, mapped into memory where that can be done, so that only parts are read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is empty.
    """
    with _in_its_place(path):
        content: memoryview = _side(path).mapped(path)
    return content


def write(path: AnyPath, content: bytes) -> None:
    """Write a complete file, and make its folder if it is missing. One process at a time may write it."""
    _side(path).write(path, content)


def write_named(folder: AnyPath, fill: Callable[[IO[bytes]], str]) -> str:
    """Write a complete file, and return its name. Several processes may write the same file at once.

    Args:
        folder: the file's folder, which is made if it is missing.
        fill: writes the content, and returns the file's name.
    """
    name: str = _side(folder).write_named(folder, fill)
    return name


def append(path: AnyPath, content: bytes, length: int, cut: bool) -> None:
    """Add to the end of a file, which is made if it is missing; after a crash it may end with a part of that.

    Args:
        path: the file.
        content: the bytes to add.
        length: how many bytes of the file are valid.
        cut: True if a crash has left more, which must go.

    Raises:
        StateError: another job has added something there; this is found out in a store only.
    """
    _side(path).append(path, content, length, cut)


def read_appended(path: AnyPath) -> bytes | None:
    """The content of a file that `append` has written; None if there is no such file."""
    with _in_its_place(path):
        content: bytes | None = _side(path).read_appended(path)
    return content


def join_appended(path: AnyPath) -> None:
    """Let a file that `append` has written be read quickly. Only the job that holds the checkpoint may."""
    _side(path).join_appended(path)


def remove_appended(path: AnyPath) -> None:
    """Remove a file that `append` has written, if it exists."""
    _side(path).remove_appended(path)


def names(folder: AnyPath) -> list[str]:
    """The names of what lies in a folder, in any order; none if it is missing. All should be files."""
    with _in_its_place(folder):
        found: list[str] = _side(folder).names(folder)
    return found


def folders(folder: AnyPath) -> list[AnyPath]:
    """The folders in a folder, in any order; none if it is missing."""
    found: list[AnyPath] = _side(folder).folders(folder)
    return found


def written_at(path: AnyPath) -> float | None:
    """When a file was written, in seconds since 1970; None if there is no such file."""
    seconds: float | None = _side(path).written_at(path)
    return seconds


def remove(path: AnyPath) -> None:
    """Remove a file if it exists."""
    _side(path).remove(path)


def remove_all(folder: AnyPath, paths: list[AnyPath]) -> None:
    """Remove those of these files below a folder that exist."""
    _side(folder).remove_all(folder, paths)


def write_json(path: AnyPath, value: Mapping[str, Any], checkpoint_id: str = "") -> None:
    """Write a JSON object with its checksum, as `write` does.

    Args:
        path: the file.
        value: the object.
        checkpoint_id: the checkpoint of which the file must be; empty where its content says that.
    """
    write(path, json.dumps({**value, _CHECKSUM: _checksum(path, value, checkpoint_id)}).encode())


def read_json(
    path: AnyPath,
    checkpoint_id: str = "",
    *,
    unsigned: Callable[[dict[str, Any]], bool] = lambda stored: False,
) -> dict[str, Any] | None:
    """Read the JSON object in a file; None if there is no such file.

    Args:
        path: the file.
        checkpoint_id: as `write_json` was given it.
        unsigned: True for an object whose checksum is not looked at, as in files of other versions.

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
    if checksum != _checksum(path, stored, checkpoint_id) and not unsigned(stored):
        raise damaged(path, "another content than its checksum is of, or the file of another batch or job")
    return stored


def damaged(path: AnyPath, got: str) -> StateError:
    """The error for a file of the checkpoint that was damaged or changed."""
    return StateError(f"{path} — must be as this program wrote it; got {got}. {RESTORE}")


def digest(content: bytes, before: str = "0") -> str:
    """A checksum of eight hexadecimal digits, which continues the checksum `before` with `content`."""
    return f"{zlib.crc32(content, int(before, 16)):08x}"


def _checksum(path: AnyPath, value: Mapping[str, Any], checkpoint_id: str) -> str:
    return digest(json.dumps([path.name, checkpoint_id, value], sort_keys=True).encode())


def _side(path: AnyPath) -> Any:
    """The module that knows where a path lies; that of stores loads a library that few jobs need."""
    if isinstance(path, Path):
        return on_disk
    from spark_pace.spark.checkpoint.files import in_store

    return in_store
