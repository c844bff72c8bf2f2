"""The large chunks of what the splitters carry from batch to batch, as files.

A splitter's task writes a chunk before the slot's state names it; the driver removes it when no batch that
may run again begins with it. A file's name is a checksum of its content. So a batch that runs again writes
the same files, and a changed file is known by its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from spark_pace.core.frames import Sink
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint import files
from spark_pace.spark.checkpoint.files import RESTORE, damaged

_DIGEST_BYTES = 16


class _Checked:
    """A file that is written, with the checksum of what was written so far."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def write(self, piece: Any, /) -> int:
        """Write a piece."""
        self.checksum.update(piece)
        return self._file.write(piece)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is whole."""


@dataclass(frozen=True)
class ChunkFiles:
    """The folder of chunks: a `spark_pace.core.frames.TableStore`.

    Attributes:
        folder: the folder. It is made with the first chunk.
    """

    folder: Path

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
        """Read these chunks through, and compare each with the checksum that is its name.

        Raises:
            StateError: one of them is not there, or has another content.
        """
        for name in names:
            path = self.folder / name
            checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)
            try:
                for piece in files.pieces(path):
                    checksum.update(piece)
            except FileNotFoundError as error:
                raise self._missing(name) from error
            if checksum.hexdigest() != name:
                raise damaged(path, "another content than its checksum is of")

    def remove(self, names: Iterable[str]) -> None:
        """Remove these chunks, if they are still there. What cannot be removed is left to the next start."""
        for name in names:
            with suppress(OSError):
                files.remove(self.folder / name)

    def remove_all_but(self, needed: Collection[str]) -> None:
        """Remove every other file of the folder, such as one of a batch that was never done."""
        self.remove(set(files.names(self.folder)) - set(needed))

    def _missing(self, name: str) -> StateError:
        must = "must be there, because the state names it"
        return StateError(f"{self.folder / name} — {must}; got no file. {RESTORE}")
