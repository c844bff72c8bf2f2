"""The simulations of `docs/sizing.md` at full length: a table of figures on the terminal, and its plots.

`python -m benchmarks.sizing` takes some minutes. The same seeds give the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure

from benchmarks.sizing.batches import FACES, TRAFFIC, Costs, Outcome, Scheduler, simulate
from benchmarks.sizing.failure import Experiment
from benchmarks.sizing.failure import simulate as simulate_failure
from benchmarks.sizing.schedulers import ModelBased, Reactive, RoundRobin, Settings
from benchmarks.sizing.workloads import Workload, faces, traffic

PLOT = Path(__file__).parents[2] / "docs" / "sizing.png"
INSTANCES = 8
HOUR = 3600.0
# instances, completions of one in a second, the longest queue allowed (Trischler, section 7)
FAILURES = [(23, 1.5, 4), (13, 1.5, 8), (8, 1.5, 8), (7, 1.5, 8), (5, 2.0, 8)]
SEEDS = 100


@dataclass(frozen=True)
class Scenario:
    """One of the paper's two, with the schedulers that it compares; the first is round robin."""

    name: str
    workload: Workload
    costs: Costs
    schedulers: dict[str, Scheduler]


def scenarios() -> Iterator[Scenario]:
    """The traffic of five hours, and the faces of 150 minutes."""
    for_traffic, for_faces = Settings(60, 8, 0.75, 2.0), Settings(10, 2, 1.0)
    yield Scenario(
        "traffic",
        traffic(5 * HOUR, seed=1, gaps=(2.0, 0.2), period=5 * HOUR, travel=(500, 10)),
        TRAFFIC,
        {
            "round robin": RoundRobin(),
            **{f"model, bound {bound} s": ModelBased(bound, for_traffic) for bound in (0.1, 0.5, 1, 2)},
            "reactive, threshold 0.1 s": Reactive(0.1),
        },
    )
    yield Scenario(
        "faces",
        faces(2.5 * HOUR, seed=1, persons=3.0, query_gap=2.0),
        FACES,
        {
            "round robin": RoundRobin(),
            **{f"model, bound {bound} s": ModelBased(bound, for_faces) for bound in (15, 30, 60)},
            "reactive, threshold 6 s": Reactive(6),
        },
    )


def compare(scenario: Scenario) -> dict[str, Outcome]:
    """Simulate all schedulers, and print a row of a table for each."""
    found: dict[str, Outcome] = {}
    print(f"\n| {scenario.name} | peak | 99.9 % below | events sent | saved |\n|---|---|---|---|---|")
    for name, scheduler in scenario.schedulers.items():
        found[name] = simulate(scenario.workload, scenario.costs, INSTANCES, scheduler)
        outcome, saved = found[name], found[name].saved(found["round robin"])
        peak, most = (f"{seconds:.3g} s" for seconds in (outcome.peak, outcome.quantile(0.999)))
        print(f"| {name} | {peak} | {most} | {outcome.sent:,} | {saved:.0%} |", flush=True)
    return found


def lose() -> None:
    """Simulate the loss of an instance, and print a row for each experiment."""
    print("\n| instances | queue allowed | longest queue: median, range | runs above | s above |")
    print("|---|---|---|---|---|")
    for instances, completions, queue in FAILURES:
        experiment = Experiment(instances, completions)
        runs = [simulate_failure(experiment, seed) for seed in range(SEEDS)]
        longest = np.array([run.longest() for run in runs])
        above = np.array([run.seconds_above(queue) for run in runs])
        median, low, high = np.median(longest), longest.min(), longest.max()
        share = float((longest > queue).mean())
        print(
            f"| {instances} | {queue} | {median:g}, {low} to {high} | {share:.0%} | {np.median(above):.0f} |"
        )


def plot(outcomes: dict[str, dict[str, Outcome]]) -> None:
    """Draw for each scenario the latencies, and the events sent."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots(2, 2, height_ratios=(2, 1))
    for (name, found), (above, below) in zip(outcomes.items(), axes.T, strict=True):
        for label, outcome in found.items():
            latency = np.sort(outcome.latency[~np.isnan(outcome.latency)])
            slowest = np.unique(np.geomspace(1, len(latency) // 2, 500).astype(int))
            above.loglog(latency[-slowest], slowest / len(latency), label=label)
        above.set(title=name, xlabel="operational latency (s)", ylabel="share of events at or above")
        above.legend(fontsize="small")
        below.barh(list(found), [outcome.sent / 1_000 for outcome in found.values()])
        below.invert_yaxis()
        below.set_xlabel("events sent (thousands)")
    figure.savefig(PLOT, dpi=80)


@click.command(help=__doc__)
def main() -> None:
    """Print the tables and write the plots."""
    lose()
    plot({scenario.name: compare(scenario) for scenario in scenarios()})
    print(f"\nplots: {PLOT}")


if __name__ == "__main__":
    main()
