"""What `explain` says of components that must be neighbours, and of windows of both kinds."""

from __future__ import annotations

from pathlib import Path

from tests.unit.rules.explanation.test_explanation import ONE, explained_pattern


def test_it_says_what_strict_means_and_implies(tmp_path: Path) -> None:
    lines = explained_pattern(tmp_path, f"{ONE}, {{name: g, when: x = 3, times: 2..5}}", "contiguity: strict")
    assert "  contiguity   strict: every event counts, and none stands between two of a match" in lines
    assert "  context      each, zero, within 6 events" in lines
    assert "  sequence     a: x = 1  [intake, on whole columns]" in lines
    assert "               g 2..5: x = 3  [intake, on whole columns]" in lines


def test_it_says_what_a_component_that_follows_strictly_is_right_behind(tmp_path: Path) -> None:
    group = "{name: g, when: x = 3, times: 0..5}, {name: b, when: x = 4, follows: strict}"
    lines = explained_pattern(tmp_path, f"{ONE}, {group}", "within: 1 h, filter: x > 0")
    behind = "right behind the last g (or a, where there is none)"
    assert f"  follows      b: {behind}; every event that passes the filter counts" in lines


def test_a_window_of_both_is_told_with_both(tmp_path: Path) -> None:
    never = "{name: n, when: x = 4, not: true}"
    lines = explained_pattern(tmp_path, f"{ONE}, {never}", "within: {time: 30 s, events: 3}")
    assert "  context      each, zero, within 30 s and 3 events" in lines
    told = "so many events have come, whatever they match, or by the frontier"
    assert any(line.endswith(f"a match is decided there: when {told}") for line in lines)
    spans = "within: 3 s, span: {every: 5 events, size: 5 events}"
    assert not any(
        "or by the frontier" in line for line in explained_pattern(tmp_path, f"{ONE}, {never}", spans)
    )
