"""The runner of the measurements: its rows, its comparison, its model, and the page that shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks import patterns
from benchmarks.carry import SCHEMA, payments
from benchmarks.core_runs import plan_of, timed_batches
from benchmarks.growth import MOVED, STAGES
from benchmarks.report.document import PAGE, filled, kept
from benchmarks.report.model import Fit, Place, between, computed, fit, fits
from benchmarks.report.plots import write
from benchmarks.report.results import Results
from benchmarks.report.table import changes
from benchmarks.rows import SIZES, Row
from benchmarks.run import MEASUREMENTS, main

POINTS, CARRIED = 6, len(SIZES["small"].carried)


def test_a_run_writes_its_rows_and_their_plots(tmp_path: Path):
    """The rows of `growth`, to which the model is fitted."""
    given = ["--sizes", "small", "--events", "1000", "--out", str(tmp_path), "growth"]
    ran = CliRunner().invoke(main, given, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    results = Results.read(tmp_path / "results.json")
    assert {row.measurement for row in results.rows} == {"growth"}
    assert len(results.rows) == (len(STAGES) + len(MOVED)) * POINTS * CARRIED
    assert all(row.value >= 0 and row.checked for row in results.rows)
    points = {stage: model.points for stage, model in fits(results.rows).items()}
    assert points.pop("write") <= POINTS * CARRIED  # there is no append without matches
    assert points == dict.fromkeys(("read", "intake", "splitter", "operators", "merger"), POINTS * CARRIED)
    moved = fits(results.rows, "bytes")
    assert list(moved) == list(MOVED)
    assert moved["file"].of(1000, 0, 0) > moved["frames"].of(1000, 0, 0) > 1000
    assert results.machine["cores"] > 0
    assert (tmp_path / "growth_s.png").stat().st_size > 1_000
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_batches_whose_matches_differ_have_no_figures():
    """The second batch is late, so its events are not in the matches."""
    rule = "{name: late, pattern: {sequence: [{a: value < 5}, {b: value > 900}]}, within: 1 d}"
    random = np.random.default_rng(1)
    batches = [payments(first, 100, 50, random) for first in (1_000, 0)]
    plan = plan_of(SCHEMA, "event_time: time", [rule])
    assert len(timed_batches(plan, reversed(batches))[0]) == 2
    with pytest.raises(SystemExit, match="late — batches must give the matches of one batch"):
        timed_batches(plan, batches)


def test_the_digest_is_that_of_the_peers():
    """The first match of the stream, by the arithmetic of `Found.java`."""
    members = [{"source": "part-000.json", "offset": 3}, {"source": "part-001.json", "offset": 2}]
    events = pa.array([members])
    digest, mask = 0xCBF29CE484222325, (1 << 64) - 1
    for position in (3, 7):  # 100 events in 20 files: the second file begins with the fifth event
        mixed = ((digest ^ position) * 0x100000001B3) & mask
        digest = ((mixed ^ (mixed >> 32)) * 0x9E3779B97F4A7C15) & mask
    assert patterns.found_by(pa.table({"events": events}), 100) == (1, f"{digest:016x}")


@pytest.mark.parametrize(
    ("target", "value", "ratio", "reached"),
    [
        (None, 1.0, None, None),
        (">= 2", 1.0, 2.0, True),
        ("<= 2", 3.0, None, False),
        (">= 2", 9.0, 1.0, False),
    ],
)
def test_a_target_is_of_the_ratio_if_there_is_one(
    target: str | None, value: float, ratio: float | None, reached: bool | None
):
    assert Row("m", "c", value, "s", ratio, target).reached is reached


def test_only_ratios_are_compared():
    old = [Row("m", "a", 5.0, "s", 2.0), Row("m", "b", 5.0, "s"), Row("m", "c", 2.0, "times")]
    new = [
        Row("m", "a", 9.0, "s", 1.0),
        Row("m", "b", 9.0, "s"),
        Row("m", "c", 3.0, "times"),
        Row("m", "d", 1, "times"),
    ]
    found = changes(Results({}, {}, old), Results({}, {}, new))
    assert found == [(("m", "a"), 2.0, 1.0), (("m", "c"), 2.0, 3.0)]


def test_the_costs_are_found_again():
    random = np.random.default_rng(1)
    sizes = random.integers(1, 1_000_000, (60, 3)).astype(np.float64)
    costs = (0.05, 2e-6, 3e-8, 4e-6)
    exact = np.column_stack([np.ones(60), sizes]) @ costs
    found = fit(sizes, exact)
    np.testing.assert_allclose(found.costs, costs, rtol=1e-6)
    assert found.worst < 1e-6
    noisy = fit(sizes, exact * random.normal(1, 0.05, 60))
    np.testing.assert_allclose(noisy.costs[1], costs[1], rtol=0.1)
    assert 0.03 < noisy.residual < 0.07


def test_no_cost_is_negative():
    sizes = np.array([[10.0, 5, 1], [20, 4, 1], [30, 3, 1], [40, 2, 2]])
    found = fit(sizes, np.array([1.0, 2, 3, 4]))
    assert min(found.costs) >= 0
    np.testing.assert_allclose(found.costs[1], 0.1, rtol=1e-6)


def test_executors_share_some_stages_only():
    one = fit(np.array([[1.0, 0, 0], [2, 0, 0], [4, 0, 0]]), np.array([1.0, 2, 4]))
    models = {"read": one, "splitter": one}
    assert computed(models, (8, 0, 0), 1, 0.5) == pytest.approx(16.5)
    assert computed(models, (8, 0, 0), 4, 0.5) == pytest.approx(10.5)


def test_a_network_a_store_and_a_scheduler_take_their_time():
    of = {
        "file": 400,
        "frames": 80,
        "lanes": 10,
        "results": 10,
        "state": 50,
        "state, packed": 5,
        "table": 5,
    }
    moved = {what: Fit((size, 0, 0, 0), 0, 0, 1) for what, size in of.items()}
    assert set(between(moved, (1, 1, 1), Place(4)).values()) == {0}
    place = Place(4, network=10, store=5, waits=2, per_task=0.5)
    parts = {"network": 10 + 7.5, "checkpoint and tables": 2 + 11, "scheduling": 4}
    assert between(moved, (1, 1, 1), place) == pytest.approx(parts)
    packed = between(moved, (1, 1, 1), replace(place, is_packed=True))
    assert packed == pytest.approx(parts | {"checkpoint and tables": 2 + 2})


def test_the_page_shows_the_results_that_are_kept():
    page = PAGE.read_text()
    results = Results.read(kept())
    assert filled(page, results) == page, "run python -m benchmarks.report.document"
    changed = replace(results, rows=[replace(row, value=2 * row.value) for row in results.rows])
    assert filled(page, changed) != page
    assert {row.measurement for row in results.rows} <= {*MEASUREMENTS, "memory"}


def test_plots_have_a_bar_for_each_row(tmp_path: Path):
    rows = [Row("m", f"case {number}", float(number), "s", None, "<= 1") for number in range(3)]
    page = write(Results({"commit": "<x>"}, {}, rows), tmp_path).read_text()
    assert "&lt;x&gt;" in page
    assert page.count('class="missed"') == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m_s.png", "report.html"]
