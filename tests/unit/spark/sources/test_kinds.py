"""The kinds of source: each is known everywhere, writes nothing when it is asked, and is light to import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from spark_pace.io.event_files import ARCHIVES
from spark_pace.io.files.files import digest
from spark_pace.job_file import FilesSource
from spark_pace.job_file import source as reader
from spark_pace.spark import start
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources import own_sources
from spark_pace.spark.sources.files import FilesInput


def test_every_kind_that_a_job_file_may_name_has_its_input() -> None:
    assert {kind.kind for kind in start._INPUTS.values()} == set(reader.KINDS)


def test_files_weigh_more_if_they_are_packed_in_a_way_that_is_read() -> None:
    weighed = own_sources._PACKED
    assert weighed == (*ARCHIVES, ".parquet")


def test_a_folder_lacks_files_until_one_is_there_that_is_read(tmp_path: Path) -> None:
    source = FilesInput(
        FilesSource("json", str(tmp_path / "in"), None), Checkpoint(tmp_path / "c"), False, "quarantine"
    )
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / ".hidden").touch()
    assert source.lacks_files(cast(Any, None))
    (tmp_path / "in" / "below" / "a.json").touch()
    assert not source.lacks_files(cast(Any, None))


def test_looking_at_files_writes_nothing(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.jsonl"
    first = json.dumps(["a", digest(b"a\n")])
    text = f'{first}\n["b'  # as a crash leaves it
    manifest.write_text(text)
    source = FilesInput(FilesSource("json", str(tmp_path), None), Checkpoint(tmp_path), False, "quarantine")
    start.require_same_source(source)
    assert source.require_readable(cast(Any, None)) == ({}, ())
    assert list(tmp_path.iterdir()) == [manifest]
    assert manifest.read_text() == text


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("own_sources", ("numpy", "pyarrow", "yaml", "sqlglot", "spark_pace.core")),
        ("files", ("yaml", "sqlglot", "deltalake")),
        ("kafka", ("yaml", "sqlglot", "deltalake")),
    ],
)
def test_a_worker_loads_little_for_a_source(module: str, absent: tuple[str, ...]) -> None:
    loaded = f"[name for name in {absent!r} if name in sys.modules]"
    code = f"import spark_pace.spark.sources.{module}, sys; print({loaded})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
