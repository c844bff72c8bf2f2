"""Compiles the reader of JSON once on a machine, keeps the machine code in a file, and loads it.

Loading numba takes a second, and compiling the reader several. Loading kept code takes a tenth of a second,
because it needs only llvmlite. A process loads it once it has read enough for this to pay; Spark's workers
are forked from a process that has loaded it. The code is kept in the folder that `NUMBA_CACHE_DIR` names,
beside the package, or in the user's cache directory. If none can be written to, pyarrow reads everything.

``python -m spark_pace.cli.kernels`` compiles the reader ahead of time.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from pkgutil import get_data
from tempfile import NamedTemporaryFile
from typing import Any

from spark_pace import ways

_SOURCES = ("blocks", "scan_values", "scan")
_NAME = "scan"
_OPTIMISE = 3
_DIGEST_BYTES = 32

Scan = Callable[[int, int, int, int], int]  # `spark_pace.io.text.scan.scan`; arguments are addresses


class CompiledReader:
    """The compiled reader of a process, loaded once it pays."""

    def __init__(self) -> None:
        """Start without the reader."""
        self._read_bytes = 0
        self._may_load = True
        self._may_compile = True
        self._scan: Scan | None = None
        self._engine: object = None

    def scan_for(self, size: int) -> Scan | None:
        """The compiled reader, to read `size` bytes more; None while loading it does not pay."""
        self._read_bytes += size
        if ways.is_loaded(self._read_bytes):
            self.load()
        return self._scan

    def load(self) -> None:
        """Load the compiled reader now, for this process and processes forked from it."""
        if self._scan is not None or not self._may_load:
            return
        try:
            self._load()
        except Exception:  # made for another processor or LLVM: pyarrow reads everything
            self._may_load = False

    def _load(self) -> None:
        code = kept_code()
        if code is None and self._may_compile and ways.is_worth_compiling(self._read_bytes):
            self._may_compile, code = False, compiled_code()
        if code is not None:
            self._engine, self._scan = _loaded(code)


@cache
def compiled_reader() -> CompiledReader:
    """The compiled reader of this process."""
    return CompiledReader()


def kept_code() -> bytes | None:
    """The kept machine code for this version and this processor; None if there is none."""
    for path in _places():
        with suppress(OSError):
            kept = path.read_bytes()
            digest, code = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
            if hashlib.sha256(code).digest() == digest:
                return code
    return None


def compiled_code() -> bytes | None:
    """Compile the reader, keep its machine code and return it; None if there is no place to keep it."""
    for path in _places():
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
                try:
                    code = _machine_code()
                    file.write(hashlib.sha256(code).digest() + code)
                    file.close()
                    os.replace(file.name, path)
                except BaseException:
                    os.unlink(file.name)
                    raise
            return code
    return None


def _places() -> Iterator[Path]:
    """The files in which the code may be kept; their name depends on version and processor."""
    name = f"{_NAME}-{_version()}.o"
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(folder, name)
    yield Path(__file__).parent / "__pycache__" / name
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):  # not for a user without a home
        yield Path(caches, "spark_pace", name)


@cache
def _version() -> str:
    from llvmlite import binding as llvm

    told = [
        version("numba"),
        llvm.get_default_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    ]
    told += [str(get_data(__package__, f"{module}.py")) for module in _SOURCES]  # from an archive as well
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def _machine() -> Any:
    """LLVM's target machine: the processor of this machine."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=_OPTIMISE,
        codemodel="jitdefault",
    )


def _machine_code() -> bytes:
    from llvmlite import binding as llvm

    from spark_pace.io.text.scan import scan_compiled

    module = llvm.parse_assembly(scan_compiled.inspect_llvm())
    module.get_function(scan_compiled.native_name).name = _NAME
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    assert not outside, outside  # loading code with missing functions would end the process
    code: bytes = _machine().emit_object(module)
    return code


def _loaded(code: bytes) -> tuple[object, Scan]:
    """Load machine code; return the object that owns its memory, and the function."""
    from llvmlite import binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
    return engine, function(engine.get_function_address(_NAME))
