"""From an address to the place that it names, and to the files there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from spark_pace.errors import ConfigError
from spark_pace.io.files.folder import Folder
from spark_pace.io.files.place import Place
from spark_pace.io.files.store_settings import HDFS, StoreSettings, objection


def place_of(address: str, settings: StoreSettings) -> Place:
    """The folder of this machine, or the prefix in a store, that an address names."""
    if "://" not in address:
        return Folder(address)
    if address.startswith(HDFS):
        from spark_pace.io.files.hdfs import Hdfs  # its library is not loaded where nobody needs it

        return Hdfs(address)
    from spark_pace.io.files.store import Store  # its library is not loaded where nobody needs it

    return Store(address, settings)


def place_at(path: str | Path, spark: Mapping[str, str]) -> Place:
    """The place that a path or an address names.

    Args:
        path: ``file://`` may stand before it.
        spark: settings of Spark by which a store is reached, before the variables of the environment.

    Raises:
        ConfigError: it is an address, and none of a store, or with credentials in it.
    """
    address = str(path).removeprefix("file://")
    if "://" in address and (wrong := objection(address)):
        raise ConfigError.of("the address", *wrong)
    return place_of(address, StoreSettings.of(address, spark, os.environ))


def files_at(path: str | Path, spark: Mapping[str, str]) -> tuple[Place, list[str]]:
    """(the place that a path or an address names, the names of its files in order), both of one file, too.

    Args:
        path: as of `place_at`.
        spark: likewise.

    Raises:
        ConfigError: it is an address, and none of a store.
        SetupError: the store cannot be read.
    """
    place = place_at(path, spark)
    place.require()
    names = sorted(place.look(""))
    folder, _, name = str(place).rpartition("/")
    if names or "://" not in folder:
        return place, names
    above = place_at(folder, spark)  # a store does not tell an object among those below it
    return above, [name] if above.size(name) else []
