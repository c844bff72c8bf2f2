"""Jobs of random graphs that are killed: ``python -m tests.long.levels.kills --jobs 20 --kills 6 --seed 0``.

Each job has graphs of its own: rules over rules, folds, panes, and a table that is joined and changes from
batch to batch. It is killed at random moments, in a process that is chosen at random, and started again until
its input is done; its rows must be the oracle's. A short run is in `tests/integration/test_kills.py`,
for `make test-long`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import click

from spark_pace.core.plan.rule import Rule
from tests.long.chaos.moments import IN_THE_END, OF_LOOKUPS
from tests.long.chaos.series import Kill, Outcome, Series, kills_by_chance
from tests.long.levels.driver import keep
from tests.support.graph_jobs import Graph, GraphJob, drawn_graphs, make_graph_job

FILES_FOR_A_KILL, EVENTS = 3, 96  # of many more events the oracle is too slow
# each passes in every batch with matches, but for those of the end
MOMENTS = (
    *("query unstarted", *OF_LOOKUPS, "state committed", "levels unwritten", "levels written"),
    *("numbers unwritten", "numbers written", "matches written", "metrics written", *IN_THE_END),
)
TOLD = ("s3a://",)  # that a lease is waited for
WHOM = ("driver", "group", "jvm", "worker", "daemon")


def random_kills(chance: Random, rules: Sequence[Rule], count: int) -> list[Kill]:
    """So many kills; one in the end comes last."""
    functions = {"fold" if rule.reads else "operator" for rule in rules if rule.function is not None}
    kills = kills_by_chance(chance, count, [*WHOM, *sorted(functions)], MOMENTS)
    last = [kill for kill in kills if kill.moment in IN_THE_END]
    return [*(kill for kill in kills if kill not in last), *last[:1]]


def killed_job(folder: Path, drawn: Iterator[Graph], seed: int, kills: int) -> tuple[GraphJob, Outcome]:
    """Make a job, and kill it so many times until it ends."""
    chance = Random(seed)
    job = make_graph_job(folder, drawn, chance, (FILES_FOR_A_KILL * (kills + 1), EVENTS))
    return job, killed(job, folder, seed, random_kills(chance, job.spec.rules, kills))


def killed(job: GraphJob, folder: Path, seed: int, kills: Sequence[Kill]) -> Outcome:
    """Kill a job, whose files are in the folder, at these moments until it ends."""
    path = keep(job, folder / "job.pickle")
    return Series(path, folder / "logs", seed, driver="tests.long.levels.driver", told=TOLD).run(kills)


@click.command()
@click.option("--jobs", default=20, help="How many.")
@click.option("--kills", default=6, help="Of each job.")
@click.option("--seed", default=0, help="The same seed, the same jobs and kills, if not the same moments.")
@click.option("--first", default=0, help="The job to begin with: go on where a run has stopped.")
def main(jobs: int, kills: int, seed: int, first: int) -> None:
    """Kill jobs, and compare what they write with the oracle."""
    began, survived, wrong = time.monotonic(), Counter[str](), 0
    for number in range(first, first + jobs):
        folder = Path(tempfile.mkdtemp(prefix="killed-graphs-"))
        start = 1_000 * seed + number
        job, outcome = killed_job(folder / "job", drawn_graphs(start), start, kills)
        apart = [*outcome.complaints, *job.differences()]
        survived.update(one.kill.whom for one in outcome.survived)
        print(
            f"job {number}: {len(job.spec.rules)} rules, {sum(map(len, job.expected.values()))} matches, "
            f"{len(outcome.survived)} kills, {outcome.starts} starts, {len(outcome.unspent)} not reached; "
            f"differences: {len(apart)}",
            flush=True,
        )
        if apart:
            wrong += 1
            print("\n".join([*apart, f"kept: {folder}"]), flush=True)
        else:
            shutil.rmtree(folder)
    told = ", ".join(f"{whom} {times}" for whom, times in sorted(survived.items()))
    minutes = (time.monotonic() - began) / 60
    print(f"{jobs} jobs, {survived.total()} kills ({told}) in {minutes:.1f} minutes; {wrong} jobs differ")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
