"""All files below a folder of HDFS, whatever their names: those of a Delta table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from spark_pace.io.files.hdfs import HdfsFile, parted
from spark_pace.io.files.hdfs_client import all_below, asked
from spark_pace.io.files.store_settings import WHILE_RUNNING_S
from spark_pace.io.files.tree import Stamp

if TYPE_CHECKING:
    from hdfs_native import Client

_T = TypeVar("_T")


class HdfsTree:
    """Implements `Tree` for a folder of HDFS."""

    def __init__(self, address: str, patience_s: int = WHILE_RUNNING_S) -> None:
        """Name the folder by its address; nothing is asked yet."""
        self._address = address.rstrip("/")
        self._node, self._root = parted(address)
        self._patience_s = patience_s

    def __str__(self) -> str:
        """The address."""
        return self._address

    def names(self, folder: str) -> list[str]:
        """The names of the files right in a folder, a thousand by one request.

        Raises:
            FileNotFoundError: there is no such folder.
        """

        def ask(client: Client) -> list[str]:
            found = client.list_status(self._path(folder))
            return [one.path.rpartition("/")[2] for one in found if not one.isdir]

        return self._asked(folder, ask)

    def sizes(self, names: list[str]) -> dict[str, int]:
        """The sizes of all files, a thousand by one request."""
        begin = len(self._root) + 1
        found = all_below(self._address, self._node, self._root or "/", self._patience_s) if names else []
        return {one.path[begin:]: one.length for one in found if not one.isdir}

    def stamp(self, name: str) -> Stamp | None:
        """The time of change, in nanoseconds, and the size of a file."""
        try:
            found = self._asked(name, lambda client: client.get_file_info(self._path(name)))
        except FileNotFoundError:
            return None
        return found.modification_time * 1_000_000, found.length

    def changed(self, folder: str) -> int:
        """When names came to a folder, or went."""
        return self._asked(folder, lambda client: client.get_file_info(self._path(folder))).modification_time

    def read(self, name: str) -> bytes:
        """What is in a file."""
        return self._asked(name, lambda client: client.read(self._path(name)).read())

    def opened(self, name: str) -> HdfsFile:
        """A file that can be read and sought."""
        return HdfsFile(f"{self._address}/{name}", self._patience_s)

    def _asked(self, name: str, ask: Callable[[Client], _T]) -> _T:
        return asked(f"{self._address}/{name}", self._node, ask, self._patience_s)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
