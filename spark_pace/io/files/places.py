"""From an address to the place that it names."""

from __future__ import annotations

from spark_pace.io.files.folder import Folder
from spark_pace.io.files.place import Place
from spark_pace.io.files.store_settings import StoreSettings


def place_of(address: str, settings: StoreSettings) -> Place:
    """The folder of this machine, or the prefix in a store, that an address names."""
    if "://" not in address:
        return Folder(address)
    from spark_pace.io.files.store import Store  # its library is not loaded where nobody needs it

    return Store(address, settings)
