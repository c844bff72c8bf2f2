"""Where the machine code of the compiled reader of JSON is kept, and a process that cannot have it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding as llvm

import spark_pace
from spark_pace import ways
from spark_pace.io.text import compiled_reader as kept

TOLD = "from spark_pace.io.text import compiled_reader as kept; print(kept.__file__); print(kept._version())"


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
    assert told == [f"{archive}/spark_pace/io/text/compiled_reader.py", kept._version()]


def test_a_processor_that_llvm_does_not_know_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise RuntimeError("failed to get host cpu features.")

    monkeypatch.setattr(llvm, "get_host_cpu_features", unknown)
    monkeypatch.setattr(ways, "WORTH_LOADING_BYTES", 0)
    kept._version.cache_clear()
    reader = kept.CompiledReader()
    assert [reader.scan_for(1), reader.scan_for(1)] == [None, None]


def test_a_user_without_a_home_has_no_cache_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 123_456_789)
    assert [path.parent.name for path in kept._places()] == ["__pycache__"]
