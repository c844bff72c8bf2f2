"""Where the machine code of the compiled reader of JSON is kept, and a process that cannot have it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding as llvm

import spark_pace
from spark_pace import ways
from spark_pace.io.text import compiled_reader as kept
from spark_pace.machine_code import code_files

TOLD = "from spark_pace.io.text import compiled_reader as kept; print(kept.__file__); print(kept.name())"


def test_a_package_in_an_archive_finds_the_code_that_a_folder_has_kept(tmp_path: Path) -> None:
    package = Path(spark_pace.__file__).parent
    copy = shutil.copytree(
        package, tmp_path / "copy" / "spark_pace", ignore=shutil.ignore_patterns("__pycache__")
    )
    archive = shutil.make_archive(str(tmp_path / "sent"), "zip", copy.parent)
    command = [sys.executable, "-c", TOLD]
    environment = {**os.environ, "PYTHONPATH": archive}
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    told = answer.stdout.split()
    assert told == [f"{archive}/spark_pace/io/text/compiled_reader.py", kept.name()]


def test_a_processor_that_llvm_does_not_know_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise RuntimeError("failed to get host cpu features.")

    monkeypatch.setattr(llvm, "get_host_cpu_features", unknown)
    monkeypatch.setattr(ways, "WORTH_LOADING_BYTES", 0)
    kept.name.cache_clear()
    code_files._here.cache_clear()
    reader = kept.CompiledReader()
    assert [reader.scan_for(1), reader.scan_for(1)] == [None, None]


def test_other_users_read_what_one_has_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept, "_machine_code", lambda: b"code")
    assert kept.compiled_code() == kept.kept_code() == b"code"
    (path,) = tmp_path.iterdir()
    assert (path.name, stat.S_IMODE(path.stat().st_mode)) == (kept.name(), 0o644)
