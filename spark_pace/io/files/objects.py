"""Single objects of a store, by their `StorePath`: read, written, listed and removed.

An object is there whole or not at all. Errors are those of `spark_pace.io.files.client`. Files of HDFS are
objects too: what they need is done in `spark_pace.io.files.hdfs_objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from spark_pace.io.files import requests
from spark_pace.io.files.client import asked, store_of, told
from spark_pace.io.files.store import Store
from spark_pace.io.files.store_path import StorePath
from spark_pace.io.files.store_settings import WHILE_RUNNING_S

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

_PIECE_BYTES = 4 << 20
_P = ParamSpec("_P")
_T = TypeVar("_T")


class OtherObjectError(Exception):
    """An object is there that was not to be there, or another one than was to be replaced."""


def _or_on_hdfs(
    in_store: Callable[Concatenate[StorePath, _P], _T],
) -> Callable[Concatenate[StorePath, _P], _T]:
    """Let the function of the same name in `hdfs_objects` do it where the path is one of HDFS."""

    @wraps(in_store)
    def of_either(path: StorePath, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if not path.is_on_hdfs:
            return in_store(path, *args, **kwargs)
        from spark_pace.io.files import hdfs_objects  # few jobs need it

        found: _T = getattr(hdfs_objects, in_store.__name__)(path, *args, **kwargs)
        return found

    return of_either


@_or_on_hdfs
def reach(folder: StorePath) -> None:
    """Ask for one name below a prefix, so that what is wrong with the place is told at once."""
    Store(str(folder), folder.settings).require()


@_or_on_hdfs
def read(path: StorePath, patience_s: int = WHILE_RUNNING_S) -> tuple[bytes, str] | None:
    """(the content of an object, the tag of this version of it); None if it is not there."""

    def ask() -> tuple[bytes, str]:
        got = obstore.get(_bucket(path, patience_s), path.key)
        return got.bytes().to_bytes(), got.meta["e_tag"] or ""

    with suppress(FileNotFoundError):
        return asked(str(path), ask, patience_s)
    return None


@_or_on_hdfs
def pieces(path: StorePath) -> Iterator[bytes]:
    """Yield the content of an object, piece by piece.

    Raises:
        FileNotFoundError: it is not there.
    """
    got = asked(str(path), lambda: obstore.get(_bucket(path), path.key))
    with told(str(path)):
        for piece in got.stream(min_chunk_size=_PIECE_BYTES):
            yield bytes(piece)


@_or_on_hdfs
def write(path: StorePath, content: bytes) -> None:
    """Write an object, in place of one that is there."""
    asked(str(path), lambda: obstore.put(_bucket(path), path.key, content))


@_or_on_hdfs
def write_new(path: StorePath, content: bytes, patience_s: int = WHILE_RUNNING_S) -> str:
    """Write an object where none is, and return its tag. One with the same content counts as this one.

    For the library asks again where an answer is lost, and may find what it has written itself.

    Raises:
        OtherObjectError: there is one with another content.
    """
    return _put_if(path, content, "create", patience_s)


@_or_on_hdfs
def write_first(path: StorePath, content: bytes, patience_s: int = WHILE_RUNNING_S) -> str:
    """Write an object that `replace` is to replace, where none is, as `write_new` does."""
    return write_new(path, content, patience_s)


@_or_on_hdfs
def replace(path: StorePath, content: bytes, tag: str, patience_s: int = WHILE_RUNNING_S) -> str:
    """Write an object in place of the version with a tag, and return its new tag.

    Raises:
        OtherObjectError: another version is there, or none; not if it has this content, as in `write_new`.
    """
    return _put_if(path, content, {"e_tag": tag}, patience_s)


@_or_on_hdfs
def written_at(path: StorePath) -> float | None:
    """When an object was written, in seconds since 1970 by the store's clock; None if it is not there."""
    with suppress(FileNotFoundError):
        return asked(str(path), lambda: obstore.head(_bucket(path), path.key))["last_modified"].timestamp()
    return None


@_or_on_hdfs
def listed(folder: StorePath) -> tuple[list[str], list[str]]:
    """(the names of the objects right below a prefix, those of the prefixes there)."""
    found = asked(str(folder), lambda: obstore.list_with_delimiter(_bucket(folder), folder.key))
    requests.count_further_pages(len(found["objects"]) + len(found["common_prefixes"]))
    begin = len(folder.key) + 1 if folder.key else 0
    names = [entry["path"][begin:] for entry in found["objects"]]
    return [name for name in names if name], [key[begin:] for key in found["common_prefixes"]]


@_or_on_hdfs
def remove(path: StorePath) -> None:
    """Remove an object if it is there."""
    with suppress(FileNotFoundError):
        asked(str(path), lambda: obstore.delete(_bucket(path), path.key))


@_or_on_hdfs
def remove_all(bucket: StorePath, paths: list[StorePath]) -> None:
    """Remove those of the objects of a bucket that are there, by one request where a store allows that."""
    with suppress(FileNotFoundError):
        asked(str(bucket), lambda: obstore.delete(_bucket(bucket), [path.key for path in paths]))


@_or_on_hdfs
def remove_unfinished(folder: StorePath) -> None:
    """Do nothing: a store has no object that was not written to its end."""


def _put_if(
    path: StorePath, content: bytes, condition: Literal["create"] | UpdateVersion, patience_s: int
) -> str:
    """Write an object on a condition, which an object with this content fulfils too; return its tag."""
    bucket = _bucket(path, patience_s)

    def ask() -> str | None:
        try:
            return obstore.put(bucket, path.key, content, mode=condition)["e_tag"] or ""
        except (AlreadyExistsError, PreconditionError):
            return None
        except FileNotFoundError:  # what was to be replaced
            if condition == "create":
                raise
            return None

    tag = asked(str(path), ask, patience_s)
    there = read(path, patience_s) if tag is None else (content, tag)
    if there is None or there[0] != content:
        raise OtherObjectError
    return there[1]


def _bucket(path: StorePath, patience_s: int = WHILE_RUNNING_S) -> ObjectStore:
    return store_of(path.bucket, path.settings, patience_s)
