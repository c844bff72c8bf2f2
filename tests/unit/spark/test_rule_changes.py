"""How a checkpoint goes over to other rules: what counts of a rule, where units go, every stop midway."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import RulePlace, dealt_out
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import StateError
from spark_pace.rules import load_rules
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, read_layout, write_layout
from spark_pace.spark.start import compared

EVENTS = 'events: {schema: "t TIMESTAMP, kind STRING, x BIGINT, k STRING", event_time: t}\n'
PAIR = """
  - name: NAME
    filter: x > 0
    partition_by: [k]
    pattern: {sequence: [{a: kind = 'a'}, {b: kind = 'b'}]}
    where: b.x > a.x
    within: 10 min
    emit: {rise: b.x - a.x}
"""
SPAN = """
  - name: NAME
    span: {open: kind = 'a', close: x > open.x, within: 1 h}
    operator: operators:total
    emit: {total: BIGINT}
"""
EMPTY = Layout(2, 2, (0, 1), "app", {})


def rules_of(*texts: str, events: str = EVENTS) -> list[Rule]:
    return load_rules(f"{events}rules:{''.join(texts)}")


def pair(name: str = "pair") -> Rule:
    return rules_of(PAIR.replace("NAME", name))[0]


@pytest.mark.parametrize(
    "events",
    [
        EVENTS.replace("k STRING", "k STRING, other DOUBLE"),
        EVENTS.replace("t TIMESTAMP, kind STRING", "kind STRING, t TIMESTAMP"),
    ],
)
def test_attributes_that_it_does_not_use_are_no_part_of_a_rule(events: str) -> None:
    described = PAIR.replace("filter:", "description: rises\n    filter:")
    assert rule_parts(rules_of(PAIR)[0]) == rule_parts(
        rules_of(SPAN.replace("NAME", "other"), described, events=events)[1]
    )


def test_a_python_operator_uses_every_attribute() -> None:
    wider = EVENTS.replace("k STRING", "k STRING, other DOUBLE")
    assert rule_parts(rules_of(SPAN)[0]) != rule_parts(rules_of(SPAN, events=wider)[0])


@pytest.mark.parametrize(
    "events",
    [
        EVENTS.replace("x BIGINT", "x DOUBLE"),
        EVENTS.replace("event_time: t", "event_time: t, tie_break: [x]"),
    ],
)
def test_the_types_and_the_order_of_what_it_uses_are_parts_of_a_rule(events: str) -> None:
    assert rule_parts(rules_of(PAIR)[0]) != rule_parts(rules_of(PAIR, events=events)[0])


def test_new_units_go_where_the_fewest_are_and_the_others_stay() -> None:
    rules = [pair(name) for name in ("one", "two", "three")]
    assert dealt_out(rules[:2], 3, 2) == {"one": RulePlace((0, 1)), "two": RulePlace((2, 0))}
    kept = {"one": RulePlace((0, 1)), "gone": RulePlace((2, 2))}
    assert dealt_out(rules, 3, 2, kept, since=7) == {
        "one": RulePlace((0, 1)),
        "two": RulePlace((2, 0), 7),
        "three": RulePlace((1, 2), 7),
    }


# ---------------------------------------------------------------- from layout to layout


@dataclass
class Left:
    """A checkpoint as Spark and the job leave it: which batches were planned, and which finished."""

    kept: Checkpoint
    ran: list[tuple[list[str], bool]] = field(default_factory=list)
    planned: list[dict[str, Any] | None] = field(default_factory=list)

    def batch(self, number: int, *, finished: bool = True) -> None:
        for folder in (self.kept.offsets, self.kept.commits) if finished else (self.kept.offsets,):
            folder.mkdir(exist_ok=True)
            (folder / str(number)).touch()

    def start(self, rules: list[Rule], *reset: str, stops_after: int = 2, delay_us: int = 0) -> None:
        """Go over to these rules and settings.

        An unfinished batch is finished on the way, or the process dies before or after that.
        """
        change = compared(self.kept, read_layout(self.kept) or EMPTY, rules, reset).require_unchanged()
        for steps, (layout, unfinished) in enumerate(change.layouts({"delay_us": delay_us})):
            layout = write_layout(self.kept, layout)
            if steps == stops_after:
                return
            self.ran.append((sorted(layout.rules), unfinished))
            self.planned.append(layout.planned)
            assert read_layout(self.kept) == layout
            if unfinished:
                self.batch(self.kept.next_batch())

    def since(self) -> dict[str, int]:
        layout = read_layout(self.kept)
        assert layout is not None
        return {name: place.since for name, place in layout.places.items()}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Left:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    return Left(Checkpoint(folder))


def test_rules_come_and_go_between_two_batches(checkpoint: Left) -> None:
    one, two, three = (pair(name) for name in ("one", "two", "three"))
    checkpoint.start([one, two])
    checkpoint.batch(0)
    before = read_layout(checkpoint.kept)
    checkpoint.start([three, two])
    after = read_layout(checkpoint.kept)
    assert before is not None and after is not None
    assert after.places["two"] == before.places["two"]
    assert checkpoint.since() == {"two": 0, "three": 1}
    checkpoint.batch(1)
    checkpoint.start([one, two, three])
    assert checkpoint.since() == {"one": 2, "two": 0, "three": 1}
    assert [unfinished for _, unfinished in checkpoint.ran] == [False] * 3


def test_an_unfinished_batch_is_done_by_the_rules_that_stay(checkpoint: Left) -> None:
    one, two, three = (pair(name) for name in ("one", "two", "three"))
    checkpoint.start([one, two])
    checkpoint.batch(0)
    checkpoint.batch(1, finished=False)
    checkpoint.start([two, three])
    assert checkpoint.ran[1:] == [(["two"], True), (["three", "two"], False)]
    assert checkpoint.since() == {"two": 0, "three": 2}


def test_a_stop_before_the_unfinished_batch_is_done_loses_nothing(checkpoint: Left) -> None:
    one, two, three = (pair(name) for name in ("one", "two", "three"))
    checkpoint.start([one, two])
    checkpoint.batch(0, finished=False)
    checkpoint.start([two, three], stops_after=0)
    assert checkpoint.since() == {"two": 0}
    # the rule that was taken away is back: its state may be gone, so it begins anew
    checkpoint.start([one, two])
    assert checkpoint.ran[1:] == [(["two"], True), (["one", "two"], False)]
    assert checkpoint.since() == {"two": 0, "one": 1}


def test_a_stop_after_the_unfinished_batch_is_done_loses_nothing(checkpoint: Left) -> None:
    one, two, three = (pair(name) for name in ("one", "two", "three"))
    checkpoint.start([one, two])
    checkpoint.batch(0, finished=False)
    change = compared(
        checkpoint.kept, read_layout(checkpoint.kept) or EMPTY, [two, three], ()
    ).require_unchanged()
    write_layout(checkpoint.kept, change.layouts({})[0][0])
    checkpoint.batch(0)
    checkpoint.start([two, three])
    assert checkpoint.ran[1:] == [(["three", "two"], False)]
    assert checkpoint.since() == {"two": 0, "three": 1}


def test_the_same_rules_need_no_batch_of_their_own(checkpoint: Left) -> None:
    rules = [pair("one"), pair("two")]
    checkpoint.start(rules)
    checkpoint.batch(0, finished=False)
    checkpoint.start(rules[::-1])
    assert checkpoint.ran[1:] == [(["one", "two"], False)]
    assert checkpoint.since() == {"one": 0, "two": 0}


def test_an_unfinished_batch_is_done_with_the_settings_of_its_plan(checkpoint: Left) -> None:
    rules = [pair("one")]
    checkpoint.start(rules, delay_us=8)
    checkpoint.batch(0, finished=False)
    checkpoint.start(rules, delay_us=20, stops_after=0)
    checkpoint.start(rules, delay_us=30)
    assert checkpoint.ran[1:] == [(["one"], True), (["one"], False)]
    assert checkpoint.planned[1:] == [{"delay_us": 8}, {"delay_us": 30}]


def test_between_two_batches_settings_change_at_once(checkpoint: Left) -> None:
    rules = [pair("one")]
    checkpoint.start(rules, delay_us=8)
    checkpoint.batch(0)
    checkpoint.start(rules, delay_us=20)
    assert checkpoint.ran[1:] == [(["one"], False)]
    assert checkpoint.planned[1:] == [{"delay_us": 20}]


def test_a_rule_that_has_not_seen_an_event_may_change(checkpoint: Left) -> None:
    checkpoint.start([pair()])
    checkpoint.start([replace(pair(), merge="detection")])
    checkpoint.batch(0, finished=False)
    with pytest.raises(
        StateError,
        match=(
            r"^rule pair — must be as the checkpoint knows it; "
            r"got a changed merge: selection, was detection\. Restore it"
        ),
    ):
        checkpoint.start([pair()])


OVER = """
  - {name: pair2, from: pair, pattern: {sequence: [{a: rise > 1}]}, emit: {rise: a.rise}}
  - {name: pair3, from: [pair2, events], pattern: {sequence: [{a: rise > 2}, {b: kind = 'b'}]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "b.x > a.x",
            "b.x < a.x",
            "rule pair — must be as the checkpoint knows it; got a changed where: b.x < a.x, was b.x > a.x. "
            "Restore it, give the rule a new name, or start it anew with --reset-rule pair, with which "
            "pair2, pair3 start anew too.",
        ),
        (
            "rise > 1",
            "rise > 3",
            "rule pair2 — must be as the checkpoint knows it; got a changed pattern: a: rise > 3, was "
            "a: rise > 1. Restore it, give the rule a new name, or start it anew with --reset-rule pair2, "
            "with which pair3 starts anew too.",
        ),
    ],
)
def test_of_rules_that_read_a_changed_one_it_says_that_they_start_anew_with_it(
    checkpoint: Left, old: str, new: str, message: str
) -> None:
    texts = PAIR.replace("NAME", "pair"), OVER
    checkpoint.start(rules_of(*texts))
    checkpoint.batch(0)
    changed = rules_of(*(text.replace(old, new) for text in texts))
    with pytest.raises(StateError) as caught:
        checkpoint.start(changed)
    assert str(caught.value) == message
    checkpoint.start(changed, message.split("--reset-rule ")[1].split(",")[0])  # suffices


def test_rules_that_were_changed_themselves_are_all_told(checkpoint: Left) -> None:
    texts = PAIR.replace("NAME", "pair"), OVER
    checkpoint.start(rules_of(*texts))
    checkpoint.batch(0)
    changed = rules_of(texts[0].replace("10 min", "9 min"), texts[1].replace("rise > 2", "rise > 5"))
    with pytest.raises(
        StateError,
        match=r"^rules pair, pair3 — .*; pair3 with a changed pattern: .* anew with "
        r"--reset-rule pair, with which pair2, pair3 start anew too\.$",
    ):
        checkpoint.start(changed)


def test_what_a_rule_has_no_more_is_none(checkpoint: Left) -> None:
    checkpoint.start([pair()])
    checkpoint.batch(0)
    with pytest.raises(StateError, match="got a changed filter: none, was x > 0"):
        checkpoint.start([replace(pair(), filter=None)])


def test_batches_without_a_layout_are_refused(checkpoint: Left) -> None:
    checkpoint.batch(0)
    with pytest.raises(
        StateError, match=r"must be there where batches are; got no file\. Restore the whole checkpoint\."
    ):
        read_layout(checkpoint.kept)
