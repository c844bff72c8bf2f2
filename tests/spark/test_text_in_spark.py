"""Jobs on files of text: the tables are those of the core, and what a header lacks is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.cli.run import warnings
from spark_pace.errors import EventError
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from tests.spark.jobs import LINES, in_core, job, line_of, matches, random_events, table

ONE_RULE = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - {name: one, pattern: {sequence: [a: kind = 'a']}, emit: {x: a.x}}
"""

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def text_job(folder: Path, lines: list[str], files: int, rules: str = LINES) -> JobSpec:
    spec = job(folder, rules=rules)
    size = -(-len(lines) // files)
    for number in range(files):
        path = folder / "in" / f"{number:03d}.log"
        path.write_text("\n".join(lines[number * size : (number + 1) * size]) + "\n")
    return replace(spec, source=replace(spec.files, format="text"))


@pytest.mark.parametrize("files", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_job_on_lines_of_text_finds_what_the_core_finds(tmp_path: Path, files: int) -> None:
    lines = [line_of(event) for event in random_events(3)]
    lines[50:50] = ["no event", "u [32.01.2024 00:00:00] a=1", ""]
    spec = text_job(tmp_path, lines, files)
    summary = run_job(spec)
    assert (summary.events, summary.quarantined, summary.finished) == (200, 2, True)
    expected = in_core(spec).matches.to_pylist()
    assert matches(spec) == expected
    assert {row["rule"] for row in expected} == {"pairs", "keyed", "sums"}
    bad = sorted(table(spec, "quarantine")["reason"].to_pylist())
    assert bad[1] == "the record — must match the regex of the section text"
    assert bad[0].startswith("t — must be TIMESTAMP; got: '32.01.2024 00:00:00', which has not the form ")


@pytest.mark.parametrize(
    ("lines", "got"),
    [
        (["no event", "none either", "", "nor this"], "3 bad records"),
        pytest.param(["no event"], "1 bad record", marks=pytest.mark.long),
    ],
)
def test_a_job_that_finishes_and_found_bad_records_only_ends_with_an_error(
    tmp_path: Path, lines: list[str], got: str
) -> None:
    spec = text_job(tmp_path, lines, min(len(lines), 2))
    with pytest.raises(EventError) as caught:
        run_job(spec)
    assert str(caught.value) == (
        f"test — must find events in its source; got {got} and no event. Ask for the reasons: "
        f'spark-pace sql {spec.sink_path} "SELECT source, offset, reason FROM quarantine".'
    )
    assert table(spec, "quarantine").num_rows == int(got[0])


@pytest.mark.in_parts
def test_a_job_that_goes_on_may_find_bad_records_only(tmp_path: Path) -> None:
    spec = replace(text_job(tmp_path, ["no event"], 1), finish=False)
    assert run_job(spec).quarantined == 1
    (tmp_path / "in" / "001.log").write_text(line_of(random_events(1)[0]))
    (tmp_path / "in" / "002.log").write_text("no event")
    assert run_job(replace(spec, finish=True)).events == 1


@pytest.mark.in_parts
def test_a_column_that_csv_files_lack_is_told_once(tmp_path: Path) -> None:
    spec = job(tmp_path, rules=ONE_RULE)
    spec = replace(spec, source=replace(spec.files, format="csv"))
    for number in range(3):
        header = "t,k,kind,y" if number else "t,k,kind,x"
        (tmp_path / "in" / f"{number}.csv").write_text(f"{header}\n2024-01-01T00:00:0{number}Z,k,a,1\n")
    seen: list[BatchReport] = []
    summary = run_job(spec, on_progress=seen.append)
    told = (
        "1.csv — must have the column x in its header; got: t, k, kind, y, so it is null in its events. "
        "Correct the schema or the header."
    )
    assert [warnings(batch) for batch in seen] == [[], [f"warning: {told}"], []]
    assert (summary.lacking, summary.events, summary.quarantined) == ({"x": told}, 3, 0)
    assert [batch.absent for batch in seen] == [[], ["x"], ["x"]] and summary.absent == set()


@pytest.mark.in_parts
def test_a_log_that_goes_over_new_year_is_told_once(tmp_path: Path) -> None:
    form = "text: {regex: '(?P<t>\\w+ \\d+) (?P<kind>.*)'}, timestamp_format: '%b %d', year: 2024"
    spec = text_job(tmp_path, ["Dec 31 a", "Jan 1 a"] * 2, 2, ONE_RULE.replace("t}", f"t, {form}}}"))
    seen: list[BatchReport] = []
    summary = run_job(spec, on_progress=seen.append)
    (told,) = [warning for batch in seen for warning in batch.warnings]
    assert told.startswith("000.log:L2 — t falls back from 2024-12-31 00:00:00 to 2024-01-01 00:00:00. If")
    assert (summary.events + summary.late, summary.quarantined) == (4, 0)
