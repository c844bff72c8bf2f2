"""What is kept for negated components in first place: as much as can still forbid."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import replay, ways
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.frames import decode_header
from spark_pace.core.split.carry.carry import Carry
from spark_pace.rules import load_rules
from spark_pace.spark.checkpoint.checkpoint import ChunkFiles
from tests.unit.core.split.carry.test_forgotten_keys import Slot, plan_of

RULES = """
events: {{schema: "time TIMESTAMP, user BIGINT, kind STRING", event_time: time}}
rules:
  - name: r
    pattern: {{sequence: [{{name: n, when: kind = 'a', not: true{within}}}, a: kind = 'a']}}
    {rest}
"""
BY_VALUE = "where: n.user = a.user"
BY_KEY = "partition_by: [user]"
FORGETTING = "partition_by: [kind]\n    where: n.user = a.user\n    forget_key_after: 20 s"


def slot_of(folder: Path, rest: str, within: str = ", within: 10 s") -> Slot:
    return Slot(plan_of(RULES.format(within=within, rest=rest)), ChunkFiles(folder / "waiting"))


def kept(slot: Slot) -> Carry:
    (forbidding,) = slot.carry().forbidding
    return forbidding


def rows(carry: Carry) -> int:
    return sum(chunk.weight for chunk in carry.chunks)


@pytest.mark.parametrize("rest", [BY_VALUE, BY_KEY])
def test_one_time_is_kept_for_each_key_and_value(tmp_path: Path, rest: str) -> None:
    slot = slot_of(tmp_path, rest, ", within: 1 h")
    for second in range(30):
        slot.step(second, np.arange(100).repeat(5))
    assert rows(kept(slot)) <= 200  # of two chunks that are not merged yet
    assert sum(chunk.event_rows for chunk in kept(slot).chunks) == 0


def test_the_events_are_kept_where_other_conditions_read_them(tmp_path: Path) -> None:
    slot = slot_of(tmp_path, "where: n.user < a.user", ", within: 5 s")
    for second in range(40):
        slot.step(second, [9, 8, 7])
    carry = kept(slot)
    assert sum(chunk.event_rows for chunk in carry.chunks) <= 3 * 8
    assert {"user"} < {*carry.chunks[0].events.column_names} <= {"@time", "@seq", "user"}  # type: ignore[union-attr]


@pytest.mark.parametrize("largest", [pytest.param(1 << 21, marks=pytest.mark.long), 1 << 10])
def test_what_is_kept_follows_what_can_still_forbid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr(ways, "SMALL", 256)
    monkeypatch.setattr(ways, "LARGEST", largest)
    slot = slot_of(tmp_path, BY_VALUE)
    for second in range(100):
        slot.step(second, np.append(np.arange(100), np.arange(500) + (second + 1) * 1000))
        live = 100 + 500 * min(11, second + 1)
        assert rows(kept(slot)) <= 3 * live + 256
    for second in (200, 201, 220, 221):
        slot.step(second, [1])
    assert rows(kept(slot)) <= 2


@pytest.mark.parametrize("seconds", [240, pytest.param(600, marks=pytest.mark.long)])
def test_values_are_forgotten_with_their_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """A key every ten seconds, each with 200 values, which are kept for ever as long as the key lives."""
    monkeypatch.setattr(ways, "SMALL", 64)
    slot = slot_of(tmp_path, FORGETTING, "")
    slot.plan = plan_of(
        RULES.format(within="", rest=FORGETTING).replace("kind = 'a'", "kind <> 'z'"),
    )
    for second in range(0, seconds, 2):
        kind = chr(ord("a") + second // 10 % 20)
        slot.step(second, np.arange(200) + second % 10 * 1000, kind)
        assert rows(kept(slot)) <= 64 + 3 * 5 * 200 * 4


def test_values_last_as_long_as_the_stream_of_their_key(tmp_path: Path) -> None:
    slot = slot_of(tmp_path, FORGETTING, "")
    steps = [(0, [1]), (15, [2]), (30, [1]), (51, [1]), (60, [1]), (90, [3])]
    lanes = [slot.step(second, keys).stats["lane_rows"] for second, keys in steps]
    assert lanes == [0, 1, 1, 0, 1, 0]  # a batch releases the event of the one before
    assert rows(kept(slot)) >= 1


def test_the_state_of_a_rule_without_one_has_nothing_of_it(tmp_path: Path) -> None:
    plain = RULES.replace("{{name: n, when: kind = 'a', not: true{within}}}, ", "")
    slot = Slot(plan_of(plain.format(rest=BY_KEY)), ChunkFiles(tmp_path / "waiting"))
    slot.step(0, [1])
    slot.step(1, [1])
    assert slot.state is not None
    (unit,) = decode_header(slot.state)["units"]
    assert {*unit} == {"rule", "since", "bucket", "fingerprint", "chunks", "keys", "rows", "open"}


SECONDS = [datetime(2024, 1, 1, 0, 0, second) for second in range(60)]


@pytest.mark.parametrize(
    ("kind", "values", "seen_first"),
    [
        ("DOUBLE", [0.0, -0.0, float("nan"), 1.5, float("nan"), None, None], [0, 2, 3, 5, 6]),
        ("STRING", ["a:1", "a", "", "", None, "a:1", "A"], [0, 1, 2, 4, 6]),
        ("BOOLEAN", [True, False, True, None], [0, 1, 3]),
        ("DATE", [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1)], [0, 1]),
        ("TIMESTAMP", [SECONDS[0], SECONDS[0] + timedelta(microseconds=1), SECONDS[0]], [0, 1]),
        ("DECIMAL(5,2)", [Decimal("1.50"), Decimal("1.5"), Decimal("-0.00"), Decimal(0)], [0, 2]),
    ],
)
def test_values_are_equal_as_elsewhere(kind: str, values: list[object], seen_first: list[int]) -> None:
    rules = load_rules(f"""
events: {{schema: "time TIMESTAMP, id BIGINT, x {kind}", event_time: time}}
rules:
  - name: r
    pattern: {{sequence: [{{name: n, when: "true", not: true, within: 1 h}}, a: "true"]}}
    where: n.x = a.x
    emit: {{id: a.id}}
""")
    column = pa.array(values, ARROW_TYPES[kind], from_pandas=False)
    events = pa.table({"time": SECONDS[: len(values)], "id": range(len(values)), "x": column})
    assert replay(rules, events).matches["id"].to_pylist() == seen_first


def test_what_is_computed_of_each_event_may_be_equal() -> None:
    rules = load_rules("""
events: {schema: "time TIMESTAMP, id BIGINT, name STRING, other STRING", event_time: time}
rules:
  - name: r
    pattern: {sequence: [{name: n, when: "true", not: true, within: 1 h}, a: "true"]}
    where: lower(n.name) = a.other
    emit: {id: a.id}
""")
    events = pa.table({
        "time": SECONDS[:5],
        "id": range(5),
        "name": ["Ann", "BOB", "x", None, "y"],
        "other": ["bob", "ann", "bob", "x", None],
    })  # fmt: skip
    assert replay(rules, events).matches["id"].to_pylist() == [0, 4]


def test_for_ever_is_longer_than_between_any_two_times() -> None:
    rules = load_rules("""
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - name: r
    partition_by: [x]
    forget_key_after: 36500 d
    pattern: {sequence: [{name: n, when: "true", not: true}, a: "true"]}
""")
    time = [datetime(1900, 1, 1), datetime(1999, 1, 1), datetime(2098, 1, 1), datetime(2199, 1, 1)]
    found = replay(rules, pa.table({"time": time, "x": [1, 1, 1, 1]})).matches
    assert [opened.year for opened in found["opened_at"].to_pylist()] == [1900, 2199]
