"""The slowest rules of the core: some that are always the same, then a random search for worse ones.

Every rule has few matches: what is slow is the search, not the output. Random rules are of any form, context
and data; one that finds more matches than a stream has events is left out. They run in another process, which
is ended when the time of a rule is over. Figures are processor time, from a batch's columns to its numbered
matches. Before a rule is timed, its matches in the first events are compared with what the definitions say,
read literally (`tests/oracle`).

    python -m benchmarks.worst [--events N] [--limit SECONDS] [--rules N] [--seed N]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from multiprocessing import get_context
from multiprocessing.pool import Pool
from time import perf_counter

import click
import psutil
import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.core_runs import plan_of
from benchmarks.rows import Row, Sizes, processor, require
from benchmarks.worst_rules import EVENT_TIME, FIXED, LEAST, SCHEMA, Trial, random_trials
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import RuleError, counted

CHECKED = 40  # events, of which the slow reading makes all candidates
WARM = 2_000  # events that compile what is needed, and tell whether matches are few
WORST = 10
EVENTS, LIMIT = 60_000, 20.0  # of the fixed rules: of each stream, and processor seconds
RULES, RANDOM_EVENTS, RANDOM_LIMIT = 200, 20_000, 5.0  # of the random ones
LOOK_SECONDS = 0.1
SPEED, TARGET = "events/s", ">= 1e6"
CHECKED_ON = f"the definitions, on the first {CHECKED} events"
MANY, REFUSED = "many matches", "no rule"

Result = tuple[float | str, int]  # events a processor second, or what has come instead; the matches


def checked(rule: Rule, trial: Trial) -> str:
    """How the core differs from the definitions on the first events; nothing if it does not."""
    oracle, results = import_module("tests.oracle.matches"), import_module("tests.support.results")
    rows = pa.table(trial.columns(CHECKED)).to_pylist()
    events = [
        oracle.Event(time, "events", number, {"time": time, **row})
        for number, (time, row) in enumerate(zip(range(0, CHECKED * 1000, 1000), rows, strict=True))
    ]
    expected = results.from_oracle(rule, oracle.evaluate(rule, events))
    plan = build_plan([rule], order=OrderSpec())
    found = run(plan, [results.table_of(rule, events)]).matches
    return str(results.difference(expected, results.from_core(rule, found)))


def result(trial: Trial, count: int) -> Result:
    """The result of a rule; of one that has too many matches, or wrong ones, it is a word."""
    try:
        plan = plan_of(SCHEMA, EVENT_TIME, [trial.rule])
    except RuleError:
        return REFUSED, 0
    if found := checked(plan.rules[0].rule, trial):
        return f"wrong: {found}", 0
    few = trial.table(min(count, WARM))
    if run(plan, [few]).matches.num_rows > few.num_rows:
        return MANY, 0
    table, matches = trial.table(count), list[int]()
    seconds = processor(lambda: matches.append(run(plan, [table]).matches.num_rows))
    return (count / seconds if matches[0] <= count else MANY), matches[0]


def results_of(trials: Iterable[Trial], count: int, limit: float) -> Iterator[tuple[Trial, Result]]:
    """The results of rules, from a process that begins anew where a rule's time is over."""
    pool: Pool | None = None
    for trial in trials:
        if pool is None:
            pool = get_context("spawn").Pool(1)
            pool.apply(result, (LEAST, WARM))  # which loads what is needed
            process = psutil.Process(pool.apply(os.getpid))
        begun = process.cpu_times().user
        waiting = pool.apply_async(result, (trial, count))
        while not waiting.ready() and process.cpu_times().user < begun + limit:
            waiting.wait(LOOK_SECONDS)
        if waiting.ready():
            yield trial, waiting.get()
        else:
            yield trial, (f"not done after {limit:g} s", 0)
            pool.terminate()
            pool = None


def _badness(speed: float | str) -> float:
    """A number that ascends from wrong results over those that were not done to the fast ones."""
    if isinstance(speed, float):
        return speed
    return -1.0 if speed.startswith("wrong") else 0.0


def worst(count: int, limit: float, rules: int, seed: int) -> Iterator[tuple[Trial, Result]]:
    """The results of random rules, the worst ones first."""
    results = results_of(random_trials(rules, seed), count, limit)
    told = [(trial, result) for trial, result in results if result[0] not in (MANY, REFUSED)]
    yield from sorted(told, key=lambda one: _badness(one[1][0]))[:WORST]


def shown(results: Iterator[tuple[Trial, Result]], console: Console, title: str) -> bool:
    """Show results as a table; whether all of them are right."""
    table = Table(title=title)
    for column in ("rule", "data", "events/s", "matches"):
        table.add_column(column, overflow="fold")
    right = True
    for trial, (speed, matches) in results:
        text = f"{speed:,.0f}" if isinstance(speed, float) else speed
        right &= not text.startswith("wrong")
        table.add_row(escape(trial.name or trial.rule), trial.data, escape(text), f"{matches:,}")
    console.print(table)
    return right


def measure(_sizes: Sizes) -> Iterator[Row]:
    """The fixed rules, then the worst of the random ones.

    The figure of a rule that was not done in time is one that it stays below.

    Raises:
        SystemExit: a rule's matches are wrong.
    """
    fixed = ((EVENTS / LIMIT, trial, found) for trial, found in results_of(FIXED, EVENTS, LIMIT))
    of_random = worst(RANDOM_EVENTS, RANDOM_LIMIT, RULES, 0)
    random = ((RANDOM_EVENTS / RANDOM_LIMIT, trial, found) for trial, found in of_random)
    for least, trial, (speed, matches) in chain(fixed, random):
        rule = trial.rule.removeprefix("{name: r, ").removesuffix("}")
        text = f"{(trial.name or rule).replace(';', ':')}, {trial.data}"
        if isinstance(speed, str):
            require(not speed.startswith("wrong"), f"{text} — {speed}")
            yield Row("worst", f"{text}: {speed}", least, SPEED, target=TARGET, checked=CHECKED_ON)
        else:
            target = TARGET if trial.name else None
            case = f"{text}: {counted(matches, 'match')}"
            yield Row("worst", case, speed, SPEED, target=target, checked=CHECKED_ON)


@click.command()
@click.option("--events", default=EVENTS, show_default=True, help="Of each stream.")
@click.option("--limit", default=LIMIT, show_default=True, help="Processor seconds for each rule.")
@click.option("--rules", default=RULES, show_default=True, help="Random ones; 0: none.")
@click.option("--random-events", default=RANDOM_EVENTS, show_default=True, help="Of each stream of these.")
@click.option("--random-limit", default=RANDOM_LIMIT, show_default=True, help="Seconds for each of these.")
@click.option("--seed", default=0, show_default=True, help="The same seed, the same rules.")
@click.option("--only", default="", help="Only fixed rules whose name has this.")
def main(
    events: int, limit: float, rules: int, random_events: int, random_limit: float, seed: int, only: str
) -> None:
    """Measure the fixed rules, then look for worse ones; the exit code is 1 if a rule's matches are wrong."""
    console = Console(width=150 if not sys.stdout.isatty() else None)
    began = perf_counter()
    fixed = [trial for trial in FIXED if only in trial.name]
    right = shown(results_of(fixed, events, limit), console, f"{events:,} events")
    if rules:
        found = worst(random_events, random_limit, rules, seed)
        right &= shown(found, console, f"the worst of {rules} rules, {random_events:,} events, seed {seed}")
    console.print(f"{perf_counter() - began:.0f} s")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
