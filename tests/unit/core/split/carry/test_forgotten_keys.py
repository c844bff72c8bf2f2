"""Keys that are forgotten leave nothing behind: no counters, no events, no files, however many there were."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.split.carry import carry as log
from spark_pace.core.split.slot_splitter import SlotSplitter, StepOutput
from spark_pace.core.split.snapshot import load
from spark_pace.core.tables import NO_FRONTIER
from spark_pace.errors import StateError
from spark_pace.rules import load_rules
from spark_pace.spark.checkpoint.checkpoint import ChunkFiles
from tests.support.drive import operate

RULES = """
events: {schema: "time TIMESTAMP, user BIGINT, kind STRING", event_time: time}
rules:
  - name: r
    partition_by: [user]
    forget_key_after: 10 s
    pattern: {sequence: [{a: kind = 'a'}, {b: kind = 'b'}]}
"""
SECOND = 1_000_000


def plan_of(rules: str = RULES) -> Plan:
    return build_plan(load_rules(rules), order=OrderSpec())


@dataclass
class Slot:
    """One slot whose state is stored and read again between all batches."""

    plan: Plan
    files: ChunkFiles
    state: bytes | None = None
    frontier_us: int = NO_FRONTIER

    def step(self, second: float, keys: Sequence[int] | np.ndarray, kinds: str = "a") -> StepOutput:
        """A batch of one event of each key, a microsecond apart, of one kind or each of its own."""
        time = int(second * SECOND) + np.arange(len(keys))
        records = pa.table({
            "@time": time,
            "@source": pa.DictionaryArray.from_arrays(np.zeros(len(keys), np.int32), ["s"]),
            "@offset": time,
            "time": pa.array(time).view(pa.timestamp("us")),
            "user": keys,
            "kind": list(kinds * len(keys) if len(kinds) == 1 else kinds),
        })  # fmt: skip
        sifted = sift(self.plan, records, Past(self.frontier_us))
        splitter = SlotSplitter(self.plan, 0, self.state, self.files)
        output = splitter.step([frame for _, frame in pack(self.plan, sifted.events)], sifted.progress)
        self.state, self.frontier_us = splitter.snapshot(), splitter.frontier_us
        self.files.remove_all_but(splitter.stored())
        return output

    def carry(self) -> log.Carry:
        assert self.state is not None
        _, ((_, carry),) = load(self.plan, 0, self.state, self.files)
        return carry

    def stored_bytes(self) -> int:
        """The state and the files that it needs."""
        assert self.state is not None
        folder = self.files.folder
        files = list(folder.iterdir()) if folder.is_dir() else []
        return len(self.state) + sum(path.stat().st_size for path in files)


@pytest.mark.parametrize("keys", [200_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_many_keys_that_are_forgotten_leave_as_much_as_none(keys: int) -> None:
    plan = plan_of()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # to sync it to a disk would take long
        many, none = (Slot(plan, ChunkFiles(Path(folder) / name)) for name in ("many", "none"))
        for second in range(10):
            many.step(second, np.arange(keys // 10) + second * (keys // 10))
        assert many.carry().keys == keys - 1  # the newest event is not in its place yet
        assert many.stored_bytes() > keys * 100
        for slot in (many, none):
            slot.step(40, [-1])
            slot.step(41, [-2])
        assert many.carry().keys == none.carry().keys == 1
        assert many.stored_bytes() == none.stored_bytes() < 20_000


@pytest.mark.parametrize("largest", [pytest.param(1 << 21, marks=pytest.mark.long), 1 << 12])
def test_what_is_stored_follows_the_keys_that_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """A hundred of them live on and on; the others come once. Chunks may be too large to be merged."""
    monkeypatch.setattr(ways, "SMALL", 256)
    monkeypatch.setattr(ways, "LARGEST", largest)
    slot = Slot(plan_of(), ChunkFiles(tmp_path / "waiting"))
    sizes = []
    for second in range(100):
        slot.step(second, np.append(np.arange(100), np.arange(500) + (second + 1) * 1000))
        carry = slot.carry()
        live = 100 + 500 * min(10, second + 1)
        assert live - 1 <= carry.keys <= live
        assert carry.rows == carry.keys + 100 * second  # all `a` of a key that lives wait for a `b`
        assert sum(chunk.weight for chunk in carry.chunks) <= 3 * (carry.keys + carry.rows) + 256
        sizes.append(sum(chunk.keys.num_rows for chunk in carry.chunks))
    assert max(sizes[50:]) <= 1.2 * max(sizes[:50])


@pytest.mark.parametrize("seconds", [120, pytest.param(300, marks=pytest.mark.long)])
def test_a_key_that_comes_again_begins_anew_wherever_it_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """In a file, in a chunk of the state, or in one that has been merged; forgotten long ago, or just now.

    The last `a` of each stream waits in vain.
    """
    monkeypatch.setattr(ways, "SMALL", 16)
    monkeypatch.setattr(ways, "LARGEST", 64)
    plan = plan_of(RULES.replace("10 s", "1 s"))
    slot = Slot(plan, ChunkFiles(tmp_path / "waiting"))
    found: list[tuple[int, int, int]] = []
    for second in range(0, seconds, 3):
        keys = [(second * 7 + number) % 83 for number in range(20)]
        for kind, later in (("a", 0), ("b", 0.5), ("a", 0.8)):
            output = slot.step(second + later, keys, kind)
            found += [match for lane in output.lanes for match in matches(plan, lane)]
    assert len(found) > 5 * seconds
    assert {(selection, seq) for _, selection, seq in found} == {(0, 1)}


def test_an_event_of_before_a_gap_stays_dead_where_it_is_still_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of its chunk is alive than dead, and the chunk is too large to be merged."""
    monkeypatch.setattr(ways, "SMALL", 0)
    monkeypatch.setattr(ways, "LARGEST", 0)
    plan = plan_of()
    slot = Slot(plan, ChunkFiles(tmp_path / "waiting"))
    slot.step(0, [100, 100, 100, *range(10), *range(10), *range(10)])
    for second in (8, 16):
        slot.step(second, list(range(10)))
    assert slot.carry().keys == 10
    assert '{"user":100}' in slot.carry().chunks[0].keys["key"].to_pylist()
    outputs = [slot.step(20, [100, 100, 100, 1], "abaa"), slot.step(21, [100, 1], "ba")]
    found = [match for output in outputs for lane in output.lanes for match in matches(plan, lane)]
    assert found == [(100, 0, 1), (100, 1, 3)]
    assert slot.carry().find(pa.array(['{"user":100}'])).rows.tolist() == [0]


def matches(plan: Plan, lane: bytes) -> list[tuple[int, int, int]]:
    table = decode_result(operate(plan, lane)).matches
    rows = table.select(["user", "selection_id", "seq"]).to_pylist()
    return [(row["user"], row["selection_id"], row["seq"]) for row in rows]


def test_a_batch_reads_no_key_that_neither_comes_nor_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "SMALL", 16)
    slot = Slot(plan_of(), ChunkFiles(tmp_path / "waiting"))
    looked = list[int]()
    find = log.Carry.find

    def counted(self: log.Carry, texts: pa.Array, wanted: log.Wanted) -> log.Touched:
        looked.append(len(texts))
        return find(self, texts, wanted)

    monkeypatch.setattr(log.Carry, "find", counted)
    for second in range(40):
        looked.clear()
        slot.step(second, np.arange(100) + second * 100)
        # the keys that come, those that end (twice: by what a chunk says, then by what is known of them)
        assert sum(looked) <= 320


def test_a_state_of_keys_that_live_for_ever_is_not_one_of_keys_that_are_forgotten(tmp_path: Path) -> None:
    old = Slot(plan_of(RULES.replace("    forget_key_after: 10 s\n", "")), ChunkFiles(tmp_path))
    old.step(0, [1])
    with pytest.raises(StateError, match=r"must be of the rules as they are; got another rule r\."):
        SlotSplitter(plan_of(), 0, old.state)


def test_the_end_of_the_input_counts_what_it_has_closed_as_open(tmp_path: Path) -> None:
    """The stream of key 1 ends with the last event, that of key 2 would have gone on."""
    slot = Slot(plan_of(), ChunkFiles(tmp_path / "waiting"))
    slot.step(5, [1])
    slot.step(9, [2])
    slot.step(15, [2])
    splitter = SlotSplitter(slot.plan, 0, slot.state, slot.files)
    output = splitter.step([], Progress(finish=True))
    assert (output.stats["open"], output.stats["carry"]) == (2, 0)
