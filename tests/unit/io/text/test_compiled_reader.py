"""The machine code of the reader of JSON: an archive brings it, and a process that cannot have it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from llvmlite import binding as llvm

import spark_pace
from spark_pace import ways
from spark_pace.io.text.plain_json import CompiledReader
from spark_pace.io.text.scan import NOTHING, scan
from spark_pace.machine_code import code_files
from spark_pace.machine_code.memory import here, read

TOLD = """
import sys
from spark_pace.io.text import plain_json as reader
reader.compiled_reader().load()
print(reader.__file__, reader.compiled_reader().is_ready_for(0), "numba" in sys.modules)
"""


def code() -> dict[str, bytes]:
    """The reader's machine code for this machine, by its name."""
    return scan.codes(tuple(read(argument, []) for argument in NOTHING), [here()])


@pytest.mark.parametrize("place", ["archive", "folder"])
def test_a_package_in_an_archive_brings_code_or_finds_what_a_folder_has_kept(
    tmp_path: Path, place: str
) -> None:
    bare = shutil.ignore_patterns("__pycache__", "shipped")
    copy = shutil.copytree(Path(spark_pace.__file__).parent, tmp_path / "copy" / "spark_pace", ignore=bare)
    folder = copy / "machine_code" / "shipped" if place == "archive" else tmp_path
    for name, made in code().items():
        code_files.write(folder / name, name, made)
    archive = shutil.make_archive(str(tmp_path / "sent"), "zip", copy.parent)
    command = [sys.executable, "-c", TOLD]
    kept = {"PYTHONPATH": archive, "NUMBA_CACHE_DIR": str(tmp_path), "HOME": "/dev/null"}
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **kept}, cwd=tmp_path
    )
    assert answer.stdout.split() == [f"{archive}/spark_pace/io/text/plain_json.py", "True", "False"]


@pytest.fixture
def _asked_anew() -> Iterator[None]:
    """Let what a processor has be asked anew, in the test and after it."""
    here.cache_clear()
    yield
    here.cache_clear()


@pytest.mark.usefixtures("_asked_anew")
def test_a_processor_that_llvm_does_not_know_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise RuntimeError("failed to get host cpu features.")

    monkeypatch.setattr(llvm, "get_host_cpu_features", unknown)
    monkeypatch.setattr(ways, "WORTH_LOADING_BYTES", 0)
    monkeypatch.setattr(scan, "runs", {})
    monkeypatch.setattr(scan, "failure", None)
    reader = CompiledReader()
    assert [reader.is_ready_for(1), reader.is_ready_for(1)] == [False, False]


def test_other_users_read_what_one_has_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert code_files.keep("kind/code.o", b"code")
    assert code_files.kept_code("kind/code.o") == b"code"
    assert stat.S_IMODE((tmp_path / "kind" / "code.o").stat().st_mode) == 0o644
