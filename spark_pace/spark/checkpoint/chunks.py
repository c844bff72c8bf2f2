"""Files for the large chunks that splitters carry from batch to batch.

A splitter's task writes a chunk before the slot's state names it. The driver removes it once no batch that
may run again needs it. A file's name is a checksum of its content, so a batch that runs again writes the same
files, and a file that was changed can be recognised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from spark_pace.core.frames import Sink
from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import RESTORE, damaged

_DIGEST_BYTES = 16


class _Checked:
    """A file that computes the checksum of what is written to it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def write(self, piece: Any, /) -> int:
        """Write a piece."""
        self.checksum.update(piece)
        return self._file.write(piece)

    def flush(self) -> None:
        """Do nothing; the file is flushed at its end."""


@dataclass(frozen=True)
class ChunkFiles:
    """The folder of chunks: a `spark_pace.core.frames.TableStore`.

    Attributes:
        folder: the folder, which is made with the first chunk.
    """

    folder: AnyPath

    def put(self, write: Callable[[Sink], None]) -> str:
        """Write a chunk, and return its name. Several processes may write the same chunk at once."""

        def fill(file: IO[bytes]) -> str:
            sink = _Checked(file)
            write(sink)
            return sink.checksum.hexdigest()

        return files.write_named(self.folder, fill)

    def get(self, name: str) -> memoryview:
        """The content of a chunk, mapped into memory.

        Raises:
            StateError: there is no such chunk.
        """
        try:
            return files.mapped(self.folder / name)
        except FileNotFoundError as error:
            raise self._missing(name) from error

    def require_whole(self, names: Iterable[str]) -> None:
        """Read these chunks, and compare each with the checksum in its name.

        Raises:
            StateError: a chunk is missing, or has another content.
        """
        for name in names:
            try:
                checksum = hashlib.blake2b(self.get(name), digest_size=_DIGEST_BYTES)
            except ValueError:  # it is empty
                checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)
            if checksum.hexdigest() != name:
                raise damaged(self.folder / name, "another content than its checksum is of")

    def remove(self, names: Iterable[str]) -> None:
        """Remove these chunks, if they still exist; what cannot be removed is left to the next start."""
        for name in names:
            with suppress(OSError):
                files.remove(self.folder / name)

    def remove_all_but(self, needed: Collection[str]) -> None:
        """Remove all other files of the folder, such as those of a batch that was never finished."""
        self.remove(set(files.names(self.folder)) - set(needed))

    def _missing(self, name: str) -> StateError:
        must = "must be there, because the state names it"
        return StateError(f"{self.folder / name} — {must}; got no file. {RESTORE}")
