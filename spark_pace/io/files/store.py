"""The files below a prefix in an object store: S3 and what speaks like it, Google's and Microsoft's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import obstore

from spark_pace.io.files.client import asked, listed, store_of, told
from spark_pace.io.files.place import LOOKED_AT_ALL_S, Opened, SoughtFile, is_read
from spark_pace.io.files.store_settings import AT_START_S, WHILE_RUNNING_S, StoreSettings

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult
    from obstore.store import ObjectStore
    from typing_extensions import Buffer

FEW_OBJECTS = 5_000  # so many are listed by each look: five requests
_PIECE_BYTES = 4 << 20


class Store:
    """Implements `Place` for a prefix in a store.

    A store lists names in their order, a thousand by one request, and does not tell what is new. Where there
    are more than `FEW_OBJECTS`, a look lists those behind the greatest known name, and every minute all.
    Objects of 0 bytes are left out: they stand for folders, under names that the library does not tell whole.
    """

    def __init__(self, address: str, settings: StoreSettings) -> None:
        """Name a prefix by its address; nothing is asked yet."""
        self._address = address.rstrip("/")
        self._settings = settings
        self._objects = 0  # at the last look at all
        self._all_listed_s = -float("inf")
        self._sizes: dict[str, int] = {}

    def __str__(self) -> str:
        """Its address."""
        return self._address

    def require(self) -> None:
        """Ask the store for one name."""
        store = store_of(self._address, self._settings, AT_START_S)
        next(listed(self._address, store, patience_s=AT_START_S), None)

    def look(self, greatest: str) -> Iterator[str]:
        """Yield names: all, or where there are many those behind `greatest`, and every minute all."""
        began_s = time.monotonic()
        rested = began_s - self._all_listed_s < LOOKED_AT_ALL_S
        behind = greatest if rested and self._objects > FEW_OBJECTS else ""
        if not behind:
            self._sizes.clear()
        objects = 0
        for found in listed(self._address, self._store, behind=behind):
            objects += 1
            if found["size"] and found["path"] and is_read(found["path"]):
                self._sizes[found["path"]] = found["size"]
                yield found["path"]
        if not behind:
            self._all_listed_s, self._objects = began_s, objects

    def size(self, name: str) -> int:
        """The bytes of an object, as it was listed; else the store is asked. 0 if it is gone."""
        if name not in self._sizes:
            try:
                found = asked(self.shown(name), lambda: obstore.head(self._store, name))
            except FileNotFoundError:
                return 0
            self._sizes[name] = found["size"]
        return self._sizes[name]

    def shown(self, name: str) -> str:
        """The address of an object."""
        return f"{self._address}/{name}"

    def open(self, name: str) -> Opened:
        """Ask for an object; its bytes come as they are read."""
        file = StoreFile(self._store, name, self.shown(name))
        return Opened(file, file.size, file.changed_ns)

    @property
    def _store(self) -> ObjectStore:
        return store_of(self._address, self._settings, WHILE_RUNNING_S)


class StoreFile(SoughtFile):
    """An object that is read from its begin by one request; what is read elsewhere, by a request each time.

    A small object is read whole by the first one. All bytes are of the object that was there when it was
    opened.
    """

    def __init__(self, store: ObjectStore, name: str, shown: str) -> None:
        """Ask for the object."""
        super().__init__()
        self._store, self._name, self._shown = store, name, shown
        self._got: GetResult = asked(shown, lambda: obstore.get(store, name))
        meta = self._got.meta
        self.size = meta["size"]
        self.changed_ns = int(meta["last_modified"].timestamp() * 1_000_000) * 1_000
        self._tag = meta["e_tag"]
        self._whole: memoryview | None = None  # of a small object
        self._pieces: Iterator[bytes] | None = None
        self._piece = memoryview(b"")  # came by the first request, and begins at `_came`
        self._came = 0

    def readinto(self, buffer: Buffer) -> int:
        """Read as many bytes as fit, or as there are."""
        into = memoryview(buffer).cast("B")
        into = into[: max(0, self.size - self._at)]
        if self.size <= _PIECE_BYTES:
            if self._whole is None:
                with told(self._shown):
                    self._whole = memoryview(self._got.bytes())
            into[:] = self._whole[self._at : self._at + len(into)]
        elif self._at == self._came:
            with told(self._shown):
                self._read_on(into)
        elif into:
            into[:] = self._range(len(into))
        self._at += len(into)
        return len(into)

    def _read_on(self, into: memoryview) -> None:
        """Read the next bytes that come by the first request."""
        if self._pieces is None:
            self._pieces = iter(self._got.stream(min_chunk_size=_PIECE_BYTES))
        while into:
            if not self._piece:
                self._piece = memoryview(next(self._pieces))
            part = min(len(into), len(self._piece))
            into[:part] = self._piece[:part]
            into, self._piece = into[part:], self._piece[part:]
            self._came += part

    def _range(self, wanted: int) -> memoryview:
        """So many bytes by a request of their own."""
        options: GetOptions = {"range": (self._at, self._at + wanted), "if_match": self._tag}
        return asked(
            self._shown, lambda: memoryview(obstore.get(self._store, self._name, options=options).bytes())
        )
