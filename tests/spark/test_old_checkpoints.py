"""A checkpoint that an earlier build made goes on if its format version is today's; another is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.core import local_run
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.event_files import read_events
from spark_pace.io.files.files import read_json, write_json
from spark_pace.io.side_tables import read_side_tables, with_side_tables
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.layout import FORMAT_VERSION
from tests.spark.jobs import Event, matches, table
from tests.support.checkpoints import (
    FILES,
    FOLDER,
    RULES_OF,
    SIZE,
    VERSION,
    change_table,
    write_input,
)
from tests.support.commands import message_of, spark_pace

pytestmark = pytest.mark.spark


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The job file of the first kept checkpoint, copied with all that belongs to it."""
    return copied(tmp_path, VERSION)


def copied(folder: Path, name: str) -> Path:
    """The job file of a kept checkpoint, copied with all that belongs to it."""
    shutil.copytree(FOLDER / name, folder, dirs_exist_ok=True)
    return folder / "job.yaml"


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the locks that every start makes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".lock")
    }


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", sorted(RULES_OF))
def test_a_kept_checkpoint_goes_on_as_if_it_had_never_stopped(tmp_path: Path, name: str) -> None:
    spec = replace(read_job(copied(tmp_path, name)), finish=True)
    early = matches(spec)
    write_input(tmp_path, FILES // 2, FILES)
    change_table(tmp_path, 1)
    assert run_job(spec).batches == FILES - FILES // 2
    found, expected = matches(spec), undisturbed(tmp_path, spec)
    written, kept = set(map(place, early)), early[0].keys()  # later columns of the table are null there
    assert [{name: row[name] for name in kept} for row in found if place(row) in written] == early
    assert [row for row in found if place(row) not in written] == [
        row for row in expected if place(row) not in written
    ]
    # the last digit of what an older build has written may be another one
    assert [rounded({name: row[name] for name in kept}) for row in found] == [
        rounded({name: row[name] for name in kept}) for row in expected
    ]
    assert table(spec, "metrics")["records"].to_pylist().count(SIZE) == FILES
    assert {row["rule"] for row in expected} == {rule.name for rule in spec.rules}


def place(row: Event) -> tuple[str, int]:
    return row["rule"], row["out_seq"]


def rounded(row: Event) -> Event:
    return {
        name: float(f"{value:.13g}") if isinstance(value, float) else value for name, value in row.items()
    }


def undisturbed(folder: Path, spec: JobSpec) -> list[Event]:
    """What the core finds, a file in each batch, while the table changes as it did."""
    batches, schema = [], spec.events.schema
    for number, path in enumerate(sorted((folder / "in").glob("*.json"))):
        change_table(folder, number // (FILES // 2))
        read = read_events(str(path), "json", schema.own, path.name)
        batches.append(with_side_tables(read, schema, read_side_tables(schema)).events)
    return local_run.run(build_plan(spec.rules, order=spec.events.order), batches).matches.to_pylist()  # type: ignore[no-any-return]


def test_the_kept_checkpoints_are_small() -> None:
    sizes = {name: sum(map(len, files_of(FOLDER / name).values())) for name in RULES_OF}
    assert max(sizes.values()) < 200_000


@pytest.mark.parametrize("version", [1, FORMAT_VERSION - 1])
def test_a_checkpoint_of_an_older_version_is_refused_in_one_line_and_left_as_it_is(
    tmp_path: Path, job: Path, version: int
) -> None:
    """The first builds wrote no checksums, and no file of what the source is."""
    layout = tmp_path / "checkpoint" / "layout.json"
    older = (read_json(layout) or {}) | {"version": version}
    if version == 1:
        layout.write_text(json.dumps(older))
        (tmp_path / "checkpoint" / "source.json").unlink()
    else:
        write_json(layout, older)
    before = files_of(tmp_path)
    answer = spark_pace("run", job)
    assert message_of(answer.stderr) == (
        f"{layout} — must have format version {FORMAT_VERSION}; got {version}. "
        "Go on with the release that made it, or start a new checkpoint with a sink of its own.\n"
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert files_of(tmp_path) == before
