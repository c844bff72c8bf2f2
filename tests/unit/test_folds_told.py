"""What `explain` and `why` say of folds."""

from __future__ import annotations

from pathlib import Path

from spark_pace.rules import explain, load_rules

FOLDS = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: door
    partition_by: [x]
    forget_key_after: 3 h
    fold:
      initial: closed
      moves:
        - {from: closed, when: type = 'o', to: open}
        - {from: open, when: x > prev(x), to: ajar, emit: false}
        - {from: [open, ajar], to: closed}
  - name: of_python
    fold: {function: m:f, version: 3}
    emit: {total: BIGINT}
"""


def test_it_tells_of_folds(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(FOLDS, encoding="utf-8")
    door, of_python = (explain(rule) for rule in load_rules(path))
    assert door[1:5] == (
        "  fold         a key begins in closed; an event takes the first move that fits",
        "               closed to open: type = 'o'  [intake, on whole columns]",
        "               open to ajar, without a match: x > prev(x, 1)  [splitter, in stream order]",
        "               open, ajar to closed: any event",
    )
    carried = "no event; the state and the numbers of each key that is not forgotten; for prev: x of the last"
    assert f"  carried      {carried} event for each key" in door
    grows = "grows with the events: their number × moves of a state, 2 at most: the first that fits is taken"
    assert door[-1] == f"               {grows}"
    assert of_python[1:3] == (
        "  fold         m:f, version 3, called in stream order",
        "  key          none: one state",
    )
    assert "  bounded by   no event: the state, of 16 MiB at most" in of_python
