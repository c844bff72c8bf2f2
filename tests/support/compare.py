"""Compare the core with the oracle on random rules of one form, and show the smallest case that differs.

``python -m tests.support.compare conjunction 2000 --seed 7 --context "each, zero"``: the names of forms are
those in `tests.support.forms`, and ``any``. Each case runs twice: the whole stream in one batch, and cut in
batches, with all state saved and restored between two of them; after each batch what has gone out is what the
frontier has made releasable.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import click
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from spark_pace.core.local import run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Rule
from tests.oracle.contexts import Event
from tests.oracle.matches import Match, evaluate
from tests.support.any_rule import any_lasting_rule
from tests.support.checks import told
from tests.support.drive import drive
from tests.support.forms import FORMS, form
from tests.support.many_events import as_with_many_events
from tests.support.results import brief, difference, from_core, from_oracle, table_of
from tests.support.strategies import CONTEXTS, forgetful
from tests.support.streams import SECOND, Arrival, Parallelism, arrivals, dense_streams, parallelisms, streams


@dataclass(frozen=True)
class Case:
    """A rule, a stream, and how the work is cut; `many`: as with many events."""

    rule: Rule
    arrival: Arrival
    spread: Parallelism
    parts: int
    many: bool

    def problem(self) -> str:
        """How the core differs from the oracle; empty where it does not."""
        events = self.arrival.on_time()[0]
        expected = evaluate(self.rule, events)
        if not self.many:
            return self.whole(events, expected) or self.in_batches(expected)
        with as_with_many_events():
            return self.whole(events, expected) or self.in_batches(expected)

    def whole(self, events: list[Event], expected: list[Match]) -> str:
        plan = build_plan([self.rule], order=OrderSpec(100 * SECOND))
        try:
            matches = run(plan, [table_of(self.rule, events)]).matches
        except Exception:
            return "in one batch:\n" + traceback.format_exc()
        found = difference(from_oracle(self.rule, expected), from_core(self.rule, matches))
        return f"in one batch:\n{found}" if found else ""

    def in_batches(self, expected: list[Match]) -> str:
        spread = self.spread
        plan = build_plan(
            [self.rule],
            order=OrderSpec(self.arrival.delay_us),
            slots=spread.slots,
            buckets=spread.buckets,
            lanes=spread.lanes,
            lane_rows=1,
        )
        rows = from_oracle(self.rule, expected)
        so_far: list[pa.Table] = []
        place = f"{spread}, {self.parts} parts, batch"
        try:
            for step in drive(plan, self.arrival.tables(self.rule), finish=True, parts=self.parts):
                so_far.append(step.matches)
                out = [
                    row
                    for row, match in zip(rows, expected, strict=True)
                    if match.releasable[0] < step.frontier_us or len(so_far) > len(self.arrival.batches)
                ]
                if found := difference(out, from_core(self.rule, pa.concat_tables(so_far))):
                    return f"{place} {len(so_far)}, frontier {step.frontier_us / 1e6:g} s:\n{found}"
        except Exception:
            return f"{place} {len(so_far) + 1}:\n{traceback.format_exc()}"
        return ""

    def shown(self) -> str:
        lines = [f"  {name}: {part}" for name, part in rule_parts(self.rule).items()]
        lines += ["batches:" + f" (delay {self.arrival.delay_us // SECOND} s)"]
        lines += ["  " + ", ".join(map(told, batch)) for batch in self.arrival.batches]
        rows = from_oracle(self.rule, evaluate(self.rule, self.arrival.on_time()[0]))
        return "\n".join(["rule:", *lines, "oracle:", *(f"  {brief(row)}" for row in rows)])


def cases(name: str, contexts: Sequence[Context]) -> st.SearchStrategy[Case]:
    """Most with keys, if any, that live for ever."""
    rules = any_lasting_rule() if name == "any" else form(name, contexts)
    arriving = st.one_of(arrivals(), arrivals(of=dense_streams()), arrivals(of=streams()))
    return st.builds(
        Case,
        st.sampled_from([True, True, True, False]).flatmap(
            lambda lasting: rules if lasting else rules.flatmap(forgetful)
        ),
        arriving,
        parallelisms(),
        st.integers(1, 3),
        st.booleans(),
    )


def first_difference(
    name: str, number: int, start: int, contexts: Sequence[Context]
) -> tuple[Case, str] | None:
    """The smallest case that differs, if one of so many does, and how it differs."""
    differing: list[tuple[Case, str]] = []

    @seed(start)
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(name, contexts))
    def compare(case: Case) -> None:
        if case.problem():
            differing.append(case)
            raise AssertionError

    with suppress(AssertionError):
        compare()
    return smaller(differing[-1]) if differing else None


def smaller(case: Case) -> Case:
    """The case with only the events without which it would not differ."""
    batches = case.arrival.batches
    for number, batch in enumerate(batches):
        for place in range(len(batch)):
            left = (*batches[:number], batch[:place] + batch[place + 1 :], *batches[number + 1 :])
            without = replace(case, arrival=replace(case.arrival, batches=left))
            if without.problem():
                return smaller(without)
    return case


@click.command()
@click.argument("name", metavar="FORM", type=click.Choice([*FORMS, "any"]))
@click.argument("number", metavar="CASES", type=int, default=2000)
@click.option("--seed", "start", default=0, help="Other seeds give other cases.")
@click.option("--context", "only", multiple=True, help="Only this context; may be repeated.")
@click.option("--code", is_flag=True, help="Show the case as Python code, too.")
def main(name: str, number: int, start: int, only: tuple[str, ...], code: bool) -> None:
    """Compare that many cases; end with exit code 1 if one differs."""
    contexts = [context for context in CONTEXTS if not only or str(context) in only]
    case = first_difference(name, number, start, contexts)
    if case is None:
        print(f"{number} cases of {name}: the core gives the oracle's matches in all of them")
        return
    print(case.shown(), case.problem(), sep="\n")
    if code:
        print(repr(case))
    sys.exit(1)


if __name__ == "__main__":
    main()
