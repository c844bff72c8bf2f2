"""What is the same of files wherever they lie: a folder of this machine, an object store or HDFS.

Errors of reading and writing are an `OSError` with a number, as of the system; a store that does not answer,
or refuses a request, is a `SetupError`. Spark's process for sources lists files, so this folder imports
neither pyarrow nor the core.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer

LOOKED_AT_ALL_S = 60  # a look may leave out what is known or seems unchanged, for so long
PAGE = 1_000  # objects that a store lists by one request


class OtherFileError(Exception):
    """A file is there that was not to be there, or another one than was to be replaced."""


class Stat(NamedTuple):
    """By what a file is known again: its last change, in nanoseconds since 1970, and its bytes."""

    changed_ns: int
    size: int


class SoughtFile(RawIOBase, ABC):
    """A file that is far away, of which any part may be read next; the last piece that came is kept.

    All bytes are of the file that was there when it was opened.
    """

    def __init__(self, stat: Stat) -> None:
        """Begin at the begin of a file with this stamp."""
        super().__init__()
        self.changed_ns, self.size = stat
        self._at = self._piece_at = 0  # where the next byte is read; where the piece begins
        self._piece = memoryview(b"")

    @property
    def content(self) -> SoughtFile:
        """What pyarrow opens."""
        return self

    @abstractmethod
    def _fetch(self, wanted: int) -> bytes:
        """A piece that begins at `_at`: of so many bytes, or of others where they come by themselves."""

    def readinto(self, buffer: Buffer) -> int:
        """Read as many bytes as fit, or as there are."""
        into = memoryview(buffer).cast("B")
        rest = into = into[: max(0, self.size - self._at)]
        while rest:
            begin = self._at - self._piece_at
            if not 0 <= begin < len(self._piece):
                self._piece, self._piece_at, begin = memoryview(self._fetch(len(rest))), self._at, 0
            part = self._piece[begin : begin + len(rest)]
            rest[: len(part)] = part
            rest = rest[len(part) :]
            self._at += len(part)
        return len(into)

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


class Listing(Protocol):
    """The files of a source, look by look: those below a folder or a prefix, or one file of this machine.

    Each has a name: its path below there, with ``/`` in it. Names of which a part begins with ``.`` or ``_``
    are left out, as Spark's own files are.
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


class Requests:
    """Counts the requests to object stores and HDFS that this process asks the libraries for them to make.

    Where a library itself repeats one that has failed, that is not known here.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self.so_far = 0

    def count(self, requests: int = 1) -> None:
        """Count requests that are about to be asked for."""
        with self._lock:
            self.so_far += requests

    def count_further_pages(self, objects: int) -> None:
        """Count the requests that a list of so many objects has taken behind its first one."""
        self.count(max(0, objects - 1) // PAGE)


REQUESTS = Requests()  # of this process
