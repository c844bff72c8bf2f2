"""Answers of `why`, and what the oracle needs to check them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spark_pace.core.plan.rule import CountSpan, Pattern, Rule
from spark_pace.io.replay import replay_table
from spark_pace.reasons import Why, why
from spark_pace.reasons.answer import Candidate, EventRef, Member
from tests.oracle.components import opened_by
from tests.oracle.expressions import Bindings, Row
from tests.oracle.matches import seen_inside
from tests.oracle.rules_stream import in_stream_order, keyed_streams
from tests.oracle.spans import spans_of
from tests.oracle.stream import Bound, Event, Placed, Production
from tests.support.results import micros, table_of

Home = list[Placed]  # the stream of an event's key, or a span of it as it is seen inside


@dataclass(frozen=True)
class Answers:
    """The answers for some events of a table, by their rows, and what the oracle needs to check them."""

    rule: Rule
    events: list[Event]
    matches: list[dict[str, Any]]
    told: dict[int, Why]

    @property
    def pattern(self) -> Pattern:
        assert self.rule.pattern is not None
        return self.rule.pattern

    def index(self, component: str) -> int:
        components = self.pattern.components
        return [component in (one.name, *(m.name for m in one.members)) for one in components].index(True)

    def with_event(self, answer: Why) -> list[int]:
        """The numbers of the matches that have the event; of aggregates, of spans that hold it."""
        with_it = (answer.source, answer.offset)
        if self.rule.pattern is not None or self.rule.fold is not None:
            ids = [[(one["source"], one["offset"]) for one in match["events"]] for match in self.matches]
            return [match["out_seq"] for match, own in zip(self.matches, ids, strict=True) if with_it in own]
        stream, key = self.stream(answer), answer.key
        if stream is None:
            return []
        spans = [span for span in spans_of(self.rule, stream) if answer.seq in [p.seq for p in span.events]]
        ids = [(key, span.selection_id, span.opened_at) for span in spans]
        return [
            match["out_seq"]
            for match in self.matches
            if (match["key"], match["selection_id"], micros(match["opened_at"])) in ids
        ]

    def stream(self, answer: Why) -> Home | None:
        """The stream of the event's key; None where the event does not belong to it."""
        streams = keyed_streams(self.rule, self.in_order())
        with_it = (one for _, one in streams if answer.offset in [placed.event.offset for placed in one])
        return next(with_it, None)

    def in_order(self) -> list[Event]:
        """All events, as a table of them is ordered."""
        everything = tuple(field.name for field in self.rule.schema.fields)
        ties = self.rule.schema.tie_break or everything
        as_in_tables = replace(self.rule, schema=replace(self.rule.schema, tie_break=ties))
        return in_stream_order(as_in_tables, self.events)

    def before_filter(self, answer: Why) -> list[Row]:
        """All events of the event's key before it, whether they pass the filter or not."""
        rows = [event.row for event in self.in_order()]
        places = [event.offset for event in self.in_order()]
        place = places.index(answer.offset)
        keys = [[row[name] for name in self.rule.partition_by] for row in rows]
        return [row for row, key in zip(rows[:place], keys, strict=False) if key == keys[place]]

    def homes(self, answer: Why) -> dict[int, Home]:
        """The delivered spans that hold the event, by their selections."""
        stream = self.stream(answer)
        if self.rule.span is None or stream is None:
            return {}
        seen = {span.selection_id: seen_inside(self.rule, span) for span in spans_of(self.rule, stream)}
        return {number: home for number, home in seen.items() if answer.seq in [one.seq for one in home]}

    def home(self, answer: Why, selection_id: int) -> Home:
        """Where candidates of a selection stand."""
        stream = self.stream(answer)
        assert stream is not None
        if self.rule.span is None:
            return stream
        span = self.homes(answer).get(selection_id)
        if span is None:  # one that is not full
            assert isinstance(self.rule.span, CountSpan)
            begun = stream[selection_id * self.rule.span.every :]
            assert len(begun) < self.rule.span.size
            rows, span = [placed.row for placed in begun], []
            for number, placed in enumerate(begun):
                span.append(replace(placed, before=rows[:number], earlier=[*span]))
        return span


@dataclass(frozen=True)
class Told:
    """A candidate of an answer, and where it stands."""

    found: Answers
    answer: Why
    candidate: Candidate
    home: Home

    @property
    def pattern(self) -> Pattern:
        return self.found.pattern

    @property
    def members(self) -> tuple[Member, ...]:
        """Its events."""
        return self.candidate.events

    @property
    def production(self) -> Production:
        """Its events as the oracle has them."""
        bound = [Bound(self.placed(one.event), self.found.index(one.component)) for one in self.members]
        return tuple(sorted(bound, key=lambda one: one.placed.seq))

    @property
    def asked(self) -> Placed:
        """The event that was asked about."""
        (one,) = [placed for placed in self.home if placed.event.offset == self.answer.offset]
        return one

    @property
    def matches(self) -> list[dict[str, Any]]:
        """The matches of the same stream; of a span those of the span."""
        rows = {(placed.event.offset, placed.seq) for placed in self.home}
        of_span = self.found.rule.span is not None
        return [
            one
            for one in self.found.matches
            if (not of_span or one["selection_id"] == self.candidate.selection_id)
            and rows.issuperset((event["offset"], event["seq"]) for event in one["events"])
        ]

    @property
    def is_delivered(self) -> bool:
        """Whether what is found here is a match: it is not in a span that is not full."""
        span = self.found.rule.span
        return not isinstance(span, CountSpan) or len(self.home) == span.size

    def placed(self, ref: EventRef) -> Placed:
        (one,) = [placed for placed in self.home if placed.event.offset == ref.offset]
        assert one.seq == ref.seq
        return one

    def bindings(self, forbidding: Member | None = None) -> Bindings:
        more = [] if forbidding is None else [forbidding]
        grouped = {one.name for one in self.pattern.components if one.times is not None}
        rows = [(one.component, self.placed(one.event).row) for one in self.members]
        groups = {name: [row for component, row in rows if component == name] for name in grouped}
        bound = {one.component: self.placed(one.event).row for one in (*self.members, *more)}
        for component in self.pattern.components:  # a disjunction may be named as well as its member
            bound |= [(component.name, bound[one.name]) for one in component.members if one.name in bound]
        befores = {one.component: self.placed(one.event).before for one in (*self.members, *more)}
        for component in self.pattern.components:
            befores |= [(component.name, befores[m.name]) for m in component.members if m.name in befores]
        return Bindings(bound=opened_by(self.home[0]) | bound, groups=groups, befores=befores)


def answers(rule: Rule, events: list[Event], places: set[int]) -> Answers:
    table = table_of(rule, events).select([field.name for field in rule.schema.fields])
    matches = [] if rule.operator else replay_table([rule], table).matches.to_pylist()  # calls no operator
    told = {place: why([rule], table, rule=rule.name, at=f"table:{place}") for place in places}
    return Answers(rule, events, matches, told)
