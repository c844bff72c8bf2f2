"""What `replay` tells of lines of text: where bad ones stand, how many were ignored, whether none fits."""

from __future__ import annotations

import gzip
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_pace.core.order import Tick
from spark_pace.io.event_files import position
from spark_pace.io.replay import replay_files
from spark_pace.reasons import why
from spark_pace.rules import load_rules
from tests.spark.jobs import LINES, line_of, random_events
from tests.support.commands import spark_pace

T = "2013-01-01T00:00:00"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.log", "oops\n", "a.log:L1"),
        ("a.log", "\n\noops\n", "a.log:L3"),
        ("a.log.gz", "\noops\n", "a.log.gz:L2"),
        ("a.json", "\n{}\n", "a.json:L2"),
        ("a.csv", "time\n2024-01-01T00:00:00Z\noops\n", "a.csv:L3"),
        ("a.csv", "when\n2024-01-01\n", "a.csv the file — "),
        ("a.parquet", "oops", "a.parquet the file — "),
    ],
)
def test_replay_tells_a_bad_record_by_the_position_that_why_takes(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / "rules.yaml").write_text(
        "events: {schema: 'time TIMESTAMP', event_time: time, text: {preset: syslog}}\n"
        "rules: [{name: r, pattern: {sequence: [a: time is not null]}}]\n"
    )
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    shown = spark_pace("replay", "rules.yaml", name, cwd=tmp_path).stderr.splitlines()
    (line,) = (line for line in shown if line.startswith("bad record: "))
    assert line.startswith(f"bad record: {told}")
    if ":L" in told:
        answer = spark_pace("why", "rules.yaml", name, "--rule", "r", "--at", told, cwd=tmp_path)
        reason = line.removeprefix(f"bad record: {told} ")
        assert f"not in the rule's stream: it is a bad record: {reason}" in answer.stdout


@pytest.mark.parametrize(
    ("text", "lines", "told"),
    [
        (
            "regex: '(?P<time>\\S+) (?P<s>.*)', unmatched: ignore",
            [f"{T} a", "oops", "", "oops"],
            ["1 record, 2 lines ignored; matches: r 1"],
        ),
        (
            "regex: '(?P<time>\\S+) (?P<s>.*)', unmatched: ignore",
            ["oops"],
            [
                "0 records, 1 line ignored; matches: r 0",
                "warning: of 1 line of text none is an event: check the regex, which must match the whole "
                "line, and timestamp_format. Without `unmatched: ignore` each line is told with a reason.",
            ],
        ),
        (
            "preset: syslog",
            ["oops", "", "oops"],
            [
                "2 records; matches: r 0",
                "warning: of 2 lines of text none is an event: "
                "check the preset syslog, and timestamp_format.",
                "bad record: a.log:L1 the record — must have the form of the preset syslog",
                "bad record: a.log:L3 the record — must have the form of the preset syslog",
            ],
        ),
        ("preset: json_in_text, unmatched: ignore", ["", ""], ["0 records; matches: r 0"]),
    ],
)
def test_replay_tells_how_many_lines_were_ignored_and_whether_none_is_an_event(
    tmp_path: Path, text: str, lines: list[str], told: list[str]
) -> None:
    (tmp_path / "rules.yaml").write_text(
        f"events: {{schema: 'time TIMESTAMP, s STRING', event_time: time, text: {{{text}}}}}\n"
        "rules: [{name: r, pattern: {sequence: [a: time is not null]}}]\n"
    )
    (tmp_path / "a.log").write_text("\n".join(lines))
    answer = spark_pace("replay", "rules.yaml", "a.log", cwd=tmp_path)
    assert (answer.returncode, answer.stderr.splitlines()) == (0, told)
    replayed = replay_files(load_rules(tmp_path / "rules.yaml"), tmp_path / "a.log")
    assert (replayed.unfit is not None) == any(line.startswith("warning: ") for line in told)
    assert ("ignored" in repr(replayed)) == ("ignored" in told[0])


def test_an_input_without_lines_of_text_is_not_told_to_have_unfit_lines(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.json").write_text("oops")
    (folder / "b.log.gz").write_bytes(b"oops")  # a damaged archive
    replayed = replay_files(load_rules(LINES)[:1], folder)
    assert (replayed.bad_rows, replayed.unfit) == (2, None)


def test_a_bad_row_of_parquet_is_told_by_its_offset() -> None:
    assert position("part-0.parquet", 4) == "part-0.parquet:4"


def test_replay_and_why_read_files_of_other_names_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    events = random_events(6)
    (folder / "auth.log").write_text("\n".join(map(line_of, events[:120])))
    with gzip.open(folder / "auth.log.gz", "wt") as packed:
        packed.write("\n".join(map(line_of, events[120:])))
    (folder / "later.json").write_text('{"t": "01.01.2024 01:00:00", "k": "u"}')
    rules = [rule for rule in load_rules(LINES) if rule.name != "sums"]
    replayed = replay_files(rules, folder)
    assert (replayed.read_rows, replayed.bad_rows) == (201, 0)
    assert {"pairs", "keyed"} == set(replayed.result.matches["rule"].to_pylist())
    answer = why(rules, folder, rule="pairs", at="auth.log.gz:3")
    assert answer.attributes["kind"] == events[123]["kind"]


SILENT = r"""
events: {schema: 'time TIMESTAMP, s STRING', event_time: time, text: {regex: '(?P<time>\S+) (?P<s>.*)'}}
rules:
  - {name: silent, pattern: {sequence: [a: s = 'a', {name: b, when: s = 'b', not: true}]}, within: 1 min}
  - {name: some, pattern: {sequence: [a: s = 'a']}}
"""


@pytest.mark.parametrize(
    ("times", "told", "by_end"),
    [
        (["00:00 a", "00:30 a"], "silent 2 (2 of them because the input ends), some 2", {"silent": 2}),
        (["00:00 a", "01:00 x"], "silent 1, some 1", {}),
        (
            ["00:00 a", "00:30 a", "01:29 x"],
            "silent 2 (1 of them because the input ends), some 2",
            {"silent": 1},
        ),
        (["00:00 x"], "silent 0, some 0", {}),
    ],
)
def test_replay_tells_which_matches_only_the_end_of_the_input_decides(
    tmp_path: Path, times: list[str], told: str, by_end: dict[str, int]
) -> None:
    (tmp_path / "rules.yaml").write_text(SILENT)
    (tmp_path / "a.log").write_text("".join(f"2013-01-01T00:{line}\n" for line in times))
    answer = spark_pace("replay", "rules.yaml", "a.log", cwd=tmp_path).stderr
    assert f"; matches: {told}" in answer.splitlines()[0]
    found = replay_files(load_rules(tmp_path / "rules.yaml"), tmp_path / "a.log")
    assert found.by_end == by_end
    page = found.timeline().html()
    assert page.count("because the input ends") == sum(by_end.values())


def test_matches_of_an_input_that_goes_on_are_not_due_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2013-01-01T00:00:00 a\n")
    rules = load_rules(SILENT)
    ticks = [Tick(1_356_998_400_000_000 + 3_600_000_000)]
    assert replay_files(rules, tmp_path, as_read=["a.log", *ticks]).by_end == {}
    assert replay_files(rules, tmp_path, as_read=["a.log"]).by_end == {"silent": 1}
    assert replay_files(rules, tmp_path, finish=False).by_end == {}


DATED = r"""
events:
  schema: 'time TIMESTAMP, s STRING'
  event_time: time
  text: {{regex: '(?P<time>\w+ +\d+ [\d:]+) (?P<s>.*)'}}
  timestamp_format: '%b %d %H:%M:%S'
  {year}
rules: [{{name: ab, pattern: {{sequence: [a: s = 'a', b: s = 'b']}}, within: 1 h}}]
"""
OVER = (
    "{at} — time falls back from {before} to {after}. If these times are written without a year, the log "
    "goes over New Year, and matches over it are lost. "
)
LEAVE = (
    "Leave `year` out: then a time is in the last year that puts it at most a day after the file was changed "
    "last, which `touch -d DATE FILE` sets."
)
SPLIT = "A file must lie in the year before its last change: split it, or set that by `touch -d DATE FILE`."


@pytest.mark.parametrize(
    ("year", "lines", "changed", "matches", "told"),
    [
        ("year: 2024", ["Dec 31 23:59:00 a", "", "Jan  1 00:00:00 b"], 2024, 0, LEAVE),
        ("", ["Dec 31 23:59:00 a", "", "Jan  1 00:00:00 b"], 2025, 1, None),
        ("", ["Dec 30 23:59:00 a", "", "Jan  3 00:00:00 b"], 2024, 0, SPLIT),
        ("year: 2024", ["Sep  1 00:00:00 a", "May  1 00:00:00 b"], 2024, 0, None),
    ],
)
def test_replay_tells_once_that_a_log_without_years_goes_over_new_year(
    tmp_path: Path, year: str, lines: list[str], changed: int, matches: int, told: str | None
) -> None:
    (tmp_path / "logs").mkdir()
    day = datetime(changed, 1 if changed == 2025 else 12, 2 if changed == 2025 else 31, tzinfo=timezone.utc)
    for name in ("a.log", "b.log"):
        (tmp_path / "logs" / name).write_text("\n".join(lines))
        os.utime(tmp_path / "logs" / name, (day.timestamp(), day.timestamp()))
    found = replay_files(load_rules(DATED.format(year=year)), tmp_path / "logs")
    assert len(found) == 2 * matches
    days = {LEAVE: ("2024-12-31 23:59:00", "2024-01-01 00:00:00")}
    before, after = days.get(told or "", ("2024-12-30 23:59:00", "2024-01-03 00:00:00"))
    first = OVER.format(at="a.log:L3", before=before, after=after)
    assert list(found.columns_told) == ([] if told is None else [first + told])
