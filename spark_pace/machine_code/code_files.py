"""What machine code is made of, and the files that keep it.

What is made is kept in the first of these folders that can be written to: the one that `NUMBA_CACHE_DIR`
names, `shipped` beside this module, the user's cache directory. A wheel brings `shipped`, with code for the
machines that `spark_pace.machine_code.memory` names. The name of a file has a digest of what its code is made
of and of what makes it. So files of several versions can share a folder, and none is ever removed.

What the code of a function depends on are the functions that it calls, and what these name.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from pkgutil import get_data
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType, ModuleType
from typing import Any

MARK = "__machine_code__"  # the attribute of functions that machine code calls: how it does
_SOURCE = "__source__"  # the attribute that has the digest of their modules' sources


def mark(function: Any, how: str) -> None:
    """Mark a function that machine code may call.

    Its source is read now, while its module is imported: later there might be that of another version.
    """
    module = function.__globals__
    setattr(function, MARK, how)
    setattr(function, _SOURCE, _digest(module["__loader__"], module["__file__"]))


def parts_of(function: Any) -> list[Any]:
    """A function, and all that it calls, straight or not, and that machine code may call.

    Only functions that are named as globals are found: those of a module (``module.function``), of a closure,
    or in a table are not.
    """
    found = [function]
    for one in found:
        for value in _named(one):
            if isinstance(value, FunctionType) and hasattr(value, MARK) and value not in found:
                found.append(value)
    return found


def dependencies(function: Any) -> Iterator[object]:
    """All that the machine code of a function depends on, in words that are the same for every Python.

    These are the sources of the modules of its parts, and what the parts name of other modules.
    """
    parts = parts_of(function)
    yield from dict.fromkeys(getattr(one, _SOURCE) for one in parts)
    for one in parts:
        names = sorted(_names(one.__code__))
        for name in names:
            value = one.__globals__.get(name)
            if isinstance(value, ModuleType):
                yield (
                    name,
                    [(inner, vars(value)[inner]) for inner in names if _is_number(vars(value).get(inner))],
                )
            elif _is_number(value) or isinstance(value, tuple):
                yield name, value
            elif isinstance(value, type):
                yield name, getattr(value, "_fields", ())


@cache
def _digest(loader: Any, path: str) -> str:
    """The digest of a module's source, which may be in an archive, compiled or not."""
    return hashlib.sha256(loader.get_data(path.removesuffix("c"))).hexdigest()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _named(function: Any) -> list[Any]:
    names = sorted(_names(function.__code__))
    return [function.__globals__[name] for name in names if name in function.__globals__]


def _names(code: CodeType) -> set[str]:
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


_MAKERS = ("compiler", "memory")  # they decide what machine code is like
# read from an archive as well, and now: later there might be those of another version
_MADE_BY = [get_data(__package__, f"{module}.py") for module in _MAKERS]
_DIGEST_BYTES = 32
_SHIPPED = "shipped"
_READABLE, _OPEN_TO_READERS = 0o644, 0o755  # others run what root has set up
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)  # for a writer, where there is a pipe in place of a file


def kept_code(name: str) -> bytes | None:
    """The machine code that is kept, or was shipped, under a name; None if there is none that may be run."""
    for path in _places(name):
        with suppress(OSError):
            if (code := _whole(name, _read(path))) is not None:
                return code
    if not os.path.exists(__file__):  # the package is in an archive, and this is a part of it
        with suppress(OSError):
            return _whole(name, get_data(__package__, f"{_SHIPPED}/{name}") or b"")
    return None


def keep(name: str, code: bytes) -> bool:
    """Keep machine code under a name; False if there is no place for it."""
    for path in _places(name):
        with suppress(OSError):
            write(path, name, code)
            if _read(path):
                return True
    return False


def write(path: Path, name: str, code: bytes) -> None:
    """Write machine code to a file; others never see a part of it.

    Raises:
        OSError: that cannot be done.
    """
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(_OPEN_TO_READERS, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.write(_checksum(name, code) + code)
            file.close()
            os.chmod(file.name, _READABLE)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def digest(told: object) -> str:
    """A text that differs where code must: by what is told of the code, and what makes it."""
    return hashlib.sha256(repr((told, _MADE_BY)).encode()).hexdigest()[:_DIGEST_BYTES]


def _whole(name: str, kept: bytes) -> bytes | None:
    checksum, code = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
    return code if checksum == _checksum(name, code) else None


def _checksum(name: str, code: bytes) -> bytes:
    """A checksum that does not fit under another name."""
    return hashlib.sha256(name.encode() + code).digest()


def _read(path: Path) -> bytes:
    """What is in a file, if this process may run it; nothing if somebody else may have put it there.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _WITHOUT_WAITING)) as file:
        found = os.fstat(file.fileno())
        looked_at = [found, *(os.stat(folder) for folder in (path.parent, path.parent.parent))]
        return file.read() if stat.S_ISREG(found.st_mode) and _are_ours(path, looked_at) else b""


def _are_ours(path: Path, looked_at: list[os.stat_result]) -> bool:
    """Whether this user and root alone can have written it; beside this module, who may write that too."""
    users, others = {0, getattr(os, "geteuid", int)()}, stat.S_IWGRP | stat.S_IWOTH
    if (beside := Path(__file__).parent) in path.parents:
        users.add(os.stat(beside).st_uid)
        others = stat.S_IWOTH
    return all(one.st_uid in users and not one.st_mode & others for one in looked_at)


def _places(name: str) -> Iterator[Path]:
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(folder, name)
    yield Path(__file__).parent / _SHIPPED / name
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):  # not for a user without a home
        yield Path(caches, "spark_pace", name)
