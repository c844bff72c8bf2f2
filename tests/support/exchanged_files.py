"""A job that is stopped at four stages, and its checkpoint with files in the place of others."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_pace.errors import SparkPaceError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.spark.stages.operators import BatchRows
from spark_pace.ways import SMALL
from tests.spark.jobs import Event, job, random_events, stop_at, table, write_files

RULES = """
events:
  schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT"
  event_time: t
  lookup: {owners: {path: owners.csv, on: k, schema: "owner STRING, least BIGINT", refresh: 1 us}}
rules:
  - name: waits
    pattern: {sequence: [{a: "kind = 'w'"}, {b: "kind = 'v'"}]}
    where: a.x = b.x
    within: 3 h
    emit: {x: a.x}
  - name: keyed
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    within: 1 h
    context: next, selected
    emit: {x: a.x}
  - name: owned
    partition_by: [owners.owner]
    filter: owners is not null
    pattern: {sequence: [a: x >= owners.least, b: x >= owners.least]}
    where: a.k <> b.k
    within: 20 s
    context: next, selected
    emit: {x: b.x, least: b.owners.least}
  - name: door
    partition_by: [k]
    filter: kind <> 'w'
    fold:
      initial: closed
      moves:
        - {from: closed, when: kind = 'a', to: open}
        - {from: open, when: x > prev(x), to: ajar, emit: false}
        - {from: [open, ajar], when: kind = 'b', to: closed}
    emit: {was: state.from, now: state.to, x: x}
  - name: moving
    partition_by: [k]
    filter: kind <> 'w'
    span: {every: 5 s, size: 20 s}
    emit: {n: count(*), total: sum(x)}
  - name: above
    from: [keyed, door]
    pattern: {sequence: [d: rule = 'door', k: rule = 'keyed']}
    within: 1 h
    context: next, selected
    emit: {x: d.x}
"""
ADDED = """
  - name: added
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'c'"}, {b: "kind = 'c'"}]}
    within: 1 h
    context: next, selected
"""
OWNERS = tuple(
    f"k,owner,least\n{rows}\n"
    for rows in ("u,ann,2\nv,bob,6\nw,ann,4", "u,bob,3\nv,bob,1", "u,cyd,1\nv,cyd,1")
)
FILES, SIZE = 5, 60
OLD = (0, 1)  # batches whose files nobody asks for any more, as for those of batch 2
# how far a job has come: two batches; four, under one more rule; a fifth, whose tasks were about to begin; or
# all tables of the fifth but `metrics`
EARLIER, DONE, BEGUN, WRITTEN = STAGES = "earlier", "done", "begun", "written"


def events(seed: int) -> list[list[Event]]:
    """Of each file: some late ones, and in the first more than a state holds."""
    chance = random.Random(seed)
    drawn = random_events(seed, FILES * SIZE)
    behind = [chance.randrange(60) if chance.random() < 1 / 6 else 0 for _ in drawn]
    drawn = [drawn[place] for place in sorted(range(len(drawn)), key=lambda place: place + behind[place])]
    files = [drawn[SIZE * file : SIZE * (file + 1)] for file in range(FILES)]
    files = [[*file, {**file[-1], "kind": "v"}] for file in files]
    waiting: Event = {"t": "2024-01-01T00:00:00", "k": f"of {seed}", "kind": "w"}
    return [[{**waiting, "x": x} for x in range(SMALL + SMALL // 4)] + files[0], *files[1:]]


@dataclass(frozen=True)
class Played:
    """A job, and a copy of its folder for each stage.

    Attributes:
        folder: has these copies.
        seed: of its events.
        first: the number of its first file.
    """

    folder: Path
    seed: int
    first: int

    def play(self) -> Played:
        here = self.folder / "job"
        (here / "in").mkdir(parents=True)
        self.feed(here, 0, 2, 0)
        run_job(self.spec(here, RULES))
        self.keep(here, EARLIER)
        self.feed(here, 2, 4, 1)
        run_job(self.spec(here))
        self.keep(here, DONE)
        self.feed(here, 4, 5, 2)
        for stage in (BEGUN, WRITTEN):
            with (
                pytest.MonkeyPatch.context() as patch,
                pytest.raises(SparkPaceError, match="the disk is full"),
            ):
                if stage == BEGUN:
                    patch.setattr(BatchRows, "collect", full)
                stop_at(patch, "metrics", batch_id=4)
                run_job(self.spec(here))
            self.keep(here, stage)
        return self

    def feed(self, here: Path, first: int, end: int, owners: int) -> None:
        """Write some files, and let the table hold something else."""
        for number, file in enumerate(events(self.seed)[first:end], self.first + first):
            write_files(here, file, 1, first=number)
        self.change(here, owners)

    def change(self, here: Path, owners: int) -> None:
        """Let the table that is joined hold something else, which no other job's does."""
        (here / "owners.csv").write_text(f"{OWNERS[owners]}nobody {self.seed},zoe,9\n")

    def spec(self, here: Path, rules: str = RULES + ADDED, **options: Any) -> JobSpec:
        return job(here, rules=rules, events="delay: 5 s", **{"finish": False, **options})

    def keep(self, here: Path, stage: str) -> None:
        shutil.copytree(here, self.folder / stage)

    def ended(self, here: Path, stage: str) -> dict[str, list[str]]:
        """The rows once all is read; a batch that has begun joins what the table held then."""
        if stage == DONE:
            self.feed(here, 4, 5, 2)
        else:
            self.change(here, 0)
        spec = self.spec(here, finish=True)
        run_job(spec)
        return {name: sorted(map(repr, table(spec, name).to_pylist())) for name in ("matches", "late")}


def full(*_: object) -> None:
    raise OSError("the disk is full")


@dataclass(frozen=True)
class Exchange:
    """Files of a checkpoint, and what is put in the place of each.

    Attributes:
        name: the first of these files, without the batch's number or a checksum of its content.
        number: the batch's number; None: it has none.
        by: which other file is put there.
        files: the place of each file, and what is put there.
    """

    name: str
    number: int | None
    by: str
    files: tuple[tuple[Path, Path], ...]

    def make(self, checkpoint: Path, in_copy: Path, *, fitting: bool) -> None:
        for place, other in self.files:
            target = in_copy / place.relative_to(checkpoint)
            target.write_bytes(other.read_bytes())
            crc_of(target).unlink(missing_ok=True)
            if fitting:
                shutil.copy(crc_of(other), crc_of(target))


def crc_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def exchanges(checkpoint: Path, earlier: Path, of_other_job: Path) -> Iterator[Exchange]:
    """All exchanges for the files of a checkpoint, but those of equal content and those of `OLD` batches."""
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file() and path.suffix != ".crc":
            name, number, others = others_of(path, checkpoint, earlier, of_other_job)
            if number in OLD:
                continue
            for by, files in others.items():
                if all(other.is_file() and other.read_bytes() != file.read_bytes() for file, other in files):
                    yield Exchange(name, number, by, files)


Others = dict[str, tuple[tuple[Path, Path], ...]]


def others_of(path: Path, checkpoint: Path, *roots: Path) -> tuple[str, int | None, Others]:
    """The name of a file, the number of its batch, and what may be put in its place, as in `Exchange`."""
    place, found = path.relative_to(checkpoint), re.fullmatch(r"(\d+)(\D*)", path.name)
    if found is None and place.parts[0] in ("waiting", "lookup"):  # named by its content
        notes = [note for note in path.parent.glob("[0-9].json") if path.name in note.read_text()]
        number = max((int(note.stem) for note in notes), default=None)
        others = {}
        for by, root in zip(("batch", "earlier", "job"), (checkpoint, *roots), strict=True):
            beside = sorted((root / place.parent).glob(f"[!.]*{path.suffix}"))
            different = [file for file in beside if file.suffix == path.suffix and file.name != path.name]
            if different:
                others[by] = ((path, different[0]),)
        return f"{place.parent}/*{path.suffix}", number, others
    others = {by: ((path, root / place),) for by, root in zip(("earlier", "job"), roots, strict=True)}
    if found is None:
        return str(place), None, others
    number, before = int(found[1]), f"{int(found[1]) - 1}{found[2]}"
    others["batch"] = ((path, path.with_name(before)),)
    if place.parts[:3] == ("state", "0", "0"):
        beside = checkpoint / "state" / "0" / "1" / path.name
        others["slot"] = ((path, beside), (beside, path))
        others["batch, both slots"] = (*others["batch"], (beside, beside.with_name(before)))
    return f"{place.parent}/N{found[2]}", number, others
