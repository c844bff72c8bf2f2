"""Where much is carried, the splitter searches for what is new itself: it finds what one batch gives."""

from __future__ import annotations

from itertools import count

import pyarrow as pa

from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import load_rules
from tests.oracle.contexts import Event
from tests.support.golden_cases import SCHEMA
from tests.support.results import from_core, table_of
from tests.support.streams import SECOND

MANY = 9_000  # more than are looked at together with what is new
ANY_ORDER = {
    "name": "any_order",
    "pattern": {"conjunction": [{"p0": "type = 'a'"}, {"p1": "type = 'b'"}, {"p2": "type = 'c'"}]},
    "where": "p2.x < p1.x",
    "within": "1 d",
    "merge": "detection",
}


def batches_of(*told: list[tuple[str, int]]) -> list[list[Event]]:
    """Batches of events, each a second after the one before, from their types and values."""
    place = count()

    def event(kind: str, x: int) -> Event:
        number = next(place)
        row = {"time": number * SECOND, "id": f"{kind}{number}", "type": kind, "x": x, "y": None}
        return Event(number * SECOND, "s", number, row)

    return [[event(kind, x) for kind, x in batch] for batch in told]


def found(rule: Rule, batches: list[list[Event]]) -> list[tuple[str, ...]]:
    plan = build_plan([rule], order=OrderSpec())
    matches: pa.Table = run(plan, [table_of(rule, batch) for batch in batches]).matches
    return [
        tuple(f"{component}@{offset}" for component, _, _, _, offset in row["events"])
        for row in from_core(rule, matches)
    ]


def test_a_match_in_any_order_is_found_however_much_was_carried_before_it() -> None:
    (rule,) = load_rules({"events": SCHEMA, "rules": [ANY_ORDER]})
    batches = batches_of([("b", 0)] * MANY + [("c", 1)], [("z", 0)], [("a", 0), ("b", 2), ("z", 0)])
    in_one = [event for batch in batches for event in batch]
    expected = [("p2@9000", "p0@9002", "p1@9003")]
    assert found(rule, [in_one]) == expected
    assert found(rule, batches) == expected
