"""One instance of several is lost: what Trischler 2013, section 7, observed, in a simulation of its set-up.

What equals: with 23 and 13 instances no queue comes near its bound; with 8 the bound of 8 is exceeded in some
runs, by two among others; with 7 a loss makes queues of 20; with 5 that are always busy they shrink only when
the input ends. What does not: the one run with 13 instances and a queue of 7 (here 3 at most, as in the
thesis's other runs), and the runs in which an instance was taken for lost that was not.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks.sizing.failure import Experiment, Outcome, simulate

SEEDS = range(12)
AT_TWENTY = 2.0  # completions of the fifth experiment, 20 in ten seconds; in the others 15
INPUT_SECONDS = 800


@cache
def runs(instances: int, completions: float = 1.5, losing: int | None = 1_000) -> tuple[Outcome, ...]:
    return tuple(simulate(Experiment(instances, completions, losing=losing), seed) for seed in SEEDS)


def longest(*experiment: float | None) -> list[int]:
    return sorted(outcome.longest() for outcome in runs(*experiment))  # type: ignore[arg-type]


@pytest.mark.parametrize(("instances", "bound"), [(23, 4), (13, 8)])
def test_enough_instances_keep_the_bound_with_room(instances: int, bound: int) -> None:
    assert longest(instances)[-1] <= 3 < bound


def test_eight_instances_exceed_the_bound_in_some_runs() -> None:
    found = longest(8)
    assert found[0] <= 8
    assert 10 in found
    exceeded = [outcome.seconds_above(8) for outcome in runs(8)]
    assert any(50 < seconds < 100 for seconds in exceeded)  # observed: 71 s


def test_seven_instances_reach_more_than_twice_the_bound() -> None:
    found = longest(7)
    assert found[0] <= 13 and found[-1] >= 28  # observed: 13 or fewer, 20, and 28 after a second, false loss
    assert 20 in found


def test_fewer_instances_have_longer_queues() -> None:
    medians = [float(np.median(longest(instances))) for instances in (23, 13, 8, 7)]
    medians.append(float(np.median(longest(5, AT_TWENTY))))
    assert medians == sorted(set(medians))


def test_a_loss_is_what_makes_queues_long() -> None:
    for instances in (8, 7):
        assert sum(longest(instances)) > sum(longest(instances, 1.5, None))


def test_instances_that_are_always_busy_recover_only_when_the_input_ends() -> None:
    for outcome in runs(5, AT_TWENTY):
        _, until, queued = outcome.queues()
        last = outcome.begin[-1]
        before = until[(queued > 8) & (until > outcome.lost_at)]
        assert before.max() > last - 60  # the bound is exceeded to the end of the input, or nearly
        assert outcome.end.max() > last


def test_the_loss_comes_when_it_did() -> None:
    assert all(295 < outcome.lost_at < 345 for outcome in runs(13))  # observed: 304 to 319 s
    assert all(outcome.begin[-1] == pytest.approx(INPUT_SECONDS, abs=60) for outcome in runs(13))


def test_every_selection_is_worked_off_once_and_the_lost_ones_are_dealt_again() -> None:
    experiment = Experiment(8)
    outcome = simulate(experiment, seed=3)
    lost = len(outcome.begin) - experiment.selections
    assert 0 < lost < 20
    gone = np.bincount(outcome.instance[(outcome.begin > outcome.lost_at + 10)], minlength=8)
    assert gone.min() > 0  # all have work in the end
    away = (outcome.begin >= outcome.lost_at + 10) & (outcome.begin < outcome.lost_at + 70)
    assert (np.bincount(outcome.instance[away], minlength=8) == 0).sum() == 1


def test_the_same_seed_gives_the_same_outcome() -> None:
    first, second = (simulate(Experiment(8), seed=5) for _ in range(2))
    assert np.array_equal(first.end, second.end)
