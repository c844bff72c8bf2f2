"""Files of this machine. `spark_pace.io.files.files` says what each function does.

Only regular files are read: no device, no pipe, no socket, and none that a link has led out to. A path may
lead elsewhere from one moment to the next. So it is followed once; what it has led to is held, looked at, and
then opened. Nothing else is opened: no pipe keeps the caller waiting, and no device does anything.
"""

from __future__ import annotations

import mmap
import os
import stat as kinds
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import IO

from spark_pace.io.files.contract import LOOKED_AT_ALL_S, Stat

# Linux holds a file without opening it
_HOLD = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
# a folder that changed less than this before it was listed may have changed again without a new time
_SETTLED_NS = 2_000_000_000


class Objection(OSError):
    """A file must not be opened. Its text says what must hold, and what was got."""

    def __init__(self, text: str) -> None:
        """Say so; `got`, which `strerror` is too, is what was got."""
        super().__init__(text)
        self.got = self.strerror = text.partition("; got ")[2]


class RegularFile(FileIO):
    """A regular file that is open for reading. It is closed with its last reference."""

    def __init__(self, path: str, folder: str | None = None) -> None:
        """Open a file.

        Args:
            path: the file.
            folder: where it must lie, whatever links have led there; None: anywhere.

        Raises:
            Objection: it is something else, or lies elsewhere.
            OSError: it is not there, or cannot be read.
        """
        super().__init__(path, opener=lambda path, flags: _opened(path, flags, folder))

    def __del__(self) -> None:
        """Close it."""
        self.close()

    @property
    def changed_ns(self) -> int:
        """As of `Stat`."""
        return os.fstat(self.fileno()).st_mtime_ns

    @property
    def size(self) -> int:
        """The bytes."""
        return os.fstat(self.fileno()).st_size


def _opened(path: str, flags: int, folder: str | None) -> int:
    """Open a regular file, or a folder, as `RegularFile` says, and give the descriptor."""
    held = os.open(path, _HOLD)
    try:
        kind = os.fstat(held).st_mode
        if not kinds.S_ISREG(kind) and not kinds.S_ISDIR(kind):
            raise Objection("must be a regular file; got a device, a pipe or a socket")
        if folder is not None and not _place(held, path).startswith(os.path.join(_place_of(folder), "")):
            raise Objection("must lie in the source's folder; got a link out of it")
        return os.open(f"/dev/fd/{held}", flags)
    except PermissionError as error:
        error.filename = path
        raise
    finally:
        os.close(held)


def _place_of(folder: str) -> str:
    held = os.open(folder, _HOLD)
    try:
        return _place(held, folder)
    finally:
        os.close(held)


def _place(held: int, path: str) -> str:
    """Where something that is held lies."""
    try:
        return os.readlink(f"/proc/self/fd/{held}")
    except FileNotFoundError:  # a system that does not tell: where its path leads now
        return os.path.realpath(path)


# with these errors a folder counts as empty; others end the query
_NOT_FOR_US = (FileNotFoundError, NotADirectoryError, PermissionError, Objection)


def stat(path: Path) -> Stat | None:
    """The stamp of a file or a folder."""
    try:
        told = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stat(told.st_mtime_ns, told.st_size)


def entries(folder: Path) -> list[str]:
    """The names of what lies in a folder."""
    return os.listdir(folder)


def tagged(path: Path) -> tuple[bytes, str]:
    """(the content of a file, no tag)."""
    return opened(path).readall(), ""


def opened(path: Path) -> RegularFile:
    """A file that is open."""
    return RegularFile(str(path))


def mapped(path: Path) -> memoryview:
    """The content of a file, of which only the parts that are used are read."""
    with opened(path) as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def write(path: Path, content: bytes) -> None:
    """Write a file."""

    def fill(file: IO[bytes]) -> str:
        file.write(content)
        return path.name

    _put(path.with_name(f".{path.name}.tmp"), fill)


def write_named(folder: Path, fill: Callable[[IO[bytes]], str]) -> str:
    """Write a file that `fill` names."""
    return _put(folder / f".{uuid.uuid4().hex}.tmp", fill)


def append(path: Path, content: bytes, length: int, cut: bool) -> None:
    """Add to the end of a file."""
    with _named(path), open(path, "ab") as file:
        if cut:
            file.truncate(length)
        file.write(content)
        _sync(file)


def remove(paths: Sequence[Path]) -> None:
    """Remove those of these files that exist."""
    for path in paths:
        path.unlink(missing_ok=True)


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
        remove([temporary])
        raise
    listed = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(listed)
    finally:
        os.close(listed)
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


def in_source(root: Path, name: str) -> Path:
    """The file of a source that has a name: the source itself, if it is one file."""
    return root / name if root.is_dir() else root


def opened_in(root: Path, name: str) -> RegularFile:
    """Open a file of a source, which must lie there."""
    path = in_source(root, name)
    return RegularFile(str(path), None if path == root else str(root))


class FolderListing:
    """Implements `Listing` for a folder, or for one file.

    A look skips folders that have not changed since they were listed; some mounted stores do not record when
    a folder changed.
    """

    def __init__(self, root: Path) -> None:
        """Start with nothing listed below `root`."""
        self._root = root
        self._listed: dict[str, tuple[int, list[str]]] = {}  # folder: (last change in ns, folders in it)
        self._all_listed_s = -float("inf")

    def look(self, greatest: str) -> Iterator[str]:
        """Yield names of files: every minute all, else those in changed folders."""
        if time.monotonic() - self._all_listed_s >= LOOKED_AT_ALL_S:
            self._listed.clear()
            self._all_listed_s = time.monotonic()
        if self._root.is_file():
            yield self._root.name
            return
        folders = [""]
        while folders:
            below = folders.pop()
            changed_ns, inside = self._listed.get(below, (-1, []))
            now_ns = time.time_ns()
            if (latest_ns := _changed_ns(self._root / below)) != changed_ns:
                inside, names = _listed(self._root, below)
                yield from names
                settled = latest_ns < now_ns - _SETTLED_NS
                self._listed[below] = (latest_ns if settled else -1, inside)
            folders += inside

    def size(self, name: str) -> int:
        """The bytes of a file; 0 if it cannot be asked: the intake reports that."""
        try:
            return in_source(self._root, name).stat().st_size
        except OSError:
            return 0


def _changed_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except _NOT_FOR_US:
        return 0


def _listed(root: Path, below: str) -> tuple[list[str], list[str]]:
    """The folders and files in `root`/`below`, relative to `root`, without names that begin with . or _."""
    folders: list[str] = []
    names: list[str] = []
    try:
        listed = _opened(str(root / below), os.O_RDONLY | os.O_DIRECTORY, str(root) if below else None)
    except _NOT_FOR_US:
        return [], []
    try:
        with os.scandir(listed) as entries:
            for entry in entries:
                if entry.name[0] in "._":
                    continue
                if _is_folder(entry, follow=False):
                    folders.append(f"{below}{entry.name}/")
                elif not _is_folder(entry, follow=True):  # a link to a folder is not followed
                    names.append(below + entry.name)
    finally:
        os.close(listed)
    return folders, names


def _is_folder(entry: os.DirEntry[str], follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:  # a link that leads nowhere or in a circle; the intake reports it
        return False
