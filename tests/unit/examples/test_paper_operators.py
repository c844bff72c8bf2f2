"""The examples `overtaking` and `faces`: what the rules find is what a sequential program finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples.faces import operators
from examples.faces.stream import seen, stream
from examples.overtaking.traffic import BEGIN_US, cars, overtakings
from spark_pace import load_rules, replay

ROOT = Path(__file__).parents[3]
OVERTAKING = load_rules(ROOT / "examples" / "overtaking" / "rule.yaml")
SEEN = load_rules(ROOT / "examples" / "faces" / "rule.yaml")


def found(events: pa.Table) -> list[tuple[str, str]]:
    matches = replay(OVERTAKING, events).matches
    return list(zip(matches["overtook"].to_pylist(), matches["overtaken"].to_pylist(), strict=True))


def passing(*cameras: str) -> pa.Table:
    """Cars named by letters at L1 and then at L2, a second apart."""
    rows = [(camera, plate) for camera, plates in zip(("L1", "L2"), cameras, strict=True) for plate in plates]
    time = pa.array(range(len(rows))).cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    return pa.table([time, *map(list, zip(*rows, strict=True))], ["time", "camera", "plate"])


def test_three_cars_that_come_out_in_reverse_overtook_each_other() -> None:
    events = passing("abc", "cba")
    assert sorted(found(events)) == [("b", "a"), ("c", "a"), ("c", "b")]
    assert sorted(overtakings(events)) == sorted(found(events))


def test_cars_that_keep_their_order_overtook_nobody() -> None:
    assert found(passing("abc", "abc")) == overtakings(passing("abc", "abc")) == []


@pytest.mark.parametrize(("seed", "spread"), [(1, 2.0), (2, 15.0)])
def test_the_rule_finds_all_overtakings_of_a_stream_in_the_order_of_their_windows(
    seed: int, spread: float
) -> None:
    events = cars(120, seed, spread, dense=1.0)
    expected = overtakings(events)
    assert len(expected) > 10
    assert sorted(found(events)) == sorted(expected)
    overtaken = [slow for _, slow in found(events)]
    assert overtaken == [slow for _, slow in expected]  # by selection, which is by window


def test_a_car_that_takes_longer_than_the_window_is_not_overtaken() -> None:
    late = pa.array([0, 1_000_000, 2_000_000, 1_300_000_000]).cast(pa.timestamp("us"))
    events = pa.table([late, ["L1", "L1", "L2", "L2"], list("abba")], ["time", "camera", "plate"])
    assert found(events) == overtakings(events) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_the_operator_sees_whom_the_sequential_program_sees(seed: int) -> None:
    events = stream(120, seed)
    expected = seen(events)
    assert len(expected) > 10
    columns = (replay(SEEN, events).matches[name] for name in ("query", "faces", "first_seen", "last_seen"))
    rows = zip(*(pc.cast(column, pa.int64()).to_pylist() for column in columns), strict=True)
    assert sorted(rows) == expected
    assert all(first >= BEGIN_US for _, _, first, _ in expected)


def test_pictures_of_a_person_are_alike_and_of_two_are_not() -> None:
    """What the sequential program takes for granted holds with room to spare."""
    of_two = [operators.features(person * operators.VARIANTS + 7) for person in range(60)]
    of_one = [operators.features(5 * operators.VARIANTS + variant) for variant in range(60)]
    assert min(float(of_one[0] @ other) for other in of_one) > 0.85
    assert np.max(np.array(of_two) @ np.array(of_two).T - np.eye(60)) < 0.6


def test_what_a_comparison_costs_changes_nothing_else() -> None:
    rule = (ROOT / "examples" / "faces" / "rule.yaml").read_text()
    events = stream(30, 1)
    cheap = replay(SEEN, events).matches
    assert cheap.num_rows and replay(
        load_rules(rule.replace(":recognize", ":recognize_slowly")), events
    ).matches.equals(cheap)
