"""How delta-rs reaches the Delta tables at a path, and what it says where it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_pace.io.files.addresses import AT_START_S, AnyPath, path_at
from spark_pace.io.files.contract import (
    hdfs_table_failure,
    is_of_a_store,
    is_of_lost_object,
    store_failure,
    told_by,
)


def tables_in(place: str | AnyPath, spark: Mapping[str, str] | None = None) -> AnyPath:
    """The path of tables, as of `path_at`, where nobody waits long for a store that does not answer."""
    return path_at(place, spark, AT_START_S)


def options(place: AnyPath) -> dict[str, str] | None:
    """What delta-rs is told of a store. Of S3 it writes a commit by a put on condition that none is."""
    if isinstance(place, Path) or not place.is_in_store:
        return None
    given = dict(place.settings.given)
    if "endpoint" in given:
        given.setdefault("region", "us-east-1")  # else a machine of Amazon's is asked for it
    return given | {
        "allow_http": str(place.settings.may_be_plain(str(place))).lower(),
        "max_retries": "100",
        "retry_timeout": f"{place.patience_s}s",
        "timeout": "60s",
    }


def found(place: AnyPath, version: int | None = None) -> DeltaTable | None:
    """The table that is at a path, as `table` gives it; None if there is none.

    `DeltaTable.is_deltatable` would keep all threads of Python waiting for a store.
    """
    try:
        return table(place, version)
    except TableNotFoundError:
        return None


def table(place: AnyPath, version: int | None = None) -> DeltaTable:
    """The table that is at a path.

    Raises:
        TableNotFoundError: there is none.
        DeltaError: its log is damaged.
        OSError: it cannot be read.
        SetupError: the store cannot be read.
    """
    with told(place):
        return DeltaTable(str(place), version, options(place))


@contextmanager
def told(place: AnyPath) -> Iterator[None]:
    """Raise what a store answers as an error that says what to do. What is wrong with a table stays.

    Raises:
        SetupError: a store does not answer, or refuses a request.
    """
    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        text = told_by(error)
        if isinstance(place, Path) or isinstance(error, TableNotFoundError) or not is_of_a_store(text):
            raise
        if is_of_lost_object(text):  # the table is not whole
            raise
        raise (store_failure if place.is_in_store else hdfs_table_failure)(str(place), text) from None
