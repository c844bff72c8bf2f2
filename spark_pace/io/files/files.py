"""The one face of files: a path of this machine, of an object store or of HDFS says where one lies.

`local`, `object_store` and `hdfs` beside it do the same by functions of the same names. A file is complete or
absent, whenever the process or the machine stops; only `append` may leave a part of what it adds on a disk.

The second half is for the files of this program's own, such as those of a checkpoint. Small ones hold a JSON
object with a checksum of it and of their name, because a changed digit, or the file of another batch in its
place, would otherwise go unnoticed. Nothing can be mapped or added to in a store. So what `write_named`
writes there is packed, and read whole; and what `append` adds is a file of its own, named by the length
before it. Where a prefix has such parts, the one named ``joined-N`` has the first N bytes.

Spark's process for sources imports this module, so it imports little.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from spark_pace.errors import StateError, UnfitError
from spark_pace.io.files import local
from spark_pace.io.files.addresses import AnyPath, StorePath, path_at, require_address
from spark_pace.io.files.contract import LOOKED_AT_ALL_S, Listing, OtherFileError, SoughtFile, Stat
from spark_pace.io.files.local import FolderListing, Objection, RegularFile

RESTORE = "Restore the whole checkpoint together with its tables, or start a new one with a sink of its own."
FEW_OBJECTS = 5_000  # so many are listed by each look: five requests
AnyFile = RegularFile | SoughtFile
_CHECKSUM = "checksum"
_PACKED = b"\x28\xb5\x2f\xfd"  # what zstd begins with; nothing else that is written here does
_JOINED = "joined-"
_MANY_PARTS = 100


def _side(path: AnyPath) -> Any:
    """The module that knows where a path lies; the libraries of two are loaded only where they are needed."""
    if isinstance(path, Path):
        return local
    if path.is_on_hdfs:
        from spark_pace.io.files import hdfs

        return hdfs
    from spark_pace.io.files import object_store

    return object_store


def stat(path: AnyPath) -> Stat | None:
    """The stamp of a file, on a disk and on HDFS of a folder too; None if it is not there."""
    found: Stat | None = _side(path).stat(path)
    return found


def entries(folder: AnyPath) -> list[str]:
    """The names of what lies right in a folder, in any order; in a store and on HDFS of files alone.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    found: list[str] = _side(folder).entries(folder)
    return found


def changed(folder: AnyPath) -> int:
    """Another number than before if names may have come to a folder, or gone, since then.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if isinstance(folder, StorePath) and folder.is_in_store:  # which does not tell what has come
        return int(time.monotonic() // LOOKED_AT_ALL_S)
    if (found := stat(folder)) is None:
        raise FileNotFoundError(2, "No such file or directory", str(folder))
    return found.changed_ns


def sizes(folder: AnyPath, names: Sequence[str]) -> dict[str, int]:
    """The sizes of those files below a folder that are there; elsewhere than on a disk of all."""
    if isinstance(folder, StorePath):
        return dict(_side(folder).walk(folder)) if names else {}
    found = {name: stat(folder / name) for name in names}
    return {name: one.size for name, one in found.items() if one is not None}


def open_file(path: AnyPath) -> AnyFile:
    """Open a file, to be read and sought.

    Raises:
        Objection: it is no regular file.
        OSError: it is not there, or cannot be read.
    """
    file: AnyFile = _side(path).opened(path)
    return file


def content_of(path: AnyPath) -> bytes:
    """What is in a file; errors as of `open_file`."""
    return tagged(path)[0]


def tagged(path: AnyPath) -> tuple[bytes, str]:
    """(what is in a file, the tag of this version of it for `replace`); errors as of `open_file`."""
    found: tuple[bytes, str] = _side(path).tagged(path)
    return found


def write(path: AnyPath, content: bytes) -> None:
    """Write a complete file, and make its folder if it is missing. One process at a time may write it."""
    _side(path).write(path, content)


def write_new(path: StorePath, content: bytes) -> str:
    """Write a file where none is, and return its tag. One with the same content counts as this one.

    For a request is made again where its answer is lost, and may find what it has written itself.

    Raises:
        OtherFileError: there is one with another content.
    """
    tag: str = _side(path).write_new(path, content)
    return tag


def replace(path: StorePath, content: bytes, tag: str | None) -> str:
    """Write a file in place of the version with a tag, and return its new tag.

    Args:
        path: the file, which only this function writes.
        content: what to write.
        tag: of the version that is there; None: none is.

    Raises:
        OtherFileError: another version is there, or none; not if it has this content, as in `write_new`.
    """
    new: str = _side(path).replace(path, content, tag)
    return new


def remove(*paths: AnyPath) -> None:
    """Remove those of these files of one place that exist."""
    _side(paths[0]).remove(paths)


def reach(path: StorePath) -> bool:
    """Ask for a folder, so that what is wrong with the place is told at once; False if it is not there.

    A store does not tell a folder that is not there.

    Raises:
        SetupError: the place does not answer, or refuses the request.
    """
    found: bool = _side(path).reach(path)
    return found


def require_source(path: AnyPath) -> None:
    """Refuse a source that cannot be listed; whether one of this machine is there was looked at before.

    Raises:
        SetupError: it is refused.
    """
    if isinstance(path, StorePath) and not reach(path):
        must, got = "must be a folder or a file on HDFS", "no such folder"
        raise UnfitError(f"{path} — {must}; got {got}. Make it, or correct the path.")


def in_source(root: AnyPath, name: str) -> AnyPath:
    """The file of a source that has a name."""
    return local.in_source(root, name) if isinstance(root, Path) else root / name


def open_in(root: AnyPath, name: str) -> AnyFile:
    """Open a file of a source.

    Raises:
        Objection: it is no regular file, or a link has led out of the source.
        OSError: it is not there, or cannot be read.
    """
    return local.opened_in(root, name) if isinstance(root, Path) else open_file(root / name)


def listing(root: AnyPath) -> Listing:
    """What lists the files of a source; nothing is asked yet."""
    return FolderListing(root) if isinstance(root, Path) else _FarListing(root)


def files_at(place: str | AnyPath, spark: Mapping[str, str] | None = None) -> tuple[AnyPath, list[str]]:
    """(the source that a path or an address names, the names of its files in order), both of one file, too.

    Args:
        place: as of `path_at`.
        spark: likewise.

    Raises:
        ConfigError: it is an address, and none of a store.
        SetupError: the store cannot be read.
    """
    root = require_address(path_at(place, spark))
    require_source(root)
    names = sorted(listing(root).look(""))
    if names or not isinstance(root, StorePath) or not root.key:
        return root, names
    there = stat(root)  # a store does not tell an object among those below it
    return root.parent, [root.name] if there and there.size else []


class _FarListing:
    """Implements `Listing` for a prefix in a store, or a folder of HDFS.

    A store lists names in their order, a thousand by one request, and does not tell what is new. Where there
    are more than `FEW_OBJECTS`, a look lists those behind the greatest known name, and every minute all; on
    HDFS each look lists all. Files of 0 bytes are left out: in a store they stand for folders, on HDFS they
    are being written.
    """

    def __init__(self, root: StorePath) -> None:
        self._root = root
        self._files = 0  # at the last look at all
        self._all_listed_s = -float("inf")
        self._sizes: dict[str, int] = {}

    def look(self, greatest: str) -> Iterator[str]:
        """Yield names: all, or where there are many those behind `greatest`."""
        began_s = time.monotonic()
        rested = began_s - self._all_listed_s < LOOKED_AT_ALL_S
        behind = greatest if rested and self._files > FEW_OBJECTS and self._root.is_in_store else ""
        if not behind:
            self._sizes.clear()
        files = 0
        for name, size in _side(self._root).walk(self._root, behind):
            files += 1
            if size and name and not any(part[:1] in (".", "_") for part in name.split("/")):
                self._sizes[name] = size
                yield name
        if not behind:
            self._all_listed_s, self._files = began_s, files

    def size(self, name: str) -> int:
        """The bytes of a file, as it was listed; else the place is asked. 0 if it is gone."""
        if name not in self._sizes:
            if (found := stat(self._root / name)) is None:
                return 0
            self._sizes[name] = found.size
        return self._sizes[name]


@contextmanager
def _in_its_place(path: AnyPath) -> Iterator[None]:
    """Refuse what is no file where one is to be, or a file where a folder is."""
    try:
        yield
    except (IsADirectoryError, NotADirectoryError, Objection) as error:
        kinds = {
            IsADirectoryError: "a folder in its place",
            NotADirectoryError: "a file in place of a folder",
        }
        got = kinds.get(type(error), error.strerror)
        raise StateError(f"{path} — must be as it was written; got {got}. {RESTORE}") from error


def read(path: AnyPath) -> bytes | None:
    """The content of a file of this program's own; None if there is no such file.

    Raises:
        StateError: there is a folder in its place.
    """
    with _in_its_place(path), suppress(FileNotFoundError):
        return content_of(path)
    return None


def names(folder: AnyPath) -> list[str]:
    """The names of what lies in a folder, in any order; none if it is missing. All should be files."""
    with _in_its_place(folder), suppress(FileNotFoundError):
        return entries(folder)
    return []


def mapped(path: AnyPath) -> memoryview:
    """The content of a large file, mapped into memory where that can be done, so that only parts are read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is empty.
    """
    with _in_its_place(path):
        if isinstance(path, Path):
            return local.mapped(path)
        found = content_of(path)
        return _unpacked(found) if found.startswith(_PACKED) else memoryview(found)


def _unpacked(content: bytes) -> memoryview:
    import pyarrow as pa  # only here, because Spark's process for sources imports this module

    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
        whole: Any = stream.read_buffer()
    return memoryview(whole)


def write_named(folder: AnyPath, fill: Callable[[IO[bytes]], str]) -> str:
    """Write a complete file, and return its name. Several processes may write the same file at once.

    Args:
        folder: the file's folder, which is made if it is missing.
        fill: writes the content, and returns the file's name.
    """
    if isinstance(folder, Path):
        return local.write_named(folder, fill)
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        name = fill(file)
    write(folder / name, sink.getvalue().to_pybytes())
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
    if isinstance(path, Path):
        local.append(path, content, length, cut)
        return
    part = path / f"{length:020d}"
    try:
        write_new(part, content)
    except OtherFileError:
        must = "must be written by one job at a time"
        do = "Let that job run, or start this one again when it has ended."
        raise StateError(f"{part} — {must}; got what another job has written. {do}") from None


def read_appended(path: AnyPath) -> bytes | None:
    """The content of a file that `append` has written; None if there is no such file.

    Of parts, up to where one is missing.
    """
    if isinstance(path, Path):
        return read(path)
    found: list[bytes] = []
    length = 0
    for begin, part in _parts(path):
        if begin != length:
            break
        found.append(read(path / part) or b"")
        length += len(found[-1])
    return b"".join(found) if found else None


def join_appended(path: AnyPath) -> None:
    """Make one file of many parts. Only the job that holds the checkpoint may do that, before it reads."""
    parts = [] if isinstance(path, Path) else list(_parts(path))
    if len(parts) <= _MANY_PARTS:
        return
    content = read_appended(path) or b""
    if any(begin >= len(content) for begin, _ in parts):  # one before it is lost, which whoever reads tells
        return
    write(path / f"{_JOINED}{len(content):020d}", content)
    for _, part in parts:
        remove(path / part)


def remove_appended(path: AnyPath) -> None:
    """Remove a file that `append` has written, if it exists."""
    for one in [path] if isinstance(path, Path) else [path / name for name in names(path)]:
        remove(one)


def _parts(path: StorePath) -> Iterator[tuple[int, str]]:
    """(where it begins, its name) of each part, in order: the last that was joined, and those behind it."""
    there = names(path)
    joined = max((name for name in there if name.startswith(_JOINED)), default=None)
    begin = 0
    if joined is not None:
        yield 0, joined
        begin = int(joined.removeprefix(_JOINED))
    yield from sorted((int(name), name) for name in there if name.isdigit() and int(name) >= begin)


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
