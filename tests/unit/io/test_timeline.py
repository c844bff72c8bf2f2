"""The page with matches on a time axis, as far as Python makes it: `tests.long.browser` opens it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import spark_pace as package
from spark_pace.errors import ConfigError
from spark_pace.io import timeline
from tests.support.commands import spark_pace

RULES = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT, k STRING", event_time: time}
rules:
  - {name: pair, partition_by: [k], pattern: {sequence: [{a: type = 'a'}, {b: type = 'b'}]}, within: 10 s, \
emit: {to: b.x}}
  - {name: alone, pattern: {sequence: [{a: type = 'b'}]}, context: "each, zero"}
  - {name: total, span: {every: 5 s, size: 5 s}, emit: {xs: sum(x)}}
"""
HOSTILE = "</script><script>document.title = 'taken'</script>"
EVENTS = [
    {"time": "2024-01-01T00:00:00.5Z", "type": "a", "x": 1, "k": HOSTILE},
    {"time": "2024-01-01T00:00:01Z", "type": "b", "x": 2, "k": HOSTILE},
    {"time": "2024-01-01T00:00:02Z", "type": "a", "x": 3, "k": "k2"},
    {"time": "2024-01-01T00:00:04Z", "type": "b", "x": 4, "k": "k2"},
]
START_MS = 1_704_067_200_000


def told_in(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script id="told" type="application/json">(.*?)</script>', page, re.DOTALL)
    return dict(json.loads(text))


def test_the_page_is_given_each_match_with_its_events() -> None:
    told = told_in(package.timeline(package.replay(RULES, EVENTS).matches).html())
    assert told["rules"] == ["alone", "pair", "total"]
    assert told["rule"] == [0, 0, 1, 1, 2]
    assert told["keys"] == [None, json.dumps({"k": HOSTILE}, separators=(",", ":")), '{"k":"k2"}']
    assert told["key"] == [0, 0, 1, 2, 0]
    times = [(opened - START_MS, matched - START_MS) for opened, matched in zip(*ends(told), strict=True)]
    assert times == [(1000, 1000), (4000, 4000), (500, 1000), (2000, 4000), (0, 5000)]
    assert told["about"][0] == "match 0"
    assert told["about"][2:] == [
        f"match 0, to = 2, k = {HOSTILE}",
        "match 1, to = 4, k = k2",
        "match 0, xs = 10",
    ]
    names = [told["components"][component] for component in told["component"]]
    marks = list(zip(told["match"], names, told["time"], told["seq"], strict=True))
    assert marks[:6] == [
        (0, "alone · a", START_MS + 1000, 0),
        (1, "alone · a", START_MS + 4000, 1),
        (2, "pair · a", START_MS + 500, 0),
        (2, "pair · b", START_MS + 1000, 1),
        (3, "pair · a", START_MS + 2000, 0),
        (3, "pair · b", START_MS + 4000, 1),
    ]
    assert told["events"] == len(marks)


def test_rules_stand_in_the_order_of_their_file() -> None:
    found = package.replay(RULES, EVENTS)
    told = told_in(found.timeline().html())
    assert told["rules"] == ["pair", "alone", "total"]
    assert told["rule"] == [0, 0, 1, 1, 2]
    assert [told["about"][place].split(",")[0] for place in (0, 1, 2)] == ["match 0", "match 1", "match 0"]
    other = told_in(timeline.Timeline(found.matches.table, "", ("total",)).html())
    assert other["rules"] == ["total", "alone", "pair"]


def ends(told: dict[str, Any]) -> tuple[list[float], list[float]]:
    return told["opened"], told["matched"]


def test_of_many_events_the_first_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_EVENTS", 3)
    told = told_in(package.replay(RULES, EVENTS).timeline().html())
    assert (told["match"], told["events"]) == ([0, 0, 1], 6)


def test_no_matches_make_a_page() -> None:
    told = told_in(package.replay(RULES, EVENTS[:0]).timeline().html())
    assert (told["rules"], told["match"], told["events"]) == ([], [], 0)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    rules, events, page = tmp_path / "rules.yaml", tmp_path / "events.json", tmp_path / "page.html"
    rules.write_text(RULES)
    events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    done = spark_pace("replay", str(rules), str(events), "--html", str(page))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    written = page.read_text()
    assert f"<title>{rules} over {events}</title>" in written
    assert told_in(written) == told_in(package.replay(RULES, events).timeline().html())
    done = spark_pace("replay", str(rules), str(events), "--html", str(tmp_path / "no" / "page.html"))
    assert done.returncode != 0
    assert done.stderr.startswith("--html — must lie in a folder that is there; got ")


def test_what_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = package.timeline(package.replay(RULES, EVENTS).matches, "title")
    with pytest.raises(ConfigError, match="must be a file that can be written; got Is a directory"):
        drawn.write(tmp_path)
    monkeypatch.setattr(timeline, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="must be installed to draw a page; got no such"):
        drawn.write(tmp_path / "page.html")


def test_a_notebook_gets_the_page_in_a_frame() -> None:
    shown = package.replay(RULES, EVENTS).timeline("<b>")._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert shown.count('"') == 8  # those of the frame's own four attributes
