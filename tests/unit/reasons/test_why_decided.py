"""What decided the matches of a selection: the event that closed it, the end of a window, or of the input."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.reasons.test_why import told

LAST_NEGATED = "pattern: {sequence: [a: type = 'a', {name: n, when: type = 'n', not: true}]}\n    within: 3 s"
T = "2024-01-01T00:00:0"


@pytest.mark.parametrize(
    ("events", "decided", "text"),
    [
        ("a", (f"{T}3Z", "input"), f"closed by #0 at {T}0Z, decided at {T}3Z because the input ends"),
        (
            "a c c c c",
            (f"{T}3Z", "window"),
            f"closed by #0 at {T}0Z, decided at {T}3Z by the end of its window",
        ),
        ("a n", (None, None), "its window ends 2024-01-01T00:00:03Z; open to the end of the input"),
        ("a n c c c", (None, None), "its window ends 2024-01-01T00:00:03Z; ended with its window"),
    ],
)
def test_the_end_that_decides_a_match_is_told(
    tmp_path: Path, events: str, decided: tuple[str | None, str | None], text: str
) -> None:
    answer = told(tmp_path, events, LAST_NEGATED, 0)
    (selection,) = answer.selections
    assert (selection.decided_at, selection.decided_by) == decided
    assert text in str(answer)


def test_a_match_that_an_event_decides_says_no_more(tmp_path: Path) -> None:
    rest = "pattern: {sequence: [a: type = 'a', {name: b, when: type = 'b', times: 0..1}]}\n    within: 3 s"
    full = told(tmp_path, "a b", rest, 0)
    assert "closed by #" in str(full)
    assert full.selections[0].decided_at is None


def test_of_a_window_of_events_it_is_not_told_whether_the_end_of_the_input_decided(tmp_path: Path) -> None:
    answer = told(tmp_path, "a c", LAST_NEGATED.replace("3 s", "5 events"), 0)
    assert answer.selections[0].decided_at is None
