"""The clients of HDFS: who asks a name node, for how long it is asked again, and what its errors say.

The library asks once only, and waits for an answer without end; so both are done here.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from spark_pace.errors import UnfitError
from spark_pace.io.files import requests
from spark_pace.io.files.hdfs_failures import failure, is_of_nothing, passes
from spark_pace.io.files.requests import PAGE
from spark_pace.io.files.store_settings import AT_START_S, WHILE_RUNNING_S

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus

_T = TypeVar("_T")
_PAUSE_S = 0.5  # before a request is made again
_BYTES_A_SECOND = 1 << 20  # a write that is slower counts as one without an answer
# how often the library itself asks again, else for minutes where nobody is: a name service its next name node
_ATTEMPTS = "dfs.client.failover.max.attempts"
_OF_ONE, _OF_SERVICE = "0", "4"
_Answer = tuple[_T | None, Exception | None]


class SilentError(OSError):
    """A request has had no answer for too long. It may still be done."""


@lru_cache(maxsize=64)  # a process keeps its connections from task to task
def client_of(address: str) -> Client:
    """The client of the name node, or of the name service, at an address such as ``hdfs://host:port``.

    Raises:
        UnfitError: the library for it is not installed.
        RuntimeError: the address names none.
    """
    try:
        from hdfs_native import Client
    except ImportError:
        must, do = "must be installed to reach HDFS", "Run `pip install 'spark-pace[hdfs]'`."
        raise UnfitError(f"hdfs-native — {must}; got no such module. {do}") from None
    is_one = ":" in address.partition("://")[2]
    return Client(address, {_ATTEMPTS: _OF_ONE if is_one else _OF_SERVICE})


def asked(
    shown: str,
    address: str,
    ask: Callable[[Client], _T],
    patience_s: int = WHILE_RUNNING_S,
    size: int = 0,
) -> _T:
    """What a request gives. It is made again where the name node or the data nodes do not answer.

    Args:
        shown: the address that an error names.
        address: that of the name node.
        ask: makes the request. Done twice, it must be as good as done once.
        patience_s: for how many seconds it is made again.
        size: the bytes that it carries.

    Raises:
        FileNotFoundError: there is no such file or folder.
        FileExistsError: there is one where none was to be.
        SetupError: the request has failed.
    """
    limit_s = max(2 * AT_START_S, patience_s / 2) + size / _BYTES_A_SECOND
    until_s = time.monotonic() + patience_s
    while True:
        requests.count()
        try:
            client = client_of(address)
            return _within(limit_s, lambda client=client: ask(client))  # type: ignore[misc]
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file", shown) from None
        except FileExistsError:
            raise
        except (OSError, RuntimeError) as error:
            if is_of_nothing(error):
                raise FileNotFoundError(2, "No such file", shown) from None
            if isinstance(error, SilentError):
                client_of.cache_clear()  # its connection is of no use any more
            if not passes(error) or time.monotonic() > until_s:
                raise failure(shown, error) from None
        threading.Event().wait(_PAUSE_S)


def all_below(shown: str, address: str, path: str, patience_s: int = WHILE_RUNNING_S) -> list[FileStatus]:
    """All that lies below a folder, itself if it is a file.

    It is asked for piece by piece, so that a large folder is not taken for a name node that is silent; where
    an answer is lost, from the beginning.

    Raises:
        FileNotFoundError: it is not there.
    """
    found: list[FileStatus] = []
    rest: Iterator[FileStatus] | None = None
    while True:
        is_next, piece, rest = asked(shown, address, _piece_of(path, rest), patience_s)
        found = found if is_next else []
        found += piece
        if len(piece) < PAGE:
            return found


def _piece_of(
    path: str, rest: Iterator[FileStatus] | None
) -> Callable[[Client], tuple[bool, list[FileStatus], Iterator[FileStatus]]]:
    """Asks for (whether it is the next piece, or again the first one; the piece; what gives those behind)."""
    going_on = [] if rest is None else [rest]

    def ask(client: Client) -> tuple[bool, list[FileStatus], Iterator[FileStatus]]:
        is_next = bool(going_on)
        pieces = going_on.pop() if is_next else iter(client.list_status(path, recursive=True))
        return is_next, list(islice(pieces, PAGE)), pieces

    return ask


def _within(limit_s: float, ask: Callable[[], _T]) -> _T:
    """What a request gives, if it gives that in time.

    Raises:
        SilentError: it does not.
    """
    answers: queue.SimpleQueue[_Answer[_T]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((ask(), None))
        except Exception as error:
            answers.put((None, error))
        except BaseException as error:  # the library is of Rust, whose panic is no exception
            answers.put((None, RuntimeError(str(error))))

    threading.Thread(
        target=run, name="hdfs", daemon=True
    ).start()  # one without an answer must not be waited for
    try:
        answer, error = answers.get(timeout=limit_s)
    except queue.Empty:
        raise SilentError(f"no answer for {limit_s:.0f} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]
