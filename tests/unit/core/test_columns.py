"""Short ways through columns give what the long ones give."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_pace.core.expr.comparison import KERNELS
from spark_pace.core.match.chain import _reached
from spark_pace.core.match.stream import Stream
from spark_pace.core.ranks import in_order, ranks
from spark_pace.core.tables import SOURCE, TIME, boolean, bools, compacted, paired


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 15, 31, 32, 33])
def test_texts_of_one_length_equal_a_constant_where_arrow_says_so(length: int) -> None:
    dice = random.Random(length)
    texts = pa.array(["".join(dice.choices("ab", [9, 1], k=length)) for _ in range(99)])
    for part in (texts, texts.slice(7, 50), texts.slice(90), texts.slice(99)):
        for sought in ("a" * length, texts[7].as_py(), "b" + "a" * length, ""):
            assert KERNELS["="](part, pa.scalar(sought)).equals(pc.equal(part, sought))


@pytest.mark.parametrize("texts", [["é", "ab", "aa"], ["ab", None, "aa"], ["a", "aaa", "aa"], [None, None]])
def test_texts_of_any_length_equal_a_constant_where_arrow_says_so(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    for sought in ("é", "aa", None):
        constant = pa.scalar(sought, pa.string())
        assert KERNELS["="](column, constant).equals(pc.equal(column, constant))


def test_booleans_come_and_go_whole_wherever_a_slice_begins() -> None:
    dice = np.random.default_rng(1)
    values = dice.random(70) < 0.5
    column = boolean(values)
    assert column.to_pylist() == values.tolist()
    for start in (*range(17), 69, 70):
        assert bools(column.slice(start)).tolist() == values[start:].tolist()
        assert bools(column.slice(start, 3)).tolist() == values[start : start + 3].tolist()


def test_rows_are_in_order_where_sorting_leaves_them_as_they_are() -> None:
    dice, seen = random.Random(2), set[tuple[bool, bool]]()
    for _ in range(500):
        rows = [(dice.choice([None, 1, 2]), dice.choice([1, 2])) for _ in range(dice.randrange(5))]
        if dice.random() < 0.5:
            rows.sort(key=lambda row: (row[0] or 0, row[1]))
        columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(2)]
        ordered = sorted(range(len(rows)), key=lambda n: (rows[n][0] or 0, rows[n][1])) == list(
            range(len(rows))
        )
        distinct = len(set(rows)) == len(rows)
        assert in_order(columns) is ordered
        assert in_order(columns, strictly=True) is (ordered and distinct)
        seen.add((ordered, distinct))
    assert len(seen) == 4


def test_what_is_reached_is_what_a_loop_reaches() -> None:
    dice, loops = np.random.default_rng(3), 0
    for _ in range(300):
        count = int(dice.integers(1, 60))
        spread = int(dice.choice([1, 3, 60]))
        following = np.minimum(np.arange(count) + dice.integers(1, spread + 1, count), count)
        place, reached = 0, []
        while place < count:
            reached.append(place)
            place = int(following[place])
        assert _reached(following).tolist() == reached
        loops += len(reached) < count
    assert loops > 100


def dictionary(indices: list[int | None], *values: str) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(values, pa.string()))


SOURCES = {
    "unused values": dictionary([3, 1, None, 1], "d", "c", "b", "a"),
    "a value twice": dictionary([2, 0, 1, 0], "b", "a", "b"),
    "nulls alone": dictionary([None, None], "b", "a"),
    "no rows": dictionary([], "b", "a"),
    "no values": dictionary([None]),
    "a slice": dictionary([0, 2, 1, 2], "b", "x", "a").slice(1, 2),
}


@pytest.mark.parametrize("values", SOURCES.values(), ids=SOURCES)
def test_ranks_compare_as_the_values_do(values: pa.DictionaryArray) -> None:
    texts, ranked = values.to_pylist(), ranks(values).to_pylist()
    assert [rank is None for rank in ranked] == [text is None for text in texts]
    known = [pair for pair in zip(texts, ranked, strict=True) if pair[0] is not None]
    for text, rank in known:
        assert [rank < other for _, other in known] == [text < other for other, _ in known]


@pytest.mark.parametrize("values", SOURCES.values(), ids=SOURCES)
def test_a_compacted_dictionary_has_the_values_of_its_rows_alone(values: pa.DictionaryArray) -> None:
    found = compacted(pa.table({SOURCE: values}))[SOURCE].combine_chunks()
    assert found.to_pylist() == values.to_pylist()
    assert set(found.dictionary.to_pylist()) == set(values.to_pylist()) - {None}


def test_pairs_of_texts_are_named_by_both_and_null_where_one_is() -> None:
    left = pa.array(["a", None, "b", "a", "b"]).dictionary_encode()
    right = pa.array([1, 0, 10, 1, None]).dictionary_encode()
    assert paired(left, right, " in ").to_pylist() == ["a in 1", None, "b in 10", "a in 1", None]
    assert paired(left[:0], right[:0], " in ").to_pylist() == []


@pytest.mark.parametrize("unit_us", [1, 1 << 56], ids=["near times", "times that are far apart"])
def test_a_time_has_its_place_in_the_segment_of_its_row(unit_us: int) -> None:
    dice = np.random.default_rng(2)
    sizes = dice.integers(1, 6, 100)
    time = np.concatenate([np.sort(dice.integers(0, 5, size)) for size in sizes])
    stream = Stream(pa.table({TIME: time * unit_us}), np.cumsum(sizes) - sizes)
    rows = np.arange(stream.rows)
    for shift in (-9, -1, 0, 2, 9):
        for side in ("left", "right"):
            found = stream.place(rows, stream.time + shift * unit_us, side)
            bounds = zip(stream.segment_start.tolist(), stream.segment_end.tolist(), strict=True)
            expected = [
                start + int(np.searchsorted(time[start:end], at + shift, side))
                for (start, end), at in zip(bounds, time.tolist(), strict=True)
            ]
            assert found.tolist() == expected
