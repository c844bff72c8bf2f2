"""The one face of files, whether they lie in a folder, in an object store or on HDFS.

Spark's process for sources lists files by it, so this folder imports neither pyarrow nor the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from typing import Protocol

from spark_pace.io.files.regular_file import RegularFile

LOOKED_AT_ALL_S = 60  # a place may leave out what is known or seems unchanged, for so long


@dataclass(frozen=True)
class Opened:
    """A file that is open for reading.

    Attributes:
        content: what pyarrow opens: a path of a file of this machine, while this is kept, else a file that
            can be read and sought.
        size: its bytes.
        changed_ns: the time of its last change, in nanoseconds since 1970.
        held: keeps that path.
    """

    content: str | RawIOBase
    size: int
    changed_ns: int
    held: RegularFile | None = None


class SoughtFile(RawIOBase):
    """A file of `size` bytes, of which any part may be read next: its `readinto` reads on at `_at`."""

    size: int
    _at = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Read on at another place."""
        self._at = offset + {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self.size}[whence]
        return self._at


def is_read(name: str) -> bool:
    """False for names of which a part begins with . or _, as Spark's own files do."""
    return not any(part[:1] in (".", "_") for part in name.split("/"))


class Place(Protocol):
    """The files below a folder or a prefix. Each has a name: its path below there, with ``/`` in it.

    Names of which a part begins with ``.`` or ``_`` are left out. Its text is what messages call it. It can
    be pickled. Errors of reading are an `OSError` with a number, as of the system.
    """

    def require(self) -> None:
        """Refuse a place that is not there or cannot be listed.

        Raises:
            SetupError: it is refused.
        """

    def look(self, greatest: str) -> Iterator[str]:
        """Yield names, among them all that have come since the last look.

        A look may leave out what came meanwhile where the place does not tell of it cheaply; the next look
        after `LOOKED_AT_ALL_S` finds it. The first look finds all.

        Args:
            greatest: the greatest name that is known; empty if none is.

        Raises:
            SetupError: the place cannot be listed now.
        """

    def size(self, name: str) -> int:
        """The bytes of a file; 0 if it is gone."""

    def shown(self, name: str) -> str:
        """The whole path or address of a file, for messages."""

    def open(self, name: str) -> Opened:
        """Open a file.

        Raises:
            Objection: it is no regular file, or a link has led out of the place.
            OSError: it is not there, or cannot be read.
        """
