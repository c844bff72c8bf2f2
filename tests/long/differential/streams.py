"""Streams made for a rule: most have a candidate of its pattern in them, now and then one with a noise event.

A candidate is made event by event: of some random rows the first one is taken that the component's predicate
accepts, and the conditions that are known by then. Where none of these rows does, any row is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any

from spark_pace.core.expr import Expr
from spark_pace.core.plan.rule import Component, Conjunct, GridSpan, Pattern, PredicateSpan, Rule, SessionSpan
from spark_pace.core.plan.shape import alternatives_of, sequences_of
from tests.oracle.contexts import Event
from tests.oracle.expressions import Bindings, holds
from tests.oracle.matches import evaluate
from tests.support.streams import SECOND, Arrival, Parallelism, adds_up, enlarged, row_of

TRIES = 24  # rows among which one for a component is sought
STREAMS = 4  # that are made at most until one has a match
Row = dict[str, Any]


def stream_for(rule: Rule, random: Random) -> list[Event]:
    """Events in the order of their times. One stream of ten is not made for the rule at all."""
    if random.random() < 0.1:
        return _Maker(rule, random, made=False).stream()
    large = adds_up([rule]) and random.random() < 0.3
    for _ in range(STREAMS):
        events = _Maker(rule, random, large=large).stream()
        if evaluate(rule, events):
            break
    return events


@dataclass
class _Maker:
    """Makes one stream.

    Attributes:
        rule: the rule.
        random: where all chance comes from.
        made: whether candidates are made; else every event is noise.
        large: whether there are numbers whose sum is no BIGINT.
        rows: the rows so far; their times are seconds that are set last.
        gaps: the seconds before each row.
    """

    rule: Rule
    random: Random
    made: bool = True
    large: bool = False
    rows: list[Row] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    key: Row = field(default_factory=dict)

    def stream(self) -> list[Event]:
        size = self.random.choice([6, 8, 9, 10, 11, 12, 13])
        pace = self.random.choice([(0, 0, 1), (1, 1, 0, 2), (1, 2, 3)]) if self.made else (1, 1, 0, 2, 6)
        while len(self.rows) < size:
            self.key = self._random_row()
            if self.made:
                self._candidate(pace)
            for _ in range(self.random.choice([0, 1, 1, 2, 4])):
                self._add(self._noise(), self.random.choice((1, 1, 2, 5)))
        return self._events()

    def _events(self) -> list[Event]:
        """With times from one of three beginnings on, and sources."""
        time, events = self.random.choice([0, -7, 1_357_000_000]) * SECOND, []
        for place, (gap, row) in enumerate(zip(self.gaps, self.rows, strict=True)):
            time += gap * SECOND
            source = self.random.choice("sst")
            row = row | {"time": time, "id": f"{row['type']}{place}"}
            events.append(Event(time, source, place, row))
        return events

    def _add(self, row: Row, gap: int) -> None:
        self.rows.append(row)
        self.gaps.append(gap)

    def _random_row(self) -> Row:
        """The keys of one candidate's rows are those of `key`."""
        choice, place = self.random.choice, len(self.rows)
        row = row_of(
            0, place, choice("abcabcabcd"), choice((0, 1, 0, 1, 2, None)), choice((0, 1, 0, 1, 2, None))
        )
        row |= {"k": choice(("u", "u", "u", "v", None))}
        if self.large:
            row |= {name: enlarged(row[name], self.random) for name in "xy"}
        return row | {name: self.key[name] for name in self.rule.partition_by if self.key}

    def _noise(self) -> Row:
        """Seldom what a negated component forbids."""
        row = self._random_row()
        negated = [] if self.rule.pattern is None else [c for c in self.rule.pattern.components if c.negated]
        spoils = any(self._may_be(row, one.predicate, {}) for one in negated)
        return self._random_row() if spoils else row

    def _may_be(self, row: Row, predicate: Expr, opening: dict[str, Row]) -> bool:
        try:
            return holds(predicate, Bindings(event=row, before=self.rows, bound=opening))
        except KeyError:  # it mentions the opening event of a span that is not there
            return False

    def _may_join(
        self, row: Row, component: Component, groups: dict[str, list[Row]], opening: dict[str, Row]
    ) -> bool:
        """Whether the row meets the condition on what its group has so far."""
        if component.further is None or not groups[component.name]:
            return True
        name = component.name
        here = Bindings(bound={**opening, name: row}, groups=groups, befores={name: self.rows})
        return holds(component.further, here)

    def _candidate(self, pace: tuple[int, ...]) -> None:
        span = self.rule.span
        opening: dict[str, Row] = {}
        if isinstance(span, PredicateSpan):
            self._add(self._row(lambda row: self._may_be(row, span.open, {})), 1)
            opening = {"open": self.rows[-1]}
        else:
            pace = self._into_one_span(pace)
        if self.rule.pattern is not None:
            self._of_pattern(self.rule.pattern, opening, pace)
        if isinstance(span, PredicateSpan):
            close = (span.close, *span.close_where)
            self._add(self._row(lambda row: all(self._may_be(row, one, opening) for one in close)), 0)
        elif span is not None and self.rule.pattern is None:
            self._add(self._noise(), self.random.choice(pace))

    def _into_one_span(self, pace: tuple[int, ...]) -> tuple[int, ...]:
        """Most often a pace by which a candidate fits into a session, or a window of the grid."""
        span = self.rule.span
        if isinstance(span, SessionSpan) and self.random.random() < 0.8:
            return tuple(gap for gap in pace if gap * SECOND <= span.gap_us) or (0,)
        return (0, 0, 1) if isinstance(span, GridSpan) and self.random.random() < 0.7 else pace

    def _order(self, pattern: Pattern) -> list[int]:
        """The components that take events, in an order in which events make a match."""
        order = [index for index, one in enumerate(pattern.components) if not one.negated]
        if pattern.order == "disjunction":
            return list(self.random.choice(alternatives_of(pattern)))
        if pattern.order == "conjunction":
            self.random.shuffle(order)
            for sequence in sequences_of(pattern):
                places = sorted(map(order.index, sequence))
                for place, index in zip(places, sequence, strict=True):
                    order[place] = index
        return order

    def _of_pattern(self, pattern: Pattern, opening: dict[str, Row], pace: tuple[int, ...]) -> None:
        singles, groups = dict(opening), dict[str, list[Row]]()
        counts = pattern.within is not None and pattern.within.events
        strict = {pattern.contiguity, *(component.follows for component in pattern.components)}
        near = "strict" in strict or counts
        known: set[int] = set()
        for index in self._order(pattern):
            component = pattern.components[index]
            count = 1
            if component.times is not None:
                least, most = component.times.least, component.times.most
                count = self.random.randint(least, min(least + 2, least + 2 if most is None else most))
                groups[component.name] = []
            known.add(index)
            conjuncts = [
                one
                for one in (*pattern.conditions, *pattern.taking)
                if index in one.components and known >= {*one.components}
            ]
            for number in range(count):
                whole = conjuncts if number == count - 1 else []
                row = self._row(
                    lambda row, one=component, whole=whole: (  # type: ignore[misc]
                        self._may_be(row, one.predicate, opening)
                        and self._may_join(row, one, groups, opening)
                        and _hold(whole, one.name, row, singles, groups)
                    )
                )
                if component.times is not None:
                    groups[component.name].append(row)
                else:
                    singles[component.name] = row
                if not near and known != {index} and self.random.random() < 0.15:
                    self._add(self._noise(), self.random.choice(pace))
                self._add(row, self.random.choice(pace))

    def _row(self, fits: Callable[[Row], bool]) -> Row:
        passes = self.rule.filter
        for _ in range(TRIES):
            row = self._random_row()
            if (passes is None or self._may_be(row, passes, {})) and fits(row):
                return row
        return row


def _hold(
    conjuncts: list[Conjunct], name: str, row: Row, singles: dict[str, Row], groups: dict[str, list[Row]]
) -> bool:
    """Whether conditions hold if the row is the next one of the component of that name."""
    if name in groups:
        groups = groups | {name: [*groups[name], row]}
    else:
        singles = singles | {name: row}
    try:
        return all(holds(one.expr, Bindings(bound=singles, groups=groups)) for one in conjuncts)
    except KeyError:
        return True


def arrival_of(events: list[Event], random: Random) -> Arrival:
    """The stream in some order that a delay allows, cut into batches anywhere; some may be empty."""
    delay = random.choice([0, 0, 1, 2, 10])
    jitters = [random.randint(0, delay) * SECOND for _ in events]
    ranked = sorted(zip(events, jitters, strict=True), key=lambda pair: pair[0].time + pair[1])
    events = [event for event, _ in ranked]
    number = random.choice([1, 2, 3, 5, len(events)])
    edges = sorted({0, len(events), *(random.randint(0, len(events)) for _ in range(number))})
    batches = [tuple(events[start:stop]) for start, stop in pairwise(edges)]
    if random.random() < 0.1:
        batches.insert(random.randint(0, len(batches)), ())
    return Arrival(tuple(batches), delay * SECOND)


def without(arrival: Arrival, number: int, place: int) -> Arrival:
    """The same but for one event of one batch."""
    batch = arrival.batches[number]
    left = (*arrival.batches[:number], batch[:place] + batch[place + 1 :], *arrival.batches[number + 1 :])
    return replace(arrival, batches=left)


def spread_of(random: Random) -> Parallelism:
    """How the work is spread."""
    return Parallelism(random.choice([1, 1, 1, 2, 3]), random.choice([1, 4]), random.choice([1, 2, 3, 8]))
