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
from spark_pace.spark.checkpoint.file_access import write_json
from spark_pace.spark.stages.rule_history import RuleHistory
from tests.spark.jobs import in_core, job, make_job, matches, random_events, write_files
from tests.support.both_places import Kept

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def cut(path: Path) -> None:
    """As a file system leaves a file that it had no time to write."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def manifest(checkpoint: Path) -> Path:
    """The file of the manifest, in a store its first part."""
    path = checkpoint / "manifest.jsonl"
    return min(path.iterdir()) if path.is_dir() else path


def state_files(checkpoint: Path) -> list[Path]:
    return sorted(
        path
        for path in (checkpoint / "state").rglob("*")
        if path.is_file() and path.suffix in (".changelog", ".zip")
    )


def without_tables(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint.parent / "out")


def without_the_last_batch(checkpoint: Path) -> None:
    """As an older copy of the checkpoint would be."""
    for path in ("offsets/2", "claims/2", "commits/2"):
        (checkpoint / path).unlink(missing_ok=True)


def spoil_state(checkpoint: Path) -> None:
    for path in state_files(checkpoint):
        cut(path)


def lose(pattern: str) -> Callable[[Path], None]:
    """Remove the last of some files of the tables."""
    return lambda checkpoint: max(
        (checkpoint.parent / "out").glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path.name)
    ).unlink()


def change(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Change a digit of a file, which no checksum of the file system guards."""

    def changed(checkpoint: Path) -> None:
        path = checkpoint / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    return changed


def versions(out: Path) -> dict[str, int]:
    """Of the tables: each append makes a new one, and an empty table has version 0."""
    paths = [f"{out}/{name}" for name in ("matches", "late", "quarantine", "metrics")]
    return {path: DeltaTable(path).version() if DeltaTable.is_deltatable(path) else 0 for path in paths}


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "layout cut": (
        lambda c: cut(c / "layout.json"),
        r"layout\.json — must be as this program wrote it; got damaged text",
    ),
    "numbers cut": (
        lambda c: cut(c / "sequence" / "3.json"),
        r"sequence/3\.json — must be as this program wrote it; got damaged text",
    ),
    "numbers spoilt": (
        lambda c: write_json(c / "sequence" / "3.json", {}),
        r"sequence/3\.json — must hold out_seq and frontier_us; got \{\}",
    ),
    "numbers missing": (
        lambda c: (c / "sequence" / "3.json").unlink(),
        r"sequence — must hold the numbers that batch 3 goes on from; got no 3\.json",
    ),
    "manifest spoilt": (
        lambda c: manifest(c).write_text("x\ny\n"),
        r"manifest\.jsonl:1 — must be the name of a file, in quotes, with a checksum",
    ),
    "manifest lost": (
        lambda c: manifest(c).unlink(),
        r"manifest\.jsonl — must know of 3 files read; got 0",
    ),
    "last offsets missing": (
        lambda c: (c / "offsets" / "2").unlink(),
        r"must know the offsets of each batch .* got offsets up to batch 1, done up to 2",
    ),
    "other offsets missing": (
        lambda c: (c / "offsets" / "1").unlink(),
        r"offsets — must have a file for each batch; got none for batch 1",
    ),
    "offsets cut": (
        lambda c: cut(c / "offsets" / "2"),
        r"offsets/2 — must be as Spark wrote it; got damaged text",
    ),
    "commit cut": (
        lambda c: cut(c / "commits" / "2"),
        r"commits/2 — must be as Spark wrote it; got another content",
    ),
    "a byte of a commit changed": (
        change("commits/2", "Watermark", "Vatermark"),
        r"commits/2 — must be as Spark wrote it; got another content",
    ),
    "the version of a commit changed": (
        change("commits/2", "v1", "f1"),
        r"commits/2 — must be as Spark wrote it; got another content",
    ),
    "a brace of a commit lost": (
        change("commits/2", "{", "["),
        r"commits/2 — must be as Spark wrote it; got another content",
    ),
    "a quote of the query's name changed": (
        change("metadata", '"id"', "'id\""),
        r"checkpoint/metadata — must be as Spark wrote it; got another content",
    ),
    "the query's name spoilt": (
        change("metadata", "-", "("),
        r"checkpoint/metadata — must be as Spark wrote it; got another content",
    ),
    "the query's name lost": (
        lambda c: (c / "metadata").unlink(),
        r"checkpoint/metadata — must be there where batches are; got no file\. Restore the whole",
    ),
    "older than its tables": (
        without_the_last_batch,
        r"must be as old as its tables; got batch 1 here, batch 2 as the last of metrics there",
    ),
    "without its tables": (
        without_tables,
        r"must be as old as its tables; got batch 2 here, no batch in metrics there",
    ),
    "without its matches": (
        lambda c: shutil.rmtree(c.parent / "out" / "matches"),
        r"checkpoint — must have all its tables; got none named matches",
    ),
    "without its late events": (
        lambda c: shutil.rmtree(c.parent / "out" / "late"),
        r"must have all its tables; got none named late",
    ),
    "a table's last entry lost": (
        lose("matches/_delta_log/*.json"),
        r"got batch 2 as the last of matches here, batch 1 there",
    ),
    "a table's file lost": (
        lose("matches/*.parquet"),
        r"out/matches — must have all its files as they were written; got none or another part-",
    ),
    "checkpoint gone": (
        shutil.rmtree,
        r"out/matches — must be written by this checkpoint alone; got rows that another one has written",
    ),
    "numbers changed": (
        change("sequence/3.json", '"out_seq": {"keyed": ', '"out_seq": {"keyed": 1'),
        r"sequence/3\.json — .* got another content than its",
    ),
    "manifest changed": (
        lambda c: change(str(manifest(c).relative_to(c)), "001.json", "007.json")(c),
        r"manifest\.jsonl:2 — must have the checksum of the names up to it",
    ),
    "layout changed": (
        change("layout.json", '"buckets": 2', '"buckets": 3'),
        r"layout\.json — must be as this program wrote it; got another content",
    ),
    "source changed": (
        change("source.json", "files", "filez"),
        r"source\.json — must be as this program wrote it; got another content",
    ),
    "source lost": (
        lambda c: (c / "source.json").unlink(),
        r"source\.json — must be there where batches are",
    ),
    "source emptied": (
        lambda c: write_json(c / "source.json", {}),
        r"source\.json — must be as this program wrote it; got another kind of source, \{\}",
    ),
    "source without its checksum": (
        lambda c: (c / "source.json").write_text('{"kind": "files"}'),
        r"source\.json — must be as this program wrote it; got another content than its checksum is of",
    ),
    "offsets of another kind": (
        change("offsets/2", '"entries": 3', '"entriez": 3'),
        r"offsets — must be as Spark wrote it; got other offsets than of files",
    ),
    "without its quarantine": (
        lambda c: shutil.rmtree(c.parent / "out" / "quarantine"),
        r"must have all its tables; got none named quarantine",
    ),
    "offsets changed": (
        change("offsets/2", '"entries": 3', '"entries": 2'),
        r"offsets/2 — must be as Spark wrote it; got another content",
    ),
    "state cut": (spoil_state, r"state/0/\d/\d\.changelog — must be as Spark wrote it; got another content"),
    "state missing": (lambda c: shutil.rmtree(c / "state"), r"state — must be as Spark wrote it; got"),
}


OF_STORES: dict[str, tuple[Callable[[Path], None], str]] = {
    "claim cut": (
        lambda c: cut(c / "claims" / "2"),
        r"claims/2 — must be the note that Spark had of this batch; got another content",
    ),
    "lock cut": (lambda c: cut(c / ".lock"), r"\.lock — must say who uses the checkpoint; got other text"),
    "state cut": (spoil_state, r"state — must be as Spark wrote it; got"),
}
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
