"""Single files of HDFS by their `StorePath`, as `spark_pace.io.files.objects` has objects of a store.

A file is written under a hidden name and renamed, which HDFS does at once or not at all; so it is there whole
or not at all. HDFS replaces no file on condition that it is still the same. So what `replace` is for is a
folder of versions, named by their numbers: who is to replace version N makes N+1, which one alone can.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from spark_pace.io.files.hdfs import PIECE_BYTES, HdfsFile
from spark_pace.io.files.hdfs_client import all_below, asked
from spark_pace.io.files.objects import OtherObjectError
from spark_pace.io.files.store_path import StorePath
from spark_pace.io.files.store_settings import AT_START_S, WHILE_RUNNING_S

if TYPE_CHECKING:
    from hdfs_native import Client

_T = TypeVar("_T")
# hidden names of files that were not finished: those of this module, and Spark's
_UNFINISHED = re.compile(r"\..+\.(?:[0-9a-f]{32}|[0-9a-f-]{36}\.tmp)")
_DIGITS = 20


def reach(folder: StorePath) -> None:
    """Ask for a folder, which need not be there."""
    with suppress(FileNotFoundError):
        _asked(folder, lambda client: client.get_file_info(_name(folder)), AT_START_S)


def read(path: StorePath, patience_s: int = WHILE_RUNNING_S) -> tuple[bytes, str] | None:
    """(the content, the tag of this version) of a file, or of the last version; None if it is not there."""

    def ask(client: Client) -> tuple[bytes, str] | None:
        try:
            return client.read(_name(path)).read(), ""
        except FileNotFoundError:  # it is not there, or a folder
            return _last(client, path)

    return _asked(path, ask, patience_s)


def pieces(path: StorePath) -> Iterator[bytes]:
    """Yield the content of a file, piece by piece.

    Raises:
        FileNotFoundError: it is not there.
    """
    file = HdfsFile(str(path))
    while piece := file.read(PIECE_BYTES):
        yield piece


def write(path: StorePath, content: bytes) -> None:
    """Write a file, in place of one that is there."""
    _put(path, content, WHILE_RUNNING_S, overwrite=True)


def write_new(path: StorePath, content: bytes, patience_s: int = WHILE_RUNNING_S) -> str:
    """Write a file where none is. One with the same content counts as this one.

    Raises:
        OtherObjectError: there is one with another content.
    """
    _put(path, content, patience_s, overwrite=False)
    return ""


def write_first(path: StorePath, content: bytes, patience_s: int = WHILE_RUNNING_S) -> str:
    """Write the first version of what `replace` replaces, where none is, and return its tag.

    Raises:
        OtherObjectError: there is one.
    """
    return replace(path, content, "-1", patience_s)


def replace(path: StorePath, content: bytes, tag: str, patience_s: int = WHILE_RUNNING_S) -> str:
    """Write the version that follows the one with a tag, and return its tag.

    Raises:
        OtherObjectError: the last version has another tag; not if it has this content.
    """
    number = int(tag) + 1
    made = path / f"{number:0{_DIGITS}d}"
    _put(made, content, patience_s, overwrite=False)

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

    if _asked(path, older, patience_s):
        raise OtherObjectError
    return str(number)


def written_at(path: StorePath) -> float | None:
    """When a file was written, in seconds since 1970 by the name node's clock; None if it is not there."""
    try:
        return _asked(path, lambda client: client.get_file_info(_name(path))).modification_time / 1_000
    except FileNotFoundError:
        return None


def listed(folder: StorePath) -> tuple[list[str], list[str]]:
    """(the names of the files right in a folder, those of the folders there), without hidden ones."""

    def ask(client: Client) -> tuple[list[str], list[str]]:
        found = [(one.path.rpartition("/")[2], one.isdir) for one in client.list_status(_name(folder))]
        shown = [one for one in found if not one[0].startswith(".")]
        return [name for name, isdir in shown if not isdir], [name for name, isdir in shown if isdir]

    try:
        return _asked(folder, ask)
    except FileNotFoundError:
        return [], []


def remove(path: StorePath) -> None:
    """Remove a file if it is there."""
    _asked(path, lambda client: client.delete(_name(path)))


def remove_all(bucket: StorePath, paths: list[StorePath]) -> None:
    """Remove those of the files that are there."""
    for path in paths:
        remove(path)


def remove_unfinished(folder: StorePath) -> None:
    """Remove the files below a folder that were never finished. A writer that was stopped writes anew."""
    with suppress(FileNotFoundError):
        for one in all_below(str(folder), folder.bucket, _name(folder)):
            if not one.isdir and _UNFINISHED.fullmatch(one.path.rpartition("/")[2]):
                remove(StorePath(folder.bucket, one.path[1:], folder.settings))


def _put(path: StorePath, content: bytes, patience_s: int, overwrite: bool) -> None:
    """Write a file under a hidden name, and rename it.

    A try that had no answer may go on at any time, and must then put nothing in place of what came later. So
    each try renames only while it is the last one, and a later one removes the hidden files of those before.
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
        _asked(path, ask, patience_s, len(content))
    except FileExistsError:
        raise OtherObjectError from None
    finally:
        tried.append("")  # no try may be done from now on


def _last(client: Client, path: StorePath) -> tuple[bytes, str] | None:
    """The last version; None if there is none."""
    while True:
        try:
            numbers = _versions(client, path)
        except FileNotFoundError:
            return None
        if not numbers:
            return None
        content = _content(client, path / f"{max(numbers):0{_DIGITS}d}")
        if content is not None:  # else another one was made meanwhile
            return content, str(max(numbers))


def _versions(client: Client, path: StorePath) -> list[int]:
    names = (one.path.rpartition("/")[2] for one in client.list_status(_name(path)))
    return [int(name) for name in names if name.isdigit()]


def _content(client: Client, path: StorePath) -> bytes | None:
    try:
        return client.read(_name(path)).read()
    except FileNotFoundError:
        return None


def _name(path: StorePath) -> str:
    return f"/{path.key}"


def _asked(
    path: StorePath, ask: Callable[[Client], _T], patience_s: int = WHILE_RUNNING_S, size: int = 0
) -> _T:
    return asked(str(path), path.bucket, ask, patience_s, size)
