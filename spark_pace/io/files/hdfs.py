"""The files below a folder of HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spark_pace.errors import SetupError, UnfitError
from spark_pace.io.files.hdfs_client import all_below, asked
from spark_pace.io.files.hdfs_failures import OpenFileError
from spark_pace.io.files.place import Opened, SoughtFile, is_read
from spark_pace.io.files.store_settings import AT_START_S, WHILE_RUNNING_S

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus
    from typing_extensions import Buffer

PIECE_BYTES = 4 << 20
_COPIED = "._COPYING_"  # Hadoop's commands give a file its own name once it is whole


class Hdfs:
    """Implements `Place` for a folder of HDFS.

    Each look lists all, a thousand names by one request. Files of 0 bytes are left out: one that is being
    written has no more until its first block is full, or its writer syncs it.
    """

    def __init__(self, address: str) -> None:
        """Name a folder by its address; nothing is asked yet."""
        self._address = address.rstrip("/")
        self._node, self._root = parted(self._address)
        self._sizes: dict[str, int] = {}

    def __str__(self) -> str:
        """Its address."""
        return self._address

    def require(self) -> None:
        """Ask for the folder."""
        if not self._is_there(AT_START_S):
            must, got = "must be a folder or a file on HDFS", "no such folder"
            raise UnfitError(f"{self._address} — {must}; got {got}. Make it, or correct the path.")

    def look(self, greatest: str) -> Iterator[str]:
        """Yield the names of all files."""
        self._sizes = {name: size for name, size in self._listed() if size and _is_whole(name)}
        yield from self._sizes

    def size(self, name: str) -> int:
        """The bytes of a file, as it was listed; else the name node is asked. 0 if it is gone."""
        if name not in self._sizes:
            try:
                self._sizes[name] = self._asked_for(name).length
            except FileNotFoundError:
                return 0
        return self._sizes[name]

    def shown(self, name: str) -> str:
        """The address of a file."""
        return f"{self._address}/{name}"

    def open(self, name: str) -> Opened:
        """Open a file; its bytes come as they are read."""
        file = HdfsFile(self.shown(name))
        return Opened(file, file.size, file.changed_ns)

    def _listed(self) -> list[tuple[str, int]]:
        begin = len(self._root) + 1
        while True:
            try:
                found = all_below(self._address, self._node, self._root or "/")
                break
            except FileNotFoundError:  # the folder, or one below it, was there a moment ago
                if not self._is_there(WHILE_RUNNING_S):
                    return []
        # of a file this is itself, without a name below it
        return [(one.path[begin:], one.length) for one in found if not one.isdir and one.path[begin:]]

    def _is_there(self, patience_s: int) -> bool:
        folder = self._root or "/"
        try:
            asked(self._address, self._node, lambda client: client.get_file_info(folder), patience_s)
        except FileNotFoundError:
            return False
        return True

    def _asked_for(self, name: str) -> FileStatus:
        path = f"{self._root}/{name}"
        return asked(self.shown(name), self._node, lambda client: client.get_file_info(path))


class HdfsFile(SoughtFile):
    """A file of HDFS; a small one is read whole at once, and another one in pieces.

    All bytes are of the file that was there when it was opened.
    """

    def __init__(self, address: str, patience_s: int = WHILE_RUNNING_S) -> None:
        """Open the file.

        Raises:
            FileNotFoundError: it is not there.
        """
        super().__init__()
        self._shown, self._patience_s = address, patience_s
        self._node, self._path = parted(address)
        found = asked(self._shown, self._node, self._opened, patience_s)
        self.size, self.changed_ns = found[0]
        self._reader: FileReader | None = found[1]
        self._piece, self._piece_at = b"", 0

    def readinto(self, buffer: Buffer) -> int:
        """Read as many bytes as fit, or as there are."""
        into = memoryview(buffer).cast("B")
        into = into[: max(0, self.size - self._at)]
        filled = 0
        while filled < len(into):
            begin = self._at - self._piece_at
            if not 0 <= begin < len(self._piece):
                self._fetch(len(into) - filled)
                begin = 0
            part = self._piece[begin : begin + len(into) - filled]
            into[filled : filled + len(part)] = part
            filled += len(part)
            self._at += len(part)
        return filled

    def _fetch(self, wanted: int) -> None:
        """Read the next piece: a whole one where one follows the other, else as many bytes as are wanted."""
        follows = self._at == self._piece_at + len(self._piece)
        most = PIECE_BYTES if follows else min(wanted, PIECE_BYTES)
        at, length = self._at, min(most, self.size - self._at)

        def ask(client: Client) -> bytes:
            reader = self._reader or self._opened_again(client)
            try:
                found = reader.read_range(at, length)
            except (OSError, RuntimeError):
                self._reader = None  # its blocks may be elsewhere by now
                raise
            self._reader = reader
            return found

        self._piece = asked(self._shown, self._node, ask, self._patience_s, length)
        self._piece_at = at

    def _opened(self, client: Client) -> tuple[tuple[int, int], FileReader]:
        told, reader = client.get_file_info(self._path), client.read(self._path)
        if len(reader) != told.length:  # of what was synced the name node tells another length
            raise OpenFileError("a file that is still being written")
        return (told.length, told.modification_time * 1_000_000), reader

    def _opened_again(self, client: Client) -> FileReader:
        found, reader = self._opened(client)
        if found != (self.size, self.changed_ns):
            must, got = "must stay as it is while it is read", "another file of that name"
            raise SetupError(f"{self._shown} — {must}; got {got}. Write each file once; start the job again.")
        return reader


def parted(address: str) -> tuple[str, str]:
    """(the address of the name node, the path there without a slash at its end) of an address."""
    scheme, _, rest = address.partition("://")
    host, _, path = rest.rstrip("/").partition("/")
    return f"{scheme}://{host}", f"/{path}" if path else ""


def _is_whole(name: str) -> bool:
    """False for names that are left out, and for a file that is being copied there."""
    return is_read(name) and not name.endswith(_COPIED)
