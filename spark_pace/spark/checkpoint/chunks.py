"""The large chunks of all slots' carries, as files.

A splitter's task writes a chunk before its state names it; the driver removes it when no batch that may run
again begins with it. A file's name is a checksum of its content. So a batch that runs again writes the same
files, and a changed one is known by its name.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from spark_pace.core.frames import Sink
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.durable import RESTORE, damaged, put_in_place

_DIGEST_BYTES = 16
_READ_BYTES = 1 << 20


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
        """Nothing: the file is flushed when it is whole."""


@dataclass(frozen=True)
class ChunkFiles:
    """The folder of chunks: a `spark_pace.core.frames.TableStore`.

    Attributes:
        folder: the folder. It is made with the first chunk.
    """

    folder: Path

    def put(self, write: Callable[[Sink], None]) -> str:
        """Write a chunk, and return its name. Several processes may write the same one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "wb") as file:
                sink = _Checked(file)
                write(sink)
                name = sink.checksum.hexdigest()
                put_in_place(file, temporary, self.folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return name

    def get(self, name: str) -> memoryview:
        """The content of a chunk, mapped into memory.

        Raises:
            StateError: there is no such chunk.
        """
        try:
            with pa.memory_map(str(self.folder / name)) as file:
                return memoryview(file.read_buffer())
        except FileNotFoundError as error:
            raise self._missing(name) from error

    def require_whole(self, names: Iterable[str]) -> None:
        """Read these chunks through.

        Raises:
            StateError: one of them is not there, or has another content.
        """
        for name in names:
            path = self.folder / name
            checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)
            try:
                with open(path, "rb") as file:
                    while piece := file.read(_READ_BYTES):
                        checksum.update(piece)
            except FileNotFoundError as error:
                raise self._missing(name) from error
            if checksum.hexdigest() != name:
                raise damaged(path, "another content than its checksum is of")

    def remove(self, names: Iterable[str]) -> None:
        """Remove these chunks, if they are still there. What cannot be removed is left to the next start."""
        for name in names:
            with suppress(OSError):
                (self.folder / name).unlink()

    def remove_all_but(self, names: Collection[str]) -> None:
        """Remove every other file of the folder, such as one of a batch that was never done."""
        if self.folder.exists():
            self.remove({path.name for path in self.folder.iterdir() if path.is_file()} - set(names))

    def _missing(self, name: str) -> StateError:
        must = "must be there, because the state names it"
        return StateError(f"{self.folder / name} — {must}; got no file. {RESTORE}")
