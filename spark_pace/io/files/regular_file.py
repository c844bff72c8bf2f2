"""Opens regular files of this machine: no device, no pipe, no socket, and none that a link has led out to.

A path may lead elsewhere from one moment to the next. So it is followed once; what it has led to is held,
looked at, and then opened. Nothing else is opened: no pipe keeps the caller waiting, and no device does
anything.
"""

from __future__ import annotations

import os
import stat
from io import FileIO

# Linux holds a file without opening it
_HOLD = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)


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
        super().__init__(path, opener=lambda path, flags: opened(path, flags, folder))

    def __del__(self) -> None:
        """Close it."""
        self.close()

    @property
    def again(self) -> str:
        """A path of the very same file, while it is open."""
        return f"/dev/fd/{self.fileno()}"


def opened(path: str, flags: int, folder: str | None) -> int:
    """Open a regular file, or a folder, as `RegularFile` says, and give the descriptor."""
    held = os.open(path, _HOLD)
    try:
        kind = os.fstat(held).st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
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
