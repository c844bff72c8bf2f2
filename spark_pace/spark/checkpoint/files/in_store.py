"""Files of a checkpoint in an object store; see `spark_pace.spark.checkpoint.file_access` for what each does.

Nothing can be mapped or added to there. So what `write_named` writes is packed, and read whole; and what
`append` adds is an object of its own, named by the length before it. Where a prefix has such parts, the one
named ``joined-N`` has the first N bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

from spark_pace.errors import StateError
from spark_pace.io.files import objects
from spark_pace.io.files.objects import OtherObjectError
from spark_pace.io.files.store_path import StorePath

_PACKED = b"\x28\xb5\x2f\xfd"  # what zstd begins with; nothing else that is written here does
_JOINED = "joined-"
_MANY_PARTS = 100


def read(path: StorePath) -> bytes | None:
    """The content of an object."""
    found = objects.read(path)
    return None if found is None else found[0]


def pieces(path: StorePath) -> Iterator[bytes]:
    """Yield the content, unpacked."""
    found = objects.pieces(path)
    first = next(found, b"")
    if first.startswith(_PACKED):
        yield bytes(_unpacked(b"".join((first, *found))))
    else:
        yield first
        yield from found


def mapped(path: StorePath) -> memoryview:
    """The content in memory, unpacked."""
    found = objects.read(path)
    if found is None:
        raise FileNotFoundError(2, "No such object", str(path))
    content = found[0]
    return _unpacked(content) if content.startswith(_PACKED) else memoryview(content)


def write(path: StorePath, content: bytes) -> None:
    """Write an object."""
    objects.write(path, content)


def write_named(folder: StorePath, fill: Callable[[IO[bytes]], str]) -> str:
    """Write an object, packed."""
    import pyarrow as pa  # only here, because Spark's process for sources imports this module

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        name = fill(file)
    objects.write(folder / name, sink.getvalue().to_pybytes())
    return name


def append(path: StorePath, content: bytes, length: int, cut: bool) -> None:
    """Write a part. Another one with the same name was written by another job.

    Raises:
        StateError: there is one.
    """
    part = path / f"{length:020d}"
    try:
        objects.write_new(part, content)
    except OtherObjectError:
        must = "must be written by one job at a time"
        do = "Let that job run, or start this one again when it has ended."
        raise StateError(f"{part} — {must}; got what another job has written. {do}") from None


def read_appended(path: StorePath) -> bytes | None:
    """All parts, one behind the other, up to where one is missing."""
    found: list[bytes] = []
    length = 0
    for begin, part in _parts(path):
        if begin != length:
            break
        found.append(read(path / part) or b"")
        length += len(found[-1])
    return b"".join(found) if found else None


def join_appended(path: StorePath) -> None:
    """Make one object of many parts. Only the job that holds the checkpoint may do that, before it reads."""
    parts = list(_parts(path))
    if len(parts) <= _MANY_PARTS:
        return
    content = read_appended(path) or b""
    if any(begin >= len(content) for begin, _ in parts):  # one before it is lost, which whoever reads tells
        return
    objects.write(path / f"{_JOINED}{len(content):020d}", content)
    for _, part in parts:
        objects.remove(path / part)


def remove_appended(path: StorePath) -> None:
    """Remove all parts."""
    for name in objects.listed(path)[0]:
        objects.remove(path / name)


def _parts(path: StorePath) -> Iterator[tuple[int, str]]:
    """(where it begins, its name) of each part, in order: the last that was joined, and those behind it."""
    there = objects.listed(path)[0]
    joined = max((name for name in there if name.startswith(_JOINED)), default=None)
    begin = 0
    if joined is not None:
        yield 0, joined
        begin = int(joined.removeprefix(_JOINED))
    yield from sorted((int(name), name) for name in there if name.isdigit() and int(name) >= begin)


def names(folder: StorePath) -> list[str]:
    """The names of objects right below a prefix."""
    return objects.listed(folder)[0]


def folders(folder: StorePath) -> list[StorePath]:
    """The prefixes right below a prefix."""
    return [folder / name for name in objects.listed(folder)[1]]


def written_at(path: StorePath) -> float | None:
    """When an object was written, by the store's clock."""
    return objects.written_at(path)


def remove(path: StorePath) -> None:
    """Remove an object."""
    objects.remove(path)


def remove_all(folder: StorePath, paths: list[StorePath]) -> None:
    """Remove objects."""
    objects.remove_all(folder, paths)


def _unpacked(content: bytes) -> memoryview:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
        whole: Any = stream.read_buffer()
    return memoryview(whole)
