"""All objects below a prefix in a store, whatever their names: those of a Delta table."""

from __future__ import annotations

import time

import obstore

from spark_pace.io.files import requests
from spark_pace.io.files.place import LOOKED_AT_ALL_S
from spark_pace.io.files.requests import PAGE
from spark_pace.io.files.store import StoreFile, client, told
from spark_pace.io.files.store_settings import WHILE_RUNNING_S, StoreSettings
from spark_pace.io.files.tree import Stamp


class StoreTree:
    """Implements `Tree` for a prefix in a store."""

    def __init__(self, address: str, settings: StoreSettings, patience_s: int = WHILE_RUNNING_S) -> None:
        """Name the prefix by its address; nothing is asked yet."""
        self._address = address.rstrip("/")
        self._settings = settings
        self._patience_s = patience_s

    def __str__(self) -> str:
        """The address."""
        return self._address

    def names(self, folder: str) -> list[str]:
        """The names of the objects right below a prefix, a thousand by one request.

        Raises:
            FileNotFoundError: there is none.
        """
        listed = [name.removeprefix(f"{folder}/") for name in self._listed(folder)]
        if not listed:
            raise FileNotFoundError(2, "No such objects", self._shown(folder))
        return [name for name in listed if "/" not in name]

    def sizes(self, names: list[str]) -> dict[str, int]:
        """The sizes of all objects, a thousand by one request."""
        return self._listed(None) if names else {}

    def stamp(self, name: str) -> Stamp | None:
        """The time of change, in nanoseconds, and the size of an object."""
        try:
            with told(self._shown(name)):
                found = obstore.head(self._store, name)
        except FileNotFoundError:
            return None
        return int(found["last_modified"].timestamp() * 1_000) * 1_000_000, found["size"]

    def changed(self, folder: str) -> int:
        """Another number each minute, because a store does not tell what has come."""
        return int(time.monotonic() // LOOKED_AT_ALL_S)

    def read(self, name: str) -> bytes:
        """What is in an object, by one request."""
        with told(self._shown(name)):
            return bytes(obstore.get(self._store, name).bytes())

    def opened(self, name: str) -> StoreFile:
        """An object that can be read and sought."""
        return StoreFile(self._store, name, self._shown(name))

    def write(self, name: str, content: bytes) -> None:
        """Write an object of a name that no other has."""
        with told(self._shown(name)):
            obstore.put(self._store, name, content)

    def _listed(self, folder: str | None) -> dict[str, int]:
        with told(self._address):
            pages = obstore.list(self._store, prefix=folder, chunk_size=PAGE)
            listed = {found["path"]: found["size"] for page in pages for found in page}
        requests.count_further_pages(len(listed))
        return listed

    def _shown(self, name: str) -> str:
        return f"{self._address}/{name}"

    @property
    def _store(self) -> obstore.store.ObjectStore:
        return client(self._address, self._settings, self._patience_s)
