"""What `explain` says of negated components in first place."""

from __future__ import annotations

from pathlib import Path

from tests.unit.rules.explanation.test_explanation import ONE, explained_pattern


def test_it_says_what_forbids_and_what_is_kept(tmp_path: Path) -> None:
    never = "{name: n, when: x = 4, not: true, within: 30 d}"
    lines = explained_pattern(tmp_path, f"{never}, {ONE}", "where: n.type = a.type and n.x + 1 = a.x")
    assert "  sequence     not n: x = 4  [intake, on whole columns]" in lines
    told = "an event that matches it, 30 d at most before one that could be a: that one cannot"
    assert f"  forbids      n: {told}" in lines
    assert "  where        n.type = a.type  [on splitter, in stream order]" in lines
    kept = "the time of the last event of 30 d with each value of type, x + 1"
    assert f"               for not n: {kept}" in lines


def test_it_says_that_events_are_kept(tmp_path: Path) -> None:
    never = "{name: n, when: x = 4, not: true, within: 1 h}"
    lines = explained_pattern(tmp_path, f"{never}, {ONE}", "where: n.x < a.x")
    kept = "the events of 1 h; each that could be a is compared with them"
    assert f"               for not n: {kept}" in lines
    lines = explained_pattern(tmp_path, f"{never}, {ONE}", "where: n.x < a.x and n.type = a.type")
    assert f"               for not n: {kept}, if the values of both are equal" in lines


def test_it_says_how_long_one_without_a_window_forbids(tmp_path: Path) -> None:
    keys = "partition_by: [type], forget_key_after: 1 h"
    lines = explained_pattern(tmp_path, f"{{name: n, when: x = 4, not: true}}, {ONE}", keys)
    told = "an event that matches it, any time before one that could be a: that one cannot"
    assert f"  forbids      n: {told}" in lines
    assert "               for not n: the time of the last event for each key" in lines


def test_it_says_that_inside_a_span_its_events_forbid_and_nothing_is_kept(tmp_path: Path) -> None:
    span = "span: {every: 10 s, size: 10 s}, where: n.type = a.type"
    lines = explained_pattern(tmp_path, f"{{name: n, when: x = 4, not: true}}, {ONE}", span)
    told = "an event that matches it, any time and in the same span before one that could be a"
    assert f"  forbids      n: {told}: that one cannot" in lines
    assert "  where        n.type = a.type  [on operators, in each span]" in lines
    assert not any("for not n" in line for line in lines)
