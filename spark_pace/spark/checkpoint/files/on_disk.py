"""Files of a checkpoint on a disk; see `spark_pace.spark.checkpoint.file_access` for what each does."""

from __future__ import annotations

import mmap
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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


def append(path: Path, content: bytes, length: int, cut: bool) -> None:
    """Add to the end of a file, which is made if it is missing; after a crash it may end with a part of that.

    Args:
        path: the file.
        content: the bytes to add.
        length: how many bytes of the file are valid.
        cut: True if a crash has left more, which must go.
    """
    with _named(path), open(path, "ab") as file:
        if cut:
            file.truncate(length)
        file.write(content)
        _sync(file)


def read_appended(path: Path) -> bytes | None:
    """The content of a file that `append` writes."""
    return read(path)


def join_appended(path: Path) -> None:
    """Do nothing: it is one file."""


def remove_appended(path: Path) -> None:
    """Remove a file that `append` writes."""
    remove(path)


def names(folder: Path) -> list[str]:
    """The names of what lies in a folder, in any order; none if the folder is missing."""
    try:
        return os.listdir(folder)
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


def remove_all(folder: Path, paths: list[Path]) -> None:
    """Remove those of these files that exist; `folder` is one that all lie below."""
    for path in paths:
        remove(path)


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
