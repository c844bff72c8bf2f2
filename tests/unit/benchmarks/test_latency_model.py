"""The latency model of Mayer et al. 2017, section 4: the numbers of its figures, and what holds for all."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sizing.latency import (
    Bins,
    average_overlap,
    binned,
    compensation,
    dear_types,
    gains,
    latency_peak,
    of_all_types,
    paired,
    predicted_events,
    queue_peak,
)

ONE = np.ones(1)


def always(value: float) -> Bins:
    return Bins(np.array([value]), ONE)


FIGURE_6 = [(2 / 7, always(8.0)), (2 / 7, always(7.0)), (2 / 7, always(4.0)), (1 / 7, always(2.0))]


def test_the_gains_of_figure_6() -> None:
    found = gains(paired(of_all_types(FIGURE_6), always(5.0)), overlap=1.0, events=7)
    assert found == pytest.approx((10.0, -5.0))


@pytest.mark.parametrize(("alpha", "peak"), [(0, 10), (0.8, 6), (1, 5)])
def test_the_peaks_of_figure_6(alpha: float, peak: float) -> None:
    assert queue_peak(0.0, 10.0, -5.0, alpha) == pytest.approx(peak)
    assert queue_peak(3.0, 10.0, -5.0, alpha) == pytest.approx(peak + 3)


def test_a_queue_that_becomes_shorter_is_at_its_peak_now() -> None:
    assert queue_peak(4.0, 1.0, -5.0, 1.0) == 4.0


def test_the_overlap_of_figure_8() -> None:
    assert average_overlap(scope=10, shift=1, overlap=4) == pytest.approx(3.4)
    assert average_overlap(scope=10, shift=1, overlap=1) == 1.0


def test_windows_that_should_be_closed_close_now() -> None:
    assert average_overlap(scope=10, shift=5, overlap=4) == pytest.approx(2.0)


def test_bins_hold_what_fell_into_them() -> None:
    found = binned(np.array([0.0, 1.0, 1.0, 9.0, 10.0, 10.0]), 5, 0.0)
    assert found.mean == pytest.approx([2 / 3, 29 / 3])
    assert found.weight == pytest.approx([0.5, 0.5])
    assert found.average == pytest.approx(31 / 6)


def test_a_bias_moves_all_bins_by_the_deviations_of_all_values_and_never_below_0() -> None:
    values = np.array([0.0, 4.0, 8.0])
    assert binned(values, 2, 1.5**0.5).mean == pytest.approx([4.0, 10.0])
    assert binned(values, 2, -(1.5**0.5)).mean == pytest.approx([0.0, 2.0])
    assert binned(np.full(3, 7.0), 4, -1.0).mean == pytest.approx([7.0])


def test_the_dearest_events_come_in_the_shortest_distances() -> None:
    latency = Bins(np.array([1.0, 5.0]), np.array([0.5, 0.5]))
    gap = Bins(np.array([1.0, 9.0]), np.array([0.25, 0.75]))
    # of 8 events, 2 take 5 and have distance 1; 2 take 5, distance 9; 4 take 1, distance 9
    assert gains(paired(latency, gap), 1.0, 8) == pytest.approx((8.0, -8.0 - 32.0))


def test_gains_sum_to_what_all_events_take_less_their_distances() -> None:
    chance = np.random.default_rng(7)
    for count in range(1, 9):
        latency = binned(chance.exponential(1.0, 50), count, 0.0)
        gap = binned(chance.exponential(1.0, 50), 9 - count, 0.0)
        negative, positive = gains(paired(latency, gap), 3.0, 20.0)
        assert negative >= 0 >= positive
        assert negative + positive == pytest.approx(20 * (3 * latency.average - gap.average))


def test_more_bins_never_predict_less_negative_gain() -> None:
    """Without a bias, one bin for all hides what bursts do; the paper finds its predictions poor."""
    chance = np.random.default_rng(8)
    gap = np.where(np.arange(400) % 5 < 4, 0.01, 1.96)  # four faces at once, every two seconds
    latency = binned(chance.uniform(0.2, 0.4, 400), 1, 0.0)
    found = [gains(paired(latency, binned(gap, count, 0.0)), 1.0, 400)[0] for count in (1, 2, 4, 8)]
    assert found[0] == 0
    assert found[1:] == pytest.approx([400 * 0.8 * (latency.average - 0.01)] * 3)


def test_the_events_of_a_window() -> None:
    assert predicted_events(10.0, np.array([0.5, 0.5]), 1.0) == 20
    assert predicted_events(10.0, np.array([0.4, 0.6]), 1.0) == pytest.approx(25)
    assert predicted_events(10.0, np.array([0.01, 0.01, 0.01, 1.97]), 1.0) == pytest.approx(80)  # a quarter


@pytest.mark.parametrize(
    ("events", "alpha"),
    [
        ("aabb", 0.0),
        ("abab", 0.5),
        ("abababab", 0.75),
        ("aaab", 0.0),
        ("aaaa", 0.0),
        ("", 0.0),
        ("baab", 0.25),
    ],
)
def test_the_transitions_of_t_count(events: str, alpha: float) -> None:
    dear = np.array([event == "a" for event in events], np.bool_)
    assert compensation(dear) == alpha


def test_half_of_the_types_are_dear() -> None:
    assert dear_types([4.0, 8.0, 2.0, 7.0]).tolist() == [False, True, False, True]
    assert dear_types([4.0, 8.0, 2.0]).tolist() == [False, True, False]


def test_the_peak_ends_with_the_event_that_takes_longest() -> None:
    assert latency_peak(10.0, of_all_types(FIGURE_6), overlap=3.4) == pytest.approx(10 + 27.2)
