"""The carry of a unit: whatever is put, found, and merged, it holds what a dictionary of lists would."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.ranks import hash_texts
from spark_pace.core.split.carry import carry as log
from spark_pace.core.split.carry.carry import Carry, Whole
from spark_pace.core.split.carry.chunk import place_of
from spark_pace.core.split.carry.examined_keys import Wake
from spark_pace.core.tables import MASK, NO_ROW, SEQ, TIME, numbers

STEADY = settings(deadline=None, derandomize=True, database=None)


def texts(*values: str) -> pa.Array:
    return pa.array(list(values), pa.string())


def test_equal_texts_have_one_hash_wherever_they_stand() -> None:
    values = ["", "a", "b", "ab", "ba", "é", "a\0", "\0a", "x" * 1000]
    alone = [int(hash_texts(texts(value))[0]) for value in values]
    together = hash_texts(texts("other", *values, "more").slice(1, len(values)))
    assert alone == together.tolist()
    assert len(set(alone)) == len(values)


def test_no_text_has_no_hash() -> None:
    assert hash_texts(texts()).tolist() == []


@STEADY
@given(st.lists(st.text(max_size=5), unique=True), st.lists(st.text(max_size=5)))
def test_keys_are_found_by_their_hash(keys: list[str], asked: list[str]) -> None:
    hashes = hash_texts(texts(*keys))
    order = np.argsort(hashes)
    ordered = [keys[at] for at in order]
    places = place_of(hashes[order], texts(*ordered), hash_texts(texts(*asked)), texts(*asked))
    assert [ordered[at] if at >= 0 else None for at in places] == [
        text if text in keys else None for text in asked
    ]


def test_different_keys_of_one_hash_are_told_apart() -> None:
    keys, asked = texts("a", "b", "c", "d"), texts("c", "x", "a", "d")
    hashes = np.array([1, 1, 1, 2], np.uint64)
    assert place_of(hashes, keys, np.array([1, 1, 1, 2], np.uint64), asked).tolist() == [2, -1, 0, 3]


@dataclass
class Model:
    """The same carry as a dictionary: of each key its next `seq` and the (`seq`, time) of its events."""

    keys: dict[str, tuple[int, list[tuple[int, int]]]] = field(default_factory=dict)

    def put(self, key: str, since: int, added: list[int]) -> None:
        seq, events = self.keys.get(key, (0, []))
        new = [(seq + place, time) for place, time in enumerate(added)]
        events = [event for event in events if event[0] >= since]
        self.keys[key] = (seq + len(added), events + new)


@dataclass(frozen=True)
class Put:
    """A batch's work on a key: how many events it drops, the times of new ones, and if it stores all anew."""

    key: str
    dropped: int
    added: list[int]
    rewritten: bool


PUTS = st.lists(
    st.lists(
        st.builds(
            Put,
            st.sampled_from("abcdefgh"),
            st.integers(0, 4),
            st.lists(st.integers(0, 50), max_size=4),
            st.booleans(),
        ),
        unique_by=lambda put: put.key,
        max_size=5,
    ),
    max_size=12,
)


def events_table(rows: list[tuple[int, int]]) -> pa.Table:
    return pa.table({
        TIME: pa.array([time for _, time in rows], pa.int64()),
        MASK: pa.array(np.ones(len(rows), np.uint16)),
        SEQ: pa.array([seq for seq, _ in rows], pa.int64()),
    })  # fmt: skip


def apply(carry: Carry, model: Model, puts: list[Put]) -> None:
    touched = carry.find(texts(*(put.key for put in puts)))
    since = np.full(len(puts), NO_ROW)
    rows: list[tuple[int, int]] = []
    owner: list[int] = []
    for at, put in enumerate(puts):
        seq, events = model.keys.get(put.key, (0, []))
        assert touched.next_seq[at] == seq
        assert touched.rows[at] == len(events)
        kept = events[put.dropped :]
        first = kept[0][0] if kept else seq
        model.put(put.key, first, put.added)
        left = model.keys[put.key][1]
        stored = left if put.rewritten else left[len(kept) :]
        since[at] = NO_ROW if put.rewritten or not left else first
        touched.next_seq[at] += len(put.added)
        touched.rows[at] = touched.open[at] = len(left)
        rows += stored
        owner += [at] * len(stored)
    carry.put(touched, since, events_table(rows), np.array(owner, np.int64))


@pytest.mark.parametrize(("small", "largest"), [(0, 1 << 20), (0, 0), (0, 20), (8, 1 << 20), (4096, 1 << 20)])
@STEADY
@given(PUTS)
def test_a_carry_holds_what_a_dictionary_would(small: int, largest: int, batches: list[list[Put]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "SMALL", small)
        patch.setattr(ways, "LARGEST", largest)
        carry, model = Carry(), Model()
        for puts in batches:
            if puts:
                apply(carry, model, puts)
    assert carry.keys == len(model.keys)
    assert all(0 <= chunk.dead <= 2 * chunk.weight for chunk in carry.chunks)
    living = sorted(key for key, (_, events) in model.keys.items() if events)
    assert carry.rows == carry.open == sum(len(events) for _, events in model.keys.values())
    assert sorted(carry.living().to_pylist()) == living
    asked = texts(*"hgfedcbaz")
    touched = carry.find(asked)
    chosen = np.array([key in "aceg" for key in asked.to_pylist()])
    events, owner = carry.events_of(touched, chosen)
    found: dict[str, list[tuple[int, int]]] = {key: [] for key in "aceg"}
    if events is not None:
        for at, seq, time in zip(owner, numbers(events, SEQ), numbers(events, TIME), strict=True):
            found[asked[at].as_py()].append((int(seq), int(time)))
    assert found == {key: model.keys.get(key, (0, []))[1] for key in "aceg"}
    for low, high in [(0, 10), (10, 11), (0, 100), (60, 90), (9, 3)]:
        times = {key: [time for _, time in events] for key, (_, events) in model.keys.items()}
        due = {key for key, of_key in times.items() if any(low <= time < high for time in of_key)}
        for bit in (None, 0):
            assert due <= set(carry.due(Wake(bit, low, high)).to_pylist())
        assert not len(carry.due(Wake(1, low, high)))  # no event has that bit


def test_a_carry_has_few_chunks_and_merges_an_event_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SMALL", 16)
    merged_rows = 0
    merge = log.merged

    def counted(*given: object) -> log.Chunk:
        nonlocal merged_rows
        chunk = merge(*given)  # type: ignore[arg-type]
        merged_rows += chunk.weight
        return chunk

    monkeypatch.setattr(log, "merged", counted)
    carry, model = Carry(), Model()
    for batch in range(512):
        apply(carry, model, [Put(f"{batch}-{key}", 0, [batch], False) for key in range(8)])
    weight = 512 * 8 * 2
    assert len(carry.chunks) <= 10
    assert merged_rows <= weight * 10
    assert carry.rows == 512 * 8


def test_dead_events_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SMALL", 16)
    carry, model = Carry(), Model()
    apply(carry, model, [Put(f"{key}", 0, [1, 2, 3], False) for key in range(100)])
    apply(carry, model, [Put(f"{key}", 3, [], False) for key in range(100)])
    assert carry.rows == 0
    assert sum(chunk.event_rows for chunk in carry.chunks) == 0


def test_keys_that_come_again_and_again_do_not_add_up_in_chunks_too_large_to_merge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some keys come once only, so the oldest chunk stays."""
    monkeypatch.setattr(ways, "SMALL", 4)
    monkeypatch.setattr(ways, "LARGEST", 100)
    carry, model = Carry(), Model()
    for batch in range(600):
        come = {f"{(11 * batch + 17 * place) % 70}": [batch] for place in range(6)}
        over = {f"{(11 * (batch - 5) + 17 * place) % 70}": list[int]() for place in range(6)}
        puts = [Put(key, 0 if key in come else 99, added, False) for key, added in (over | come).items()]
        apply(carry, model, [*puts, *([Put(f"once {batch}", 0, [], False)] if batch % 20 == 0 else [])])
    assert sum(chunk.weight for chunk in carry.chunks) <= 3 * (carry.keys + carry.rows)
    assert len(carry.chunks) <= 10
    assert carry.find(texts(*model.keys)).next_seq.tolist() == [seq for seq, _ in model.keys.values()]


def test_join_values_of_which_nothing_is_carried_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come in bursts, so some chunks have much that is over and little that is carried."""
    monkeypatch.setattr(ways, "SMALL", 4)
    monkeypatch.setattr(ways, "LARGEST", 100)
    carry, model = Carry(whole=Whole()), Model()
    for batch in range(600):
        came = [
            [f"{at} {key}" for key in range(40 if at % 4 == 0 and at % 100 >= 50 else at % 3)]
            for at in (batch, batch - 7)
        ]
        puts = [Put(key, 0, [batch], False) for key in came[0]]
        puts += [Put(key, 99, [], False) for key in came[1] if key in model.keys]
        if puts:
            apply_joined(carry, model, puts)
        for chunk in carry.chunks:
            chunk.name = "stored" if chunk.weight > ways.SMALL else None
    assert len(carry.chunks) <= 10
    assert sum(chunk.weight for chunk in carry.chunks) <= 400


def apply_joined(carry: Carry, model: Model, puts: list[Put]) -> None:
    """As `apply`, but numbers are not counted by key."""
    touched = carry.find(texts(*(put.key for put in puts)))
    assert touched.rows.tolist() == [len(model.keys.get(put.key, (0, []))[1]) for put in puts]
    for put in puts:
        model.put(put.key, put.dropped, put.added)
    touched.rows[:] = [len(put.added) for put in puts]
    new = [(place, put.added[0]) for place, put in enumerate(puts) if put.added]
    since = np.array([-1 if put.added else NO_ROW for put in puts])
    carry.put(
        touched,
        since,
        events_table([(0, time) for _, time in new]),
        np.array([at for at, _ in new], np.int64),
    )


def test_a_hash_is_the_same_in_every_process() -> None:
    """State is sorted by it."""
    known = [16294208416658607535, 8377570795104190720, 7015033755389176073]
    assert hash_texts(texts("", "spark", '{"user":"u1"}')).tolist() == known
