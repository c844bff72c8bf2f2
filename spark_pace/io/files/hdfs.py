"""Files of HDFS, by their `StorePath`. `spark_pace.io.files.files` says what each function does.

A file is written under a hidden name and renamed, which HDFS does at once or not at all; so it is there whole
or not at all. HDFS replaces no file on condition that it is still the same. So what `replace` is for is a
folder of versions, named by their numbers: who is to replace version N makes N+1, which one alone can.

The library asks once only, and waits for an answer without end; so both are done here.
"""

from __future__ import annotations

import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from spark_pace.errors import FullStoreError, SetupError, UnfitError
from spark_pace.io.files.addresses import AT_START_S, StorePath
from spark_pace.io.files.contract import (
    PAGE,
    REQUESTS,
    OpenFileError,
    OtherFileError,
    SoughtFile,
    Stat,
    hdfs_failure,
)

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus

_T = TypeVar("_T")
_PAUSE_S = 0.5  # before a request is made again
_PIECE_BYTES = 4 << 20
_BYTES_A_SECOND = 1 << 20  # a write that is slower counts as one without an answer
# how often the library itself asks again, else for minutes where nobody is: a name service its next name node
_ATTEMPTS = "dfs.client.failover.max.attempts"
_OF_ONE, _OF_SERVICE = "0", "4"
_COPIED = "._COPYING_"  # Hadoop's commands give a file its own name once it is whole
# hidden names of files that were not finished: those of this module, and Spark's
_UNFINISHED = re.compile(r"\..+\.(?:[0-9a-f]{32}|[0-9a-f-]{36}\.tmp)")
_DIGITS = 20
_Answer = tuple[_T | None, Exception | None]


class SilentError(OSError):
    """A request has had no answer for too long. It may still be done."""


def reach(path: StorePath) -> bool:
    """Ask for a folder."""
    return stat(path.within(AT_START_S)) is not None


def stat(path: StorePath) -> Stat | None:
    """The stamp of a file or a folder; that of a folder changes when names come or go."""
    with suppress(FileNotFoundError):
        found = _asked(path, lambda client: client.get_file_info(_name(path)))
        return Stat(found.modification_time * 1_000_000, found.length)
    return None


def entries(folder: StorePath) -> list[str]:
    """The names of the files right in a folder, without hidden ones."""

    def ask(client: Client) -> list[str]:
        found = client.list_status(_name(folder))
        return [_last_part(one) for one in found if not one.isdir and not _last_part(one).startswith(".")]

    return _asked(folder, ask)


def walk(folder: StorePath, behind: str = "") -> Iterator[tuple[str, int]]:
    """Yield (name, bytes) of all files below a folder, in any order, a thousand by one request.

    Of a file that is being written there are no bytes until its first block is full, or its writer syncs it.
    """
    begin = len(_name(folder).rstrip("/")) + 1
    for one in _all_below(folder):
        # of a file this is itself, without a name below it
        if not one.isdir and one.path[begin:] and not one.path.endswith(_COPIED):
            yield one.path[begin:], one.length


def tagged(path: StorePath) -> tuple[bytes, str]:
    """(the content, the tag of this version) of a file, or of the last version."""

    def ask(client: Client) -> tuple[bytes, str]:
        content = _content(client, path)  # None if it is not there, or a folder
        return (content, "") if content is not None else _last(client, path)

    return _asked(path, ask)


def write(path: StorePath, content: bytes) -> None:
    """Write a file, in place of one that is there."""
    _put(path, content, overwrite=True)


def write_new(path: StorePath, content: bytes) -> str:
    """Write a file where none is; no `replace` is to replace it."""
    _put(path, content, overwrite=False)
    return ""


def replace(path: StorePath, content: bytes, tag: str | None) -> str:
    """Write the version that follows the one with a tag, or the first one."""
    number = 0 if tag is None else int(tag) + 1
    made = path / f"{number:0{_DIGITS}d}"
    _put(made, content, overwrite=False)

    def older(client: Client) -> bool:
        """Remove the versions before; true if this one is before another, so that it may have been lost."""
        numbers = _versions(client, path)
        if number < max(numbers, default=number):
            client.delete(_name(made))
            return True
        for before in numbers:
            if before < number:
                client.delete(_name(path / f"{before:0{_DIGITS}d}"))
        return False

    if _asked(path, older):
        raise OtherFileError
    return str(number)


def remove(paths: Sequence[StorePath]) -> None:
    """Remove those of the files that are there."""
    for path in paths:
        _asked(path, lambda client, path=path: client.delete(_name(path)))  # type: ignore[misc]


def remove_unfinished(folder: StorePath) -> None:
    """Remove the files below a folder that were never finished. A writer that was stopped writes anew."""
    for name, _ in walk(folder):
        if _UNFINISHED.fullmatch(name.rpartition("/")[2]):
            remove([folder / name])


class HdfsFile(SoughtFile):
    """A file of HDFS; a small one is read whole at once, and another one in pieces."""

    def __init__(self, path: StorePath) -> None:
        """Open the file."""
        self._path = path
        stat, reader = _asked(path, self._opened)
        super().__init__(stat)
        self._reader: FileReader | None = reader

    def _fetch(self, wanted: int) -> bytes:
        """A whole piece where one follows the other, else as many bytes as are wanted."""
        follows = self._at == self._piece_at + len(self._piece)
        most = _PIECE_BYTES if follows else min(wanted, _PIECE_BYTES)
        at, length = self._at, min(most, self.size - self._at)

        def ask(client: Client) -> bytes:
            reader, self._reader = self._reader or self._opened_again(client), None
            found = reader.read_range(at, length)
            self._reader = reader  # not if that has failed: its blocks may be elsewhere by now
            return found

        return _asked(self._path, ask, length)

    def _opened(self, client: Client) -> tuple[Stat, FileReader]:
        told, reader = client.get_file_info(_name(self._path)), client.read(_name(self._path))
        if len(reader) != told.length:  # of what was synced the name node tells another length
            raise OpenFileError("a file that is still being written")
        return Stat(told.modification_time * 1_000_000, told.length), reader

    def _opened_again(self, client: Client) -> FileReader:
        found, reader = self._opened(client)
        if found != (self.changed_ns, self.size):
            must, got = "must stay as it is while it is read", "another file of that name"
            raise SetupError(f"{self._path} — {must}; got {got}. Write each file once; start the job again.")
        return reader


opened = HdfsFile


def _put(path: StorePath, content: bytes, overwrite: bool) -> None:
    """Write a file under a hidden name, and rename it.

    A try that had no answer may go on at any time, and must then put nothing in place of what came later. So
    each try renames only while it is the last one, and a later one removes the hidden files of those before.

    Raises:
        OtherFileError: there is one with another content, which is not to be overwritten.
    """
    tried: list[str] = []

    def ask(client: Client) -> None:
        hidden = _name(path.parent / f".{path.name}.{uuid.uuid4().hex}")
        tried.append(hidden)
        for earlier in tried[:-1]:
            client.delete(earlier)
        try:
            with client.create(hidden) as file:
                file.write(content)
            if hidden != tried[-1]:
                client.delete(hidden)
                return
            client.rename(hidden, _name(path), overwrite)
        except (FileNotFoundError, FileExistsError) as error:
            # another try was done whose answer was lost, or another process was faster
            there = _content(client, path)
            client.delete(hidden)
            if there == content:
                return
            if isinstance(error, FileExistsError):
                raise
            raise OSError(f"the hidden file was removed: {error}") from error

    try:
        _asked(path, ask, len(content))
    except FileExistsError:
        raise OtherFileError from None
    finally:
        tried.append("")  # no try may be done from now on


def _last(client: Client, path: StorePath) -> tuple[bytes, str]:
    """The last version.

    Raises:
        FileNotFoundError: there is none.
    """
    while True:
        number = max(_versions(client, path), default=None)
        if number is None:
            raise FileNotFoundError
        content = _content(client, path / f"{number:0{_DIGITS}d}")
        if content is not None:  # else another one was made meanwhile
            return content, str(number)


def _versions(client: Client, path: StorePath) -> list[int]:
    names = map(_last_part, client.list_status(_name(path)))
    return [int(name) for name in names if name.isdigit()]


def _content(client: Client, path: StorePath) -> bytes | None:
    try:
        return client.read(_name(path)).read()
    except FileNotFoundError:
        return None


def _name(path: StorePath) -> str:
    return f"/{path.key}"


def _last_part(one: FileStatus) -> str:
    return one.path.rpartition("/")[2]


def _all_below(folder: StorePath) -> list[FileStatus]:
    """All that lies below a folder, itself if it is a file; nothing if it is not there.

    It is asked for piece by piece, so that a large folder is not taken for a name node that is silent; where
    an answer is lost, from the beginning.
    """
    found: list[FileStatus] = []
    rest: Iterator[FileStatus] | None = None

    def ask(client: Client) -> tuple[Iterator[FileStatus] | None, Iterator[FileStatus], list[FileStatus]]:
        nonlocal rest
        before, rest = rest, None  # if this answer is lost, the next try begins anew
        pieces = before or iter(client.list_status(_name(folder), recursive=True))
        return before, pieces, list(islice(pieces, PAGE))

    while True:
        try:
            before, rest, piece = _asked(folder, ask)
        except FileNotFoundError:  # the folder, or one below it, was there a moment ago
            if stat(folder) is None:
                return []
            rest = None
            continue
        if before is None:
            found = []
        found += piece
        if len(piece) < PAGE:
            return found


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


def _asked(path: StorePath, ask: Callable[[Client], _T], size: int = 0) -> _T:
    """What a request gives. It is made again where the name node or the data nodes do not answer.

    Args:
        path: what an error names.
        ask: makes the request. Done twice, it must be as good as done once.
        size: the bytes that it carries.

    Raises:
        FileNotFoundError: there is no such file or folder.
        FileExistsError: there is one where none was to be.
        SetupError: the request has failed.
    """
    limit_s = max(2 * AT_START_S, path.patience_s / 2) + size / _BYTES_A_SECOND
    until_s = time.monotonic() + path.patience_s
    while True:
        REQUESTS.count()
        try:
            client = client_of(path.bucket)
            return _in_time(limit_s, lambda client=client: ask(client))  # type: ignore[misc]
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file", str(path)) from None
        except FileExistsError:
            raise
        except (OSError, RuntimeError) as error:
            if "(is not a directory)" in str(error):  # what is called as its folder is a file
                raise FileNotFoundError(2, "No such file", str(path)) from None
            if isinstance(error, SilentError):
                client_of.cache_clear()  # its connection is of no use any more
            failure = hdfs_failure(str(path), error)
            is_full = isinstance(failure, FullStoreError)
            if is_full or not failure.may_pass or time.monotonic() > until_s:
                raise failure from None
        threading.Event().wait(_PAUSE_S)


def _in_time(limit_s: float, ask: Callable[[], _T]) -> _T:
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

    # one without an answer must not be waited for
    threading.Thread(target=run, name="hdfs", daemon=True).start()
    try:
        answer, error = answers.get(timeout=limit_s)
    except queue.Empty:
        raise SilentError(f"no answer for {limit_s:.0f} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]
