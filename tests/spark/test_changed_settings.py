"""Jobs that go on with other settings.

A batch that was not finished is done again as it was planned, the next ones as the job says now.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from spark_pace.core import local_run
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import SparkPaceError
from spark_pace.io.event_files import read_events
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.spark.jobs import JOB, RULES, Event, matches, table
from tests.support.both_places import Kept

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

PAIRS = RULES[: RULES.index("  - name: sums")]
SOURCES = "ordering: sources, source_column: k, deduplicate_on: [k, kind, x]"
# what is there when batch 1 is planned, and with what the job goes on: settings for events, schema and format
CASES = {
    "shorter delay": (("delay: 30 s", "x BIGINT", "json"), ("delay: 4 s", "x BIGINT", "json")),
    "all of sources": (
        (f"delay: 8 s, {SOURCES}, idle_after: 60 s, heartbeat: kind = 'c' and x > 1", "x BIGINT", "json"),
        (
            f"delay: 20 s, {SOURCES}, idle_after: 30 s, heartbeat: kind = 'b' and x < 1, "
            "expected_sources: [u, v, w]",
            "x BIGINT",
            "json",
        ),
    ),
    "records": (("delay: 5 s", "x BIGINT, y BIGINT", "json"), ("delay: 5 s", "x BIGINT, y STRING", "csv")),
}
IN_STORE = "shorter delay, in a store"
FILES, SIZE = 3, 80  # one that is done, one that is not, one behind


def write_job(folder: Path, kept: Kept, events: str, attributes: str, form: str) -> JobSpec:
    (folder / "rules.yaml").write_text(PAIRS.replace("x BIGINT", attributes))
    text = JOB.format(events=events, finish="false", slots=2, buckets=2)
    (folder / "job.yaml").write_text(text.replace("format: json", f"format: {form}"))
    return kept.for_job(folder / "job.yaml")


def uneven_events() -> list[Event]:
    """Events up to 40 seconds out of order; of three sources one falls silent. Some have a wrong y."""
    chance = random.Random(5)
    seconds = sorted(range(240), key=lambda second: second + chance.random() * 40)
    return [
        {
            "t": f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}",
            "k": chance.choice("uvw" if second < 90 or second > 150 else "uv"),
            "kind": chance.choice("abc"),
            "x": chance.randrange(9),
            "y": "many" if chance.random() < 0.2 else second,
        }
        for second in seconds
    ]


def feed(folder: Path, numbers: Sequence[int], form: str) -> None:
    """Some of the files."""
    (folder / "in").mkdir(exist_ok=True)
    events = uneven_events()
    for number in numbers:
        part = events[SIZE * number : SIZE * (number + 1)]
        lines = [json.dumps(event) for event in part]
        if form == "csv":
            lines = [",".join(part[0]), *(",".join(map(str, event.values())) for event in part)]
        (folder / "in" / f"{number:03d}.txt").write_text("\n".join(lines))


def plan_of(spec: JobSpec) -> Plan:
    return build_plan(
        spec.rules,
        order=spec.events.order,
        source_column=spec.events.source_column,
        heartbeat=spec.events.heartbeat,
    )


def in_core(
    folder: Path, before: JobSpec, after: JobSpec
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Matches and late events where all files but the last are read with the old settings."""
    run = local_run.LocalRun(plan_of(before))
    steps = []
    for number in range(FILES):
        spec = before if number < FILES - 1 else after
        if number == FILES - 1:
            states = [splitter.snapshot() for splitter in run.splitters]
            numbers, run = run.next_out_seq, local_run.LocalRun(plan_of(after))
            run.splitters = [SlotSplitter(run.plan, slot, state) for slot, state in enumerate(states)]
            run.next_out_seq = numbers
        name = f"{number:03d}.txt"
        steps.append(
            run.step(
                read_events(str(folder / "in" / name), spec.files.format, spec.events.schema, name).events
            )
        )
    steps.append(run.step(None, finish=True))
    found, late = (pa.concat_tables([getattr(step, name) for step in steps]) for name in ("matches", "late"))
    return found.sort_by([("rule", "ascending"), ("out_seq", "ascending")]).to_pylist(), by_place(late)


def by_place(late: pa.Table) -> list[dict[str, object]]:
    return late.sort_by([("source", "ascending"), ("offset", "ascending")]).to_pylist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Unfinished:
    """A job whose batch 1 was written but not committed; `early` has its tables from before."""

    case: str
    folder: Path
    kept: Kept

    def copied(self, folder: Path) -> tuple[Path, Kept]:
        """A copy of the job in a folder, and of what it keeps."""
        shutil.copytree(self.folder, folder / "job")
        return folder / "job", self.kept.copied(folder / "job")


@pytest.fixture(scope="module")
def unfinished(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Unfinished]:
    """The job of a case, which is made once."""
    return cache(lambda case: made(case, tmp_path_factory.mktemp("job"), request))


def made(case: str, folder: Path, request: pytest.FixtureRequest) -> Unfinished:
    kept = Kept(folder)
    if case == IN_STORE:
        case = "shorter delay"
        kept = Kept.in_store(request.getfixturevalue("reached_store"), folder.name)
    spec = write_job(folder, kept, *CASES[case][0])
    feed(folder, range(FILES - 1), spec.files.format)

    def copy(batch: BatchReport) -> None:
        if batch.batch_id == 0:
            shutil.copytree(kept.files / "out", kept.files / "early")

    run_job(spec, on_progress=copy)
    for left in ("1", ".1.crc"):
        (kept.files / "checkpoint" / "commits" / left).unlink(missing_ok=left != "1")
    return Unfinished(case, folder, kept)


@pytest.mark.parametrize(
    ("case", "written"),
    [
        ("all of sources", True),
        ("records", False),
        *(
            pytest.param(case, written, marks=pytest.mark.long)
            for case, written in (
                *(("all of sources", False), ("records", True)),
                *(("shorter delay", True), ("shorter delay", False), (IN_STORE, True), (IN_STORE, False)),
            )
        ),
    ],
)
def test_an_unfinished_batch_is_done_again_as_it_was_planned(
    unfinished: Callable[[str], Unfinished], tmp_path: Path, case: str, written: bool
) -> None:
    """Its tables were written and the job starts again before more files come; or neither."""
    job = unfinished(case)
    case, (folder, kept) = job.case, job.copied(tmp_path)
    if not written:
        shutil.rmtree(kept.files / "out")
        (kept.files / "early").rename(kept.files / "out")
        (kept.files / "checkpoint" / "sequence" / "2.json").unlink()
    before = write_job(folder, kept, *CASES[case][0])
    after = write_job(folder, kept, *CASES[case][1])
    if written:
        run_job(after)
    feed(folder, [FILES - 1], after.files.format)
    (folder / "job.yaml").write_text(
        (folder / "job.yaml").read_text().replace("finish: false", "finish: true")
    )
    run_job(read_job(folder / "job.yaml"))
    expected, late = in_core(folder, before, after)
    assert matches(after) == expected
    assert by_place(table(after, "late")) == late
    assert table(after, "metrics").sort_by("batch_id")["records"].to_pylist() == [SIZE] * FILES
    assert len(expected) > 50


def test_whether_a_bad_record_stops_the_job_is_no_part_of_a_plan(
    unfinished: Callable[[str], Unfinished], tmp_path: Path
) -> None:
    """So a job that has stopped at one can be told to go on."""
    folder, kept = unfinished("records").copied(tmp_path)
    events, attributes, form = CASES["records"][0]
    with pytest.raises(
        SparkPaceError, match=r"txt row \d+: .*Correct it, or set on_bad_record to quarantine"
    ):
        run_job(write_job(folder, kept, f"{events}, on_bad_record: fail", attributes, form))
    assert run_job(write_job(folder, kept, events, attributes, form)).batches == 1
