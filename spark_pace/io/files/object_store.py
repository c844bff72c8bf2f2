"""Objects of a store, by their `StorePath`: S3 and what speaks like it, Google's and Microsoft's.

An object is there whole or not at all. `spark_pace.io.files.files` says what each function does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import from_url

from spark_pace.errors import SetupError
from spark_pace.io.files.addresses import AT_START_S, StorePath, StoreSettings
from spark_pace.io.files.contract import (
    PAGE,
    REQUESTS,
    OtherFileError,
    SoughtFile,
    Stat,
    breaks_off,
    store_failure,
)

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, UpdateVersion
    from obstore.store import ObjectStore

_T = TypeVar("_T")
_PAUSE_S = 0.2  # before a request is made again whose answer broke off
_PIECE_BYTES = 4 << 20
_DEBUG = "\n\nDebug source"  # the library adds its own structures behind its words


def reach(path: StorePath) -> bool:
    """Ask for the names below a prefix; True: a store does not tell one that is not there."""
    next(walk(path.within(AT_START_S)), None)
    return True


def stat(path: StorePath) -> Stat | None:
    """The stamp of an object."""
    with suppress(FileNotFoundError):
        return _stat(_asked(path, lambda: obstore.head(_bucket(path), path.key)))
    return None


def entries(folder: StorePath) -> list[str]:
    """The names of the objects right below a prefix."""
    found = _asked(folder, lambda: obstore.list_with_delimiter(_bucket(folder), folder.key))
    REQUESTS.count_further_pages(len(found["objects"]) + len(found["common_prefixes"]))
    names = (one["path"][_begin(folder) :] for one in found["objects"])
    if there := [name for name in names if name]:
        return there
    raise FileNotFoundError(2, "No such objects", str(folder))


def walk(folder: StorePath, behind: str = "") -> Iterator[tuple[str, int]]:
    """Yield (name, bytes) of the objects below a prefix by their names, a thousand by one request.

    Only those with a name greater than `behind`.
    """
    pages: Iterator[Sequence[ObjectMeta]] | None = None
    last = (folder / behind).key if behind else ""

    def page() -> Sequence[ObjectMeta]:
        nonlocal pages
        if pages is None:  # at first, and after an answer that broke off
            REQUESTS.count()
            pages = iter(
                obstore.list(_bucket(folder), folder.key or None, offset=last or None, chunk_size=PAGE)
            )
        try:
            return next(pages, [])
        except BaseError:
            pages = None
            raise

    objects = 0
    while found := _asked(folder, page, 0):
        objects += len(found)
        last = found[-1]["path"]
        yield from ((one["path"][_begin(folder) :], one["size"]) for one in found)
    REQUESTS.count_further_pages(objects)


def tagged(path: StorePath) -> tuple[bytes, str]:
    """(the content of an object, the tag of this version of it), by one request."""

    def ask() -> tuple[bytes, str]:
        got = obstore.get(_bucket(path), path.key)
        return got.bytes().to_bytes(), got.meta["e_tag"] or ""

    return _asked(path, ask)


def write(path: StorePath, content: bytes) -> None:
    """Write an object, in place of one that is there."""
    _asked(path, lambda: obstore.put(_bucket(path), path.key, content))


def write_new(path: StorePath, content: bytes) -> str:
    """Write an object where none is."""
    return replace(path, content, None)


def replace(path: StorePath, content: bytes, tag: str | None) -> str:
    """Write an object in place of the version with a tag, or of none."""

    def ask() -> str | None:
        mode: Literal["create"] | UpdateVersion = "create" if tag is None else {"e_tag": tag}
        try:
            return obstore.put(_bucket(path), path.key, content, mode=mode)["e_tag"] or ""
        except (AlreadyExistsError, PreconditionError):
            return None
        except FileNotFoundError:  # what was to be replaced
            if tag is None:
                raise
            return None

    new = _asked(path, ask)
    if new is not None:
        return new
    with suppress(FileNotFoundError):
        there = tagged(path)
        if there[0] == content:
            return there[1]
    raise OtherFileError


def remove(paths: Sequence[StorePath]) -> None:
    """Remove those of the objects of a bucket that are there, by one request where a store allows that."""
    keys = [path.key for path in paths]
    with suppress(FileNotFoundError):
        _asked(paths[0], lambda: obstore.delete(_bucket(paths[0]), keys if len(keys) > 1 else keys[0]))


class StoreFile(SoughtFile):
    """An object that is read from its begin by one request; what is read elsewhere, by one each time."""

    def __init__(self, path: StorePath) -> None:
        """Ask for the object."""
        self._path = path
        got = _asked(path, lambda: obstore.get(_bucket(path), path.key))
        super().__init__(_stat(got.meta))
        self._tag = got.meta["e_tag"]
        self._pieces: Iterator[bytes] = iter(got.stream(min_chunk_size=_PIECE_BYTES))
        self._came = 0  # how far the first request has come

    def _fetch(self, wanted: int) -> bytes:
        """What comes next by the first request, else so many bytes by a request of their own."""
        path = self._path
        if self._at == self._came:
            with _told(path):
                piece = next(self._pieces)
            self._came += len(piece)
            return piece
        options: GetOptions = {"range": (self._at, self._at + wanted), "if_match": self._tag}
        ask = partial(obstore.get, _bucket(path), path.key, options=options)
        return _asked(path, lambda: ask().bytes().to_bytes())


opened = StoreFile


def _stat(meta: ObjectMeta) -> Stat:
    return Stat(int(meta["last_modified"].timestamp() * 1_000) * 1_000_000, meta["size"])


@lru_cache(maxsize=64)  # a process keeps its connections from task to task
def _store(address: str, settings: StoreSettings, patience_s: float) -> ObjectStore:
    """The client of the bucket that has an address. Requests are tried again for so many seconds."""
    made: ObjectStore = from_url(  # type: ignore[call-overload]  # each store has names of its own
        address,
        config=dict(settings.given),
        # a stream lasts as long as its reader takes, and must only not fall silent
        client_options={
            "allow_http": settings.may_be_plain(address),
            "timeout": "1 day",
            "read_timeout": "30 s",
        },
        retry_config={
            "max_retries": 100,
            "retry_timeout": timedelta(seconds=patience_s),
            "backoff": {"max_backoff": timedelta(seconds=5)},
        },
    )
    return made


def _bucket(path: StorePath) -> ObjectStore:
    return _store(path.bucket, path.settings, path.patience_s)


def _begin(folder: StorePath) -> int:
    """Where the name of an object begins in its key, which begins with that of the prefix."""
    return len(folder.key) + 1 if folder.key else 0


def _asked(path: StorePath, ask: Callable[[], _T], requests: int = 1) -> _T:
    """What a request gives. It is made again where its answer breaks off.

    The library itself asks again where a store does not answer, or answers with an error; but once an answer
    has begun, only for the content of an object.

    Args:
        path: what an error names; made at the end of its patience, a request may take as long again.
        ask: makes the request. Done twice, it must be as good as done once.
        requests: how many are counted; 0 where `ask` counts.

    Raises:
        FileNotFoundError: there is no such object.
        SetupError: the request has failed.
    """
    until_s = time.monotonic() + path.patience_s
    with _told(path):
        while True:
            REQUESTS.count(requests)
            try:
                return ask()
            except BaseError as error:
                if not breaks_off(str(error)) or time.monotonic() > until_s:
                    raise
            threading.Event().wait(_PAUSE_S)


@contextmanager
def _told(path: StorePath) -> Iterator[None]:
    """Raise errors of the library as our own; that an object is gone, as an error of the system."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno or 2, "No such object", str(path)) from None
    except PreconditionError:
        must, got = "must stay as it is while it is read", "another object of that name"
        do = "Write each object once; start the job again."
        raise SetupError(f"{path} — {must}; got {got}. {do}") from None
    except (BaseError, ValueError) as error:
        raise store_failure(str(path), str(error).partition(_DEBUG)[0]) from None
