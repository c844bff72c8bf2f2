"""Checkpoints that lost or spoilt a part: refused in one line that names it, never gone on with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from examples.cluster.store_server import StoreServer
from spark_pace.errors import SparkPaceError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.spark.stages.merger import RuleHistory
from tests.spark.jobs import in_core, job, make_job, matches, random_events, write_files
from tests.support.both_places import Kept
from tests.support.damages import DAMAGES, OF_STORES

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def versions(out: Path) -> dict[str, int]:
    """Of the tables: each append makes a new one, and an empty table has version 0."""
    paths = [f"{out}/{name}" for name in ("matches", "late", "quarantine", "metrics")]
    return {path: DeltaTable(path).version() if DeltaTable.is_deltatable(path) else 0 for path in paths}


MENDED = (  # in a store, by their claims
    *("offsets cut", "offsets changed", "offsets of another kind"),
    *("last offsets missing", "other offsets missing"),
)
REFUSED = [
    *(pytest.param("folder", *damage, id=name) for name, damage in DAMAGES.items()),
    *(
        pytest.param("store", *damage, id=f"{name}, in a store", marks=pytest.mark.stores)
        for name, damage in {**DAMAGES, **OF_STORES}.items()
        if name not in MENDED
    ),
]


def first_run(kept: Kept, folder: Path) -> tuple[Kept, Path]:
    """A job in a folder with three batches done and one to do."""
    spec = kept.for_job(make_job(folder, finish=False))
    events = random_events(30)
    write_files(folder, events[:150], 3)
    run_job(spec)
    write_files(folder, events[150:], 1, first=3)
    return kept, folder


@pytest.fixture(scope="module")
def in_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kept, Path]:
    folder = tmp_path_factory.mktemp("job")
    return first_run(Kept(folder), folder)


@pytest.fixture(scope="module")
def in_store(tmp_path_factory: pytest.TempPathFactory, reached_store: StoreServer) -> tuple[Kept, Path]:
    return first_run(Kept.in_store(reached_store, "first-run"), tmp_path_factory.mktemp("job"))


@pytest.fixture
def half_done(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[JobSpec, Path]:
    """A copy of that job, and the folder that has its checkpoint and its tables."""
    kept, folder = request.getfixturevalue(f"in_{request.param}")
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    copy = kept.copied(tmp_path)
    return copy.for_job(make_job(tmp_path, finish=False)), copy.files


@pytest.mark.parametrize(("half_done", "damage", "message"), REFUSED, indirect=["half_done"])
def test_a_damaged_checkpoint_is_refused_in_one_line(
    half_done: tuple[JobSpec, Path], damage: Callable[[Path], None], message: str
) -> None:
    spec, files = half_done
    damage(files / "checkpoint")
    before = versions(files / "out")
    with pytest.raises(SparkPaceError, match=message) as caught:
        run_job(spec)
    assert "\n" not in str(caught.value)
    assert versions(files / "out") == before


@pytest.mark.parametrize("half_done", ["folder"], indirect=True)
def test_a_checkpoint_that_is_whole_goes_on(half_done: tuple[JobSpec, Path]) -> None:
    spec, _ = half_done
    run_job(replace(spec, finish=True))
    assert matches(spec) == in_core(spec).matches.to_pylist() != []


@pytest.mark.stores
@pytest.mark.parametrize("half_done", ["store"], indirect=True)
@pytest.mark.parametrize("name", ["offsets of another kind", "other offsets missing"])
def test_a_damaged_note_of_sparks_is_mended_by_its_claim_in_a_store(
    half_done: tuple[JobSpec, Path], name: str
) -> None:
    spec, files = half_done
    damage, _ = DAMAGES[name]
    damage(files / "checkpoint")
    run_job(replace(spec, finish=True))
    assert matches(spec) == in_core(spec).matches.to_pylist() != []


def test_a_first_start_that_ended_while_it_wrote_the_first_offsets_is_gone_over(tmp_path: Path) -> None:
    """As a kill or a full disk leaves it: Spark's temporary file, and no offset."""
    spec = job(tmp_path)
    write_files(tmp_path, random_events(30), 1)
    offsets = Path(spec.checkpoint_path) / "offsets"
    offsets.mkdir(parents=True)
    for name in (
        ".0.2ac23ba5-21e0-48b5-a5d3-ac6a5e54a1bf.tmp",
        "..0.2ac23ba5-21e0-48b5-a5d3-ac6a5e54a1bf.tmp.crc",
    ):
        (offsets / name).write_text('v1\n{"batchWater')
    run_job(spec)
    assert matches(spec) == in_core(spec).matches.to_pylist() != []


def test_a_table_that_is_lost_while_the_job_runs_is_named(tmp_path: Path) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(18, 40), 1)
    lost = f"{spec.sink_path}/metrics"
    path = re.escape(lost)

    def lose(*_: object) -> None:
        shutil.rmtree(f"{lost}/_delta_log")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RuleHistory, "append", lose)
        with pytest.raises(SparkPaceError, match=f"^{path} — must be a table that can be written to; got "):
            run_job(spec)
