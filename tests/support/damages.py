"""What may happen to a checkpoint between two starts, and the one line by which the next start refuses it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from spark_pace.io.files.files import read_json, write_json
from spark_pace.spark.sources.manifest import Manifest


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


def without_crc(path: Path) -> None:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def older_state(checkpoint: Path) -> None:
    """Put the state of the batch before in the place of a slot's last one."""
    path = checkpoint / "state" / "0" / "0" / "3.changelog"
    shutil.copy(path.with_name("2.changelog"), path)
    without_crc(path)


def exchange_slots(checkpoint: Path) -> None:
    """Let each slot have the last state of the other, with its checksum."""
    slots = [checkpoint / "state" / "0" / name for name in ("0", "1")]
    for name in ("3.changelog", ".3.changelog.crc"):
        first, other = (slot / name for slot in slots)
        if first.exists():
            content = first.read_bytes()
            shutil.copy(other, first)
            other.write_bytes(content)


def of_another_job(checkpoint: Path) -> None:
    """As the manifest would be if another job had read files of these names."""
    path, other = manifest(checkpoint), checkpoint.parent / "other"
    Manifest(other, "other").add([json.loads(line)[0] for line in path.read_text().splitlines()])
    shutil.copy(other, path)


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
        without_crc(path)

    return changed


OTHER_STATE = (
    r"state of slot \d — must be that of slot \d behind batch 2 of .*; got that of slot \d behind batch 1 of"
)
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
        r"sequence/3\.json — must hold the numbers that batch 3 goes on from; got no file",
    ),
    "manifest spoilt": (
        lambda c: manifest(c).write_text("x\ny\n"),
        r"manifest\.jsonl:1 — must be the name of a file with the checksum of the names up to it",
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
        r"must be as old as its tables; got batch 1 as the last of metrics here, batch 2 there",
    ),
    "without its tables": (
        without_tables,
        r"must be as old as its tables; got batch 2 as the last of metrics here, batch -1 there",
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
        "out — must be written by this checkpoint alone; got the mark of another one, _owner",
    ),
    "numbers changed": (
        change("sequence/3.json", '"out_seq": {"keyed": ', '"out_seq": {"keyed": 1'),
        r"sequence/3\.json — .* got another content than its",
    ),
    "manifest changed": (
        lambda c: change(str(manifest(c).relative_to(c)), "001.json", "007.json")(c),
        r"manifest\.jsonl:2 — must be the name of a file with the checksum of the names up to it",
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
        r"must belong to a job that reads files; got the checkpoint of one that reads None",
    ),
    "source without its checksum": (
        lambda c: (c / "source.json").write_text('{"kind": "files"}'),
        r"source\.json — must be as this program wrote it; got another content than its checksum is of",
    ),
    "offsets of another kind": (
        change("offsets/2", '"entries": 3', '"entriez": 3'),
        r"offsets/2 — must be as Spark wrote it; got another content",
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
    "state of the batch before": (older_state, OTHER_STATE),
    "states of two slots exchanged": (exchange_slots, OTHER_STATE),
    "numbers of the batch before": (
        lambda c: shutil.copy(c / "sequence" / "2.json", c / "sequence" / "3.json"),
        r"sequence/3\.json — .* got another content than its checksum is of, or the file of another batch",
    ),
    "manifest of another job": (
        of_another_job,
        r"manifest\.jsonl:1 — must be the name of a file with the checksum of the names up to it",
    ),
    "layout from before the batches": (
        lambda c: write_json(c / "layout.json", (read_json(c / "layout.json") or {}) | {"number": 0}),
        r"layout\.json — must be as old as its batches; got number 0, and number 1 in 3\.json",
    ),
}


OF_STORES: dict[str, tuple[Callable[[Path], None], str]] = {
    "claim cut": (
        lambda c: cut(c / "claims" / "2"),
        r"claims/2 — must be the note that Spark had of this batch; got another content",
    ),
    "lock cut": (lambda c: cut(c / ".lock"), r"\.lock — must say who uses the checkpoint; got other text"),
    "state cut": (spoil_state, r"state — must be as Spark wrote it; got"),
}
