"""What a batch joins is what its own note names, and what an earlier run left under a name is not trusted."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_pace import load_rules
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.stages.side_table_copies import SideTables

RULES = """
events:
  schema: "t TIMESTAMP, k STRING"
  event_time: t
  lookup: {owners: {path: owners.csv, on: k, schema: "owner STRING", refresh: 1 us}}
rules:
  - {name: seen, pattern: {sequence: [a: owners is not null]}}
"""
SESSION: Any = SimpleNamespace(sparkContext=SimpleNamespace(setLocalProperty=lambda name, value: None))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Of a job whose table was another one in batch 0 than in batch 1."""
    (tmp_path / "rules.yaml").write_text(RULES)
    tables = of_run(tmp_path)
    for batch, owner in enumerate(("ann", "bob")):
        (tmp_path / "owners.csv").write_text(f"k,owner\nu,{owner}\n")
        tables.tell(SESSION, batch)
    return tables.checkpoint


def of_run(folder: Path) -> SideTables:
    return SideTables(load_rules(folder / "rules.yaml")[0].schema, Checkpoint(folder / "checkpoint"))


def test_the_note_of_another_batch_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    shutil.copy(checkpoint.side_tables_of(0), checkpoint.side_tables_of(1))
    with pytest.raises(StateError, match=r"lookup/1\.json — .*, or the file of another batch or job"):
        of_run(tmp_path).tell(SESSION, 1)


def test_a_copy_that_an_earlier_run_has_left_is_made_anew(checkpoint: Checkpoint, tmp_path: Path) -> None:
    first, last = sorted(checkpoint.side_tables.glob("*.arrow"), key=lambda path: path.stat().st_mtime_ns)
    whole = last.read_bytes()
    shutil.copy(first, last)
    with pytest.raises(StateError, match=rf"{last.name} — must be as this program wrote it; got another"):
        of_run(tmp_path).tell(SESSION, 1)  # a batch that is done again
    of_run(tmp_path).tell(SESSION, 2)
    assert last.read_bytes() == whole
