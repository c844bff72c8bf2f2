"""Compiles the reader of JSON once on a machine, keeps the machine code in a file, and loads it.

Loading numba takes a second, and compiling the reader several. Loading kept code takes a tenth of a second,
because it needs only llvmlite. A process loads it once it has read enough for this to pay; Spark's workers
are forked from a process that has loaded it. `spark_pace.machine_code.code_files` says where code is kept. If
that is nowhere, each process that reads very much compiles the reader.

``python -m spark_pace.cli.kernels`` compiles the reader ahead of time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pkgutil import get_data

from spark_pace import ways
from spark_pace.machine_code import code_files
from spark_pace.machine_code.memory import in_memory, machine

_SOURCES = ("blocks", "scan_values", "scan", "compiled_reader")
_ENTRY = "scan"  # the name of the function that is called

Scan = Callable[[int, int, int, int], int]  # `spark_pace.io.text.scan.scan`; arguments are addresses


class CompiledReader:
    """The compiled reader of a process, loaded once it pays."""

    def __init__(self) -> None:
        """Start without the reader."""
        self._read_bytes = 0
        self._may_load = True
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
        except Exception:  # numba or llvmlite is not there, or does not know the processor: pyarrow reads all
            self._may_load = False

    def _load(self) -> None:
        code = kept_code()
        if code is None and ways.is_worth_compiling(self._read_bytes):
            code = compiled_code()
        if code is not None:
            self._engine, self._scan = _loaded(code)


@cache
def compiled_reader() -> CompiledReader:
    """The compiled reader of this process."""
    return CompiledReader()


def kept_code() -> bytes | None:
    """The kept machine code for this version and this processor; None if there is none."""
    return code_files.kept_code(name())


def compiled_code() -> bytes:
    """Compile the reader, keep its machine code if there is a place for it, and return it."""
    return code_files.made_code(name(), _machine_code)


@cache
def name() -> str:
    """The name under which the machine code is kept."""
    sources = [get_data(__package__, f"{module}.py") for module in _SOURCES]  # from an archive as well
    return f"{_ENTRY}-{code_files.digest(sources)}.o"


def _machine_code() -> bytes:
    from llvmlite import binding as llvm

    from spark_pace.io.text.scan import scan_compiled

    module = llvm.parse_assembly(scan_compiled.inspect_llvm())
    module.get_function(scan_compiled.native_name).name = _ENTRY
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    assert not outside, outside  # loading code with missing functions would end the process
    code: bytes = machine().emit_object(module)
    return code


def _loaded(code: bytes) -> tuple[object, Scan]:
    """Load machine code; return the object that owns its memory, and the function."""
    engine = in_memory(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
    return engine, function(engine.get_function_address(_ENTRY))
