"""All files below a folder, or a prefix in a store, whatever their names: those of a Delta table.

Spark's process for sources runs this, so it imports little.
"""

from __future__ import annotations

import os
from io import RawIOBase
from typing import Protocol

from spark_pace.io.files.regular_file import RegularFile
from spark_pace.io.files.store_settings import HDFS, WHILE_RUNNING_S, StoreSettings

Stamp = tuple[int, int]


class Tree(Protocol):
    """Files by their names, which are paths below a root. Its text is what messages call the root.

    Errors of reading are an `OSError` with a number, as of the system; a store that does not answer, or
    refuses a request, is a `SetupError`.
    """

    def names(self, folder: str) -> list[str]:
        """The names of what lies right in a folder, without it; in a store, of the files alone."""

    def sizes(self, names: list[str]) -> dict[str, int]:
        """The sizes of those files that are there."""

    def stamp(self, name: str) -> Stamp | None:
        """By what a file is known again, its time of change and its size; None if it is not there."""

    def changed(self, folder: str) -> int:
        """Another number than before if names may have come to a folder, or gone, since then."""

    def read(self, name: str) -> bytes:
        """What is in a file."""

    def opened(self, name: str) -> RawIOBase:
        """What pyarrow reads a file from."""


class FolderTree:
    """Implements `Tree` for a folder of this machine."""

    def __init__(self, root: str) -> None:
        """Take the folder."""
        self._root = root

    def __str__(self) -> str:
        """The path of the folder."""
        return self._root

    def names(self, folder: str) -> list[str]:
        """The names of what lies in a folder."""
        return os.listdir(self._path(folder))

    def sizes(self, names: list[str]) -> dict[str, int]:
        """The sizes of those files that are there."""
        found = {name: self.stamp(name) for name in names}
        return {name: stamp[1] for name, stamp in found.items() if stamp is not None}

    def stamp(self, name: str) -> Stamp | None:
        """The time of change, in nanoseconds, and the size of a file."""
        try:
            told = os.stat(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return told.st_mtime_ns, told.st_size

    def changed(self, folder: str) -> int:
        """When names came to a folder, or went, as far as the file system tells."""
        return os.stat(self._path(folder)).st_mtime_ns

    def read(self, name: str) -> bytes:
        """What is in a file."""
        return self.opened(name).readall()

    def opened(self, name: str) -> RegularFile:
        """A file that is open."""
        return RegularFile(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name)


def tree_of(address: str, settings: StoreSettings, patience_s: int = WHILE_RUNNING_S) -> Tree:
    """The files of the table at an address, or in a folder of this machine.

    Args:
        address: the address, or the path of the folder.
        settings: what reaches a store.
        patience_s: how long requests are tried again where a store does not answer.
    """
    if "://" not in address:
        return FolderTree(address)
    if address.startswith(HDFS):
        from spark_pace.io.files.hdfs_tree import HdfsTree  # its library is not loaded where nobody needs it

        return HdfsTree(address, patience_s)
    from spark_pace.io.files.store_tree import StoreTree  # its library is not loaded where nobody needs it

    return StoreTree(address, settings, patience_s)
