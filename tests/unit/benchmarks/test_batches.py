"""Schedulers of batches of windows on the two workloads of Mayer et al. 2017, made shorter.

The paper's period of the traffic, its speeds and its video are not given, so what is tested is which outcome
is above which. In the traffic, windows are of 50 s instead of 500, and come for half an hour instead of five;
comparing takes a hundred times as long, so that latencies are alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from benchmarks.sizing.batches import FACES, TRAFFIC, Costs, Outcome, Scheduler, State, simulate
from benchmarks.sizing.schedulers import FixedBatches, ModelBased, Reactive, RoundRobin, Settings
from benchmarks.sizing.workloads import L1, QUERY, Workload, faces, traffic

SHORTER = 10
CARS = traffic(1800, seed=1, gaps=(2.0, 0.2), period=1800, travel=(500 / SHORTER, 1))
PICTURES = faces(1800, seed=1, persons=3.0, query_gap=2.0)
COSTS = {"traffic": Costs(TRAFFIC.window, (0.0, TRAFFIC.seen[1] * SHORTER**2)), "faces": FACES}
SETTINGS = {"traffic": Settings(10, 8, 0.75, 2.0), "faces": Settings(10, 2, 1.0)}
WORKLOADS = {"traffic": CARS, "faces": PICTURES}
TIMES_AS_HIGH = (2.5, 5, 10)  # bounds, in peaks of round robin
EVERYONE = pytest.mark.parametrize("name", WORKLOADS)


def run(name: str, scheduler: Scheduler) -> Outcome:
    return simulate(WORKLOADS[name], COSTS[name], 8, scheduler)


@cache
def round_robin(name: str) -> Outcome:
    return run(name, RoundRobin())


@cache
def bounded(name: str, times: float) -> Outcome:
    return run(name, ModelBased(times * round_robin(name).peak, SETTINGS[name]))


@cache
def reactive(name: str) -> Outcome:
    share = 0.5 if name == "traffic" else 1.0  # TH 100 ms of 200 ms, 6 s of 6 s
    return run(name, Reactive(share * round_robin(name).peak))


@EVERYONE
@pytest.mark.parametrize("times", TIMES_AS_HIGH)
def test_the_model_keeps_the_bound(name: str, times: float) -> None:
    assert bounded(name, times).peak <= times * round_robin(name).peak


@EVERYONE
def test_round_robin_sends_most_and_has_the_lowest_peak(name: str) -> None:
    others = [*(bounded(name, times) for times in TIMES_AS_HIGH), reactive(name)]
    assert round_robin(name).sent > max(other.sent for other in others)
    assert round_robin(name).peak < min(other.peak for other in others)


def test_a_higher_bound_saves_more_communication() -> None:
    saved = [bounded("faces", times).saved(round_robin("faces")) for times in TIMES_AS_HIGH]
    assert np.diff(saved).min() > 0.05  # 14, 31 and 76 % in the paper


def test_in_traffic_a_bound_below_the_peak_of_round_robin_saves_less() -> None:
    """Above it, the bound hardly matters: once a queue grows, it grows by far more than the bounds differ."""
    saved = [bounded("traffic", times).saved(round_robin("traffic")) for times in (0.25, 0.5, *TIMES_AS_HIGH)]
    assert saved[0] < saved[1] < saved[2]
    assert saved[2:] == pytest.approx([0.43] * 3, abs=0.05)  # 53, 59 and 64 % in the paper


@EVERYONE
def test_the_reactive_scheduler_has_higher_peaks(name: str) -> None:
    assert reactive(name).peak > 1.15 * max(bounded(name, times).peak for times in TIMES_AS_HIGH)


@EVERYONE
def test_a_reactive_scheduler_that_looks_for_less_still_goes_above_the_bound(name: str) -> None:
    """Its feedback comes late: the threshold is far below the peak that comes of it."""
    for share in (0.25, 0.5):
        threshold = share * round_robin(name).peak
        assert run(name, Reactive(threshold)).peak > 5 * threshold


@dataclass
class Noted:
    """Fixed batches; of each window it notes the peak that the model predicts if the window joins."""

    batches: FixedBatches
    model: ModelBased
    predicted: list[float] = field(default_factory=lambda: [np.nan])

    def stays(self, state: State) -> bool:
        known = len(self.model.predicted)
        self.model.stays(state)
        self.predicted.append(self.model.predicted[-1] if len(self.model.predicted) > known else np.nan)
        return self.batches.stays(state)


def predicted_by_measured(alpha: float | None, bins: int, seconds: float = 0.2) -> list[float]:
    """Of the last window of each batch of four, once something is measured: the paper's synthetic faces."""
    work = faces(240, seed=1, persons=4.0, query_gap=None)
    noted = Noted(FixedBatches(4), ModelBased(np.inf, Settings(10, bins, 0.0, 0.0, alpha)))
    outcome = simulate(work, Costs(window=(seconds, 0.0), opening=(0.0, 0.1)), 8, noted)
    last = np.flatnonzero(np.diff(outcome.instance))[5:-5]  # at the end faces are missing
    measured = [
        np.nanmax(outcome.latency[work.opening[window] : work.close[window], outcome.instance[window]])
        for window in last
    ]
    return (np.array(noted.predicted)[last] / np.array(measured)).tolist()


@pytest.mark.parametrize("bins", [2, 4, 8])
def test_t_count_is_pessimistic_but_less_than_no_compensation(bins: int) -> None:
    """As in the paper's figure 13, where faces take so long that queues last from one picture to the next."""
    counted, none, all_of_it = (predicted_by_measured(alpha, bins) for alpha in (None, 0.0, 1.0))
    assert max(all_of_it) < 1 <= min(counted)
    assert max(counted) < 1.5 < min(none)


def test_the_model_underestimates_queues_that_end_before_the_next_picture() -> None:
    """The time until the next picture is set off against faces that all came before it."""
    assert max(predicted_by_measured(None, 2, seconds=0.05)) < 1


def counted(events: int, size: int, slide: int) -> Workload:
    """Windows by count over events a second apart that all open none but every `slide`-th."""
    time = np.arange(float(events))
    opening = np.arange(0, events, slide)
    return Workload(time, np.zeros(events, np.int64), np.arange(events), opening, opening + size - 1.0)


@pytest.mark.parametrize(("slide", "instances", "copies"), [(10, 2, 2), (5, 2, 2), (5, 4, 4)])
def test_round_robin_copies_each_event_to_the_instances_of_its_windows(
    slide: int, instances: int, copies: int
) -> None:
    """The numbers of Amann 2018, section 5.4.3: windows of 20."""
    outcome = simulate(counted(200, 20, slide), Costs(), instances, RoundRobin())
    assert set((~np.isnan(outcome.latency)).sum(axis=1)[20:].tolist()) == {copies}


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_a_batch_has_each_event_once(batch: int) -> None:
    """s + (b − 1) d events instead of b s."""
    size, slide = 20, 5
    outcome = simulate(counted(400, size, slide), Costs(), 8, FixedBatches(batch))
    first = np.flatnonzero(np.diff(outcome.instance))[0] + 1
    assert first == batch
    row = batch * slide * 8  # the first instance's second batch begins; its first has ended
    assert (~np.isnan(outcome.latency[:row, 0])).sum() == size + (batch - 1) * slide


def test_an_event_is_processed_once_in_each_window_after_those_before_it() -> None:
    """Two windows in one instance: the first event takes 1 s in one, the second 1 s in two."""
    work = counted(3, 3, 1)
    outcome = simulate(work, Costs(window=(1.0, 0.0)), 1, RoundRobin())
    assert outcome.latency[:, 0].tolist() == [1.0, 2.0, 4.0]


def test_an_event_is_compared_with_those_that_its_own_windows_have_seen() -> None:
    """L1, L1, L2 in windows that the first two open: the third is compared with two and with one."""
    work = Workload(
        np.array([0.0, 1.0, 2.0]),
        np.array([0, 0, 1]),
        np.zeros(3, np.int64),
        np.array([0, 1]),
        np.full(2, 9.0),
    )
    state = State(work, 1)
    for row in range(3):
        state.row, state.time = row, float(row)
        if row < 2:
            state.add_window(0)
        state.process(Costs(window=(0.0, 1.0), seen=(0.0, 1.0)), None)
    assert state.processing[:, 0].tolist() == [0.0, 0.0, 5.0]
    assert state.squares[2, 0] == 3**2 + 2**2


def test_the_traffic_is_as_dense_as_it_is_asked_to_be() -> None:
    first = CARS.time[CARS.kind == L1]
    slow = ((first < 100) | (first > 1700)).sum() / 200
    fast = ((first > 800) & (first < 1000)).sum() / 200
    assert (slow, fast) == (pytest.approx(0.5, rel=0.3), pytest.approx(5.0, rel=0.3))
    assert (CARS.end - CARS.time[CARS.opening]).mean() == pytest.approx(50, rel=0.01)
    assert len(CARS.time) == 2 * len(CARS.opening)


def test_the_faces_of_the_synthetic_workload() -> None:
    """Four faces every two seconds, 10 ms apart, and a query every second."""
    steady = faces(100, seed=0, persons=4.0, query_gap=None)
    shown = steady.time[steady.kind != QUERY]
    assert np.diff(shown)[:7] == pytest.approx([0.01, 0.01, 0.01, 1.97, 0.01, 0.01, 0.01])
    assert np.diff(steady.time[steady.opening]) == pytest.approx(np.ones(99))
    assert steady.end - steady.time[steady.opening] == pytest.approx(np.full(100, 10.0))
