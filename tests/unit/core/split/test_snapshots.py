"""A slot's state: versioned, refused where it cannot be right, and no larger than what it holds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_pace.core.frames import encode_parcel
from spark_pace.core.intake.pack import pack
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import Plan, RulePlace, build_plan
from spark_pace.core.split import snapshot
from spark_pace.core.split.carry.carry import Carry
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.snapshot import load
from spark_pace.errors import StateError
from spark_pace.rules import load_rules

RULES = """
events: {schema: "time TIMESTAMP, type STRING, user STRING", event_time: time}
rules:
  - name: NAME
    partition_by: [user]
    pattern: {sequence: [{name: a, when: type = 'a'}, {name: b, when: type = 'b'}]}
    within: 10 s
"""

NO_DELAY = OrderSpec()


def plan_of(*names: str, within: str = "10 s", slots: int = 1, order: OrderSpec = NO_DELAY) -> Plan:
    texts = [RULES.replace("NAME", name).replace("10 s", within) for name in names or ("pair",)]
    return build_plan(load_rules(texts), order=order, slots=slots)


def batch(seconds: range, kind: str) -> pa.Table:
    times = pa.array([second * 1_000_000 for second in seconds], pa.int64())
    return pa.table({
        "@time": times,
        "@source": pa.array(["s"] * len(seconds)).dictionary_encode(),
        "@offset": pa.array(list(seconds), pa.int64()),
        "time": times.view(pa.timestamp("us")),
        "type": [kind] * len(seconds),
        "user": [f"u{second}" for second in seconds],
    })  # fmt: skip


def step(splitter: SlotSplitter, plan: Plan, events: pa.Table) -> None:
    frames = [frame for _, frame in pack(plan, events)]
    splitter.step(frames, Progress(max(events["@time"].to_pylist())))


def keys_of(carry: Carry) -> list[str]:
    """Every key that was ever met."""
    return sorted({key for chunk in carry.chunks for key in chunk.keys["key"].to_pylist()})


def test_a_snapshot_of_a_new_splitter_is_one_of_no_events() -> None:
    plan = plan_of()
    saved = SlotSplitter(plan, 0).snapshot()
    assert SlotSplitter(plan, 0, saved).snapshot() == saved


@pytest.mark.parametrize("repeats_dropped", [(), ("type", "user")])
def test_an_event_that_waits_in_several_slots_is_counted_once(repeats_dropped: tuple[str, ...]) -> None:
    order = OrderSpec(delay_us=60_000_000, deduplicate_on=repeats_dropped)
    plan = plan_of("pair", "other", "third", slots=3, order=order)
    states: list[bytes | None] = [None, None, None]
    for start in (0, 5):
        splitters = [SlotSplitter(plan, slot, state) for slot, state in enumerate(states)]
        frames = dict(pack(plan, batch(range(start, start + 5), "a")))
        assert len(frames) == 3
        outputs = [
            splitter.step([frames[slot]], Progress(start + 4)) for slot, splitter in enumerate(splitters)
        ]
        assert sum(output.stats["pending"] for output in outputs) == start + 5
        states = [splitter.snapshot() for splitter in splitters]


def test_state_keeps_the_keys_but_not_the_events_of_windows_that_are_over() -> None:
    plan = plan_of()
    splitter = SlotSplitter(plan, 0)
    for start in range(0, 2000, 50):
        step(splitter, plan, batch(range(start, start + 50), "a"))
    order, ((_, carry),) = load(plan, 0, splitter.snapshot())
    # the newest event waits: its time may not be complete
    assert ([run.rows for run in order.pending.runs], len(keys_of(carry))) == ([1], 1999)
    assert carry.rows == sum(chunk.event_rows for chunk in carry.chunks) == 10
    assert len(carry.living()) == 10


def test_another_format_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of()
    monkeypatch.setattr(snapshot, "FORMAT_VERSION", 0)
    old = SlotSplitter(plan, 0).snapshot()
    monkeypatch.undo()
    with pytest.raises(
        StateError, match=r"state of slot 0 — must have format version 9; got 0\. Start again"
    ):
        SlotSplitter(plan, 0, old)


def test_state_of_a_rule_that_has_changed_is_refused() -> None:
    saved = SlotSplitter(plan_of(), 0).snapshot()
    changed = plan_of(within="11 s")
    with pytest.raises(
        StateError, match=r"must be of the rules as they are; got another rule pair\. Restore it"
    ):
        SlotSplitter(changed, 0, saved)


def test_state_that_other_slots_would_have_to_take_is_refused() -> None:
    saved = SlotSplitter(plan_of(), 0).snapshot()
    moved = plan_of("first", "pair", slots=2)
    with pytest.raises(StateError, match=r"got bucket 0 of 1 of pair, which has moved\."):
        SlotSplitter(moved, 0, saved)


@pytest.mark.parametrize("damaged", [b"", b"\x00\x00\x00\x05nope!", encode_parcel({"x": 1}, [])[:-2]])
def test_damaged_state_is_refused(damaged: bytes) -> None:
    with pytest.raises(StateError, match="state of slot 0 — must"):
        SlotSplitter(plan_of(), 0, damaged)


def test_any_damaged_byte_is_noticed() -> None:
    plan = plan_of()
    splitter = SlotSplitter(plan, 0)
    step(splitter, plan, batch(range(20), "a"))
    saved = splitter.snapshot()
    assert SlotSplitter(plan, 0, saved).snapshot() == saved
    for at in range(len(saved)):
        with pytest.raises(StateError, match="state of slot 0 — must"):
            SlotSplitter(plan, 0, saved[:at] + bytes([saved[at] ^ 1 << at % 8]) + saved[at + 1 :])
        if at % 50 == 0:
            with pytest.raises(StateError, match="state of slot 0 — must"):
                SlotSplitter(plan, 0, saved[:at])


def test_state_too_large_for_one_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_BYTES", 10)
    with pytest.raises(StateError, match=r"must stay below 0 MiB; got 0 MiB\. Shorten the longest `within`"):
        SlotSplitter(plan_of(), 0).snapshot()


def test_events_that_wait_are_not_those_of_a_new_rule_with_new_attributes() -> None:
    """The new rule stands first and shares a predicate; its attribute and its key were not kept."""
    old = plan_of()
    splitter = SlotSplitter(old, 0)
    step(splitter, old, batch(range(3), "a"))
    text = (
        RULES.replace("user STRING", "more BIGINT, user STRING")
        .replace("NAME", "new")
        .replace("[user]", "[more]")
        .replace("type = 'b'", "more > 1")
    )
    pair = text[: text.index("rules:")] + RULES[RULES.index("rules:") :].replace("NAME", "pair")
    new = build_plan(
        load_rules([text, pair]),
        order=OrderSpec(),
        places={"new": RulePlace((0,), since=1), "pair": RulePlace((0,))},
    )
    restored = SlotSplitter(new, 0, splitter.snapshot())
    later = batch(range(5, 9), "b").append_column("more", pa.array([1, 2, 3, 4]))
    step(restored, new, later)
    step(restored, new, batch(range(20, 21), "b").append_column("more", pa.array([1])))
    _, ((_, of_new), (_, of_pair)) = load(new, 0, restored.snapshot())
    assert keys_of(of_new) == ['{"more":2}', '{"more":3}', '{"more":4}']
    assert keys_of(of_pair) == [f'{{"user":"u{number}"}}' for number in (0, 1, 2, 5, 6, 7, 8)]
