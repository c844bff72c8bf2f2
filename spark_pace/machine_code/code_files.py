"""The files that keep machine code.

They are in the folder that `NUMBA_CACHE_DIR` names, beside the package, or in the user's cache directory. The
name of a file has a digest of what its code is made of, and of the processor that it is made for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal, TypeAlias

State: TypeAlias = Literal["kept", "made by each process", "not made"]

_DIGEST_BYTES = 32
_READABLE = 0o644  # others run what one user has set up


def state() -> State:
    """What becomes of machine code on this machine."""
    if find_spec("numba") is None or find_spec("llvmlite") is None:
        return "not made"
    return "kept" if any(_is_writable(path.parent) for path in _places("code")) else "made by each process"


def kept_code(name: str) -> bytes | None:
    """The machine code that is kept under a name."""
    for path in _places(name):
        with suppress(OSError):
            kept = path.read_bytes()
            told, code = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
            if hashlib.sha256(code).digest() == told:
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
    """What code is told apart by: what is told of it, numba's version, and the processor."""
    from llvmlite import binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    here = (version("numba"), llvm.get_default_triple(), llvm.get_host_cpu_name(), features)
    return hashlib.sha256(repr((told, here)).encode()).hexdigest()[:_DIGEST_BYTES]


def _places(name: str) -> Iterator[Path]:
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(folder, name)
    yield Path(__file__).parent / "__pycache__" / name
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):  # not for a user without a home
        yield Path(caches, "spark_pace", name)


def _is_writable(folder: Path) -> bool:
    """Tell whether files can be written into a folder, or into the one in which it would be made."""
    there = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    return there.is_dir() and os.access(there, os.W_OK)
