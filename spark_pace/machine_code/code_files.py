"""The files that keep machine code.

They are in the first of these folders that can be written to: the one that `NUMBA_CACHE_DIR` names,
`__pycache__` beside this module, the user's cache directory. The name of a file has a digest of what its code
is made of, of what makes it, and of the processor that it is made for. So files of several versions can
share a folder, and none is ever removed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from pkgutil import get_data
from tempfile import NamedTemporaryFile

_MAKERS = ("compiler", "layout", "memory")  # the modules that decide what machine code is like
_DIGEST_BYTES = 32
_READABLE = 0o644  # others run what one user has set up


def kept_code(name: str) -> bytes | None:
    """The machine code that is kept under a name; None if there is none."""
    for path in _places(name):
        with suppress(OSError):
            kept = path.read_bytes()
            checksum, code = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
            if hashlib.sha256(code).digest() == checksum:
                return code
    return None


def made_code(name: str, make: Callable[[], bytes]) -> bytes:
    """Machine code, made now and kept under a name if there is a place for it."""
    code = make()
    for path in _places(name):
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
                try:
                    file.write(hashlib.sha256(code).digest() + code)
                    file.close()
                    os.chmod(file.name, _READABLE)
                    os.replace(file.name, path)
                except BaseException:
                    os.unlink(file.name)
                    raise
            break
    return code


def digest(told: object) -> str:
    """A text that differs where code must: by what is told of the code, what makes it, and the processor."""
    return hashlib.sha256(repr((told, _here())).encode()).hexdigest()[:_DIGEST_BYTES]


@cache
def _here() -> tuple[object, ...]:
    """The versions and sources of what makes machine code, and the processor of this machine."""
    from llvmlite import binding as llvm

    versions = (version("numba"), version("llvmlite"))
    sources = [get_data(__package__, f"{module}.py") for module in _MAKERS]  # from an archive as well
    features = llvm.get_host_cpu_features().flatten()
    return versions, sources, llvm.get_default_triple(), llvm.get_host_cpu_name(), features


def _places(name: str) -> Iterator[Path]:
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(folder, name)
    yield Path(__file__).parent / "__pycache__" / name
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):  # not for a user without a home
        yield Path(caches, "spark_pace", name)
