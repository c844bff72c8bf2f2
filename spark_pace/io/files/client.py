"""The clients of object stores: who asks a store, for how long it is asked again, and what its errors say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import BaseError, PreconditionError
from obstore.store import from_url

from spark_pace.errors import SetupError
from spark_pace.io.files import requests
from spark_pace.io.files.requests import PAGE
from spark_pace.io.files.store_failures import breaks_off, failure
from spark_pace.io.files.store_settings import WHILE_RUNNING_S, StoreSettings

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

_T = TypeVar("_T")
_PAUSE_S = 0.2  # before a request is made again whose answer broke off
_DEBUG = "\n\nDebug source"  # the library adds its own structures behind its words


@lru_cache(maxsize=64)  # a process keeps its connections from task to task
def store_of(address: str, settings: StoreSettings, patience_s: int) -> ObjectStore:
    """The client of the store that has an address. Requests are tried again for so many seconds."""
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


def asked(shown: str, ask: Callable[[], _T], patience_s: int = WHILE_RUNNING_S) -> _T:
    """What a request gives. It is made again where its answer breaks off.

    The library itself asks again where a store does not answer, or answers with an error; but once an answer
    has begun, only for the content of an object.

    Args:
        shown: the address that an error names.
        ask: makes the request. Done twice, it must be as good as done once.
        patience_s: for how many seconds it is made again; one made at their end may take as long again.

    Raises:
        FileNotFoundError: there is no such object.
        SetupError: the request has failed.
    """

    def counted() -> _T:
        requests.count()
        return ask()

    return _tried(shown, counted, patience_s)


def _tried(shown: str, ask: Callable[[], _T], patience_s: int) -> _T:
    until_s = time.monotonic() + patience_s
    with told(shown):
        while True:
            try:
                return ask()
            except BaseError as error:
                if not breaks_off(str(error)) or time.monotonic() > until_s:
                    raise
            threading.Event().wait(_PAUSE_S)


def listed(
    shown: str,
    store: ObjectStore,
    folder: str | None = None,
    behind: str = "",
    patience_s: int = WHILE_RUNNING_S,
) -> Iterator[ObjectMeta]:
    """Yield the objects of a store by their names, a thousand by one request.

    Args:
        shown: the address that an error names.
        store: which.
        folder: only those below this prefix; None for all.
        behind: only those with a greater name.
        patience_s: as in `asked`, for each request.
    """
    pages: Iterator[Sequence[ObjectMeta]] | None = None

    def page() -> Sequence[ObjectMeta]:
        nonlocal pages
        if pages is None:  # at first, and after an answer that broke off
            requests.count()
            pages = iter(obstore.list(store, folder, offset=behind or None, chunk_size=PAGE))
        try:
            return next(pages, [])
        except BaseError:
            pages = None
            raise

    objects = 0
    while found := _tried(shown, page, patience_s):
        objects += len(found)
        behind = found[-1]["path"]
        yield from found
    requests.count_further_pages(objects)


@contextmanager
def told(address: str) -> Iterator[None]:
    """Raise errors of the library as our own; that an object is gone, as an error of the system."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno or 2, "No such object", address) from None
    except PreconditionError:
        must, got = "must stay as it is while it is read", "another object of that name"
        do = "Write each object once; start the job again."
        raise SetupError(f"{address} — {must}; got {got}. {do}") from None
    except (BaseError, ValueError) as error:
        raise failure(address, str(error).partition(_DEBUG)[0]) from None
