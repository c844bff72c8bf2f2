"""All objects below a prefix in a store, whatever their names: those of a Delta table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import obstore

from spark_pace.io.files.client import asked, listed, store_of
from spark_pace.io.files.place import LOOKED_AT_ALL_S
from spark_pace.io.files.store import StoreFile
from spark_pace.io.files.store_settings import WHILE_RUNNING_S, StoreSettings
from spark_pace.io.files.tree import Stamp

_T = TypeVar("_T")


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
            found = self._asked(name, lambda: obstore.head(self._store, name))
        except FileNotFoundError:
            return None
        return int(found["last_modified"].timestamp() * 1_000) * 1_000_000, found["size"]

    def changed(self, folder: str) -> int:
        """Another number each minute, because a store does not tell what has come."""
        return int(time.monotonic() // LOOKED_AT_ALL_S)

    def read(self, name: str) -> bytes:
        """What is in an object, by one request."""
        return self._asked(name, lambda: bytes(obstore.get(self._store, name).bytes()))

    def opened(self, name: str) -> StoreFile:
        """An object that can be read and sought."""
        return StoreFile(self._store, name, self._shown(name))

    def write(self, name: str, content: bytes) -> None:
        """Write an object of a name that no other has."""
        self._asked(name, lambda: obstore.put(self._store, name, content))

    def _listed(self, folder: str | None) -> dict[str, int]:
        found = listed(self._address, self._store, folder, patience_s=self._patience_s)
        return {one["path"]: one["size"] for one in found}

    def _asked(self, name: str, ask: Callable[[], _T]) -> _T:
        return asked(self._shown(name), ask, self._patience_s)

    def _shown(self, name: str) -> str:
        return f"{self._address}/{name}"

    @property
    def _store(self) -> obstore.store.ObjectStore:
        return store_of(self._address, self._settings, self._patience_s)
