"""An operator instance: a pure function from a lane to its matches.

Aggregates over all events of each span are made without a copy of the events that spans share. The lane has
events or, for spans on a grid, rows of panes. Sums are exact and rounded once, so they are the same however
the stream is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import Aggregate, evaluate, evaluate_mask
from spark_pace.core.match.contexts.contexts import Backwards, Forwards, OneOpen
from spark_pace.core.match.delay import is_awaited, waits_for_sure
from spark_pace.core.match.method import method_of
from spark_pace.core.match.release import (
    NOTHING_WAITS,
    Resolution,
    Waiting,
    come_to_wait,
    known,
    match_times,
    releases,
    resolved,
)
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.groups import in_roles, role_names
from spark_pace.core.match.stream import Found, Horizon, Stream
from spark_pace.core.operate.match_table import (
    FAILED_SCHEMA,
    THE_EVENT,
    Labels,
    Result,
    emit_fields,
    fields_of_found,
    match_table,
    matched_us,
    no_events,
    production_sets,
)
from spark_pace.core.operate.python_operator import CallOperator, Spans, call_here
from spark_pace.core.operate.span_patterns import in_spans, of_whole_spans, waiting_in_spans
from spark_pace.core.plan.plan import EVENTS, Plan, RulePlan, united
from spark_pace.core.plan.rule import Rule
from spark_pace.core.plan.structs import json_rows, nested
from spark_pace.core.python_functions import emit_schema, last_line, shortened
from spark_pace.core.ranks import expand, pieces
from spark_pace.core.split.panes import Contents, contents_of, held_in
from spark_pace.core.split.task import Lane, LaneHeader
from spark_pace.core.summaries.distribution import FUNCTIONS, distributed, sizes
from spark_pace.core.summaries.sums import deviation
from spark_pace.core.tables import (
    NOTHING_US,
    OFFSET,
    OPENING,
    SOURCE,
    UNKNOWN_TIME,
    Bools,
    Ints,
    array,
    boolean,
    numbers,
    with_column,
)
from spark_pace.errors import OperatorError, counted, one_line


def aggregate_spans(rule: Rule, spans: SpanAggregates | SharedAggregates) -> tuple[Ints, dict[str, pa.Array]]:
    """Find the spans that give a match, and compute the fields of ``emit`` for them.

    Returns:
        the indices of these spans: of all, or of those for which `Rule.having` is true; and their fields.
    """
    kept = np.arange(spans.rows)
    if rule.having is not None:
        kept = np.flatnonzero(evaluate_mask(rule.having, spans))
        spans = spans.take(kept)
    return kept, {field.name: evaluate(field.expr, spans) for field in rule.emit if field.expr}


@dataclass(frozen=True)
class SpanAggregates:
    """What expressions over the events of spans see. No span is empty.

    Attributes:
        contents: what the rows of the lane hold.
        start: int64[s], the first row of each span.
        end: int64[s], the row after its last one.
    """

    contents: Contents
    start: Ints
    end: Ints

    @property
    def rows(self) -> int:
        """How many spans there are."""
        return len(self.start)

    def take(self, index: Ints) -> SpanAggregates:
        """The same of the spans at these indices."""
        return SpanAggregates(self.contents, self.start[index], self.end[index])

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute that all events of a span share, or that of the event that opened it."""
        return self.contents.stream.attribute(attribute).take(pa.array(self.start))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over each span's events; `first` and `last` alone count nulls."""
        start, end, contents = self.start, self.end, self.contents
        function, attribute = one.function, one.attribute
        if attribute is None:
            return pa.array(contents.events(start, end))
        if function in ("first", "last", "min", "max"):
            return held_in(contents, function, attribute, start, end)
        if function in FUNCTIONS:
            return self._distributed(one, contents.values("each", attribute))
        if function == "approx_count_distinct":
            return pa.array(sizes(contents.registers(attribute, start, end)))
        count = contents.known(attribute, start, end)
        if function == "count":
            return pa.array(count)
        sums = contents.sums(attribute, start, end)
        if function == "sum":
            return sums.totals(contents.type_of(attribute), count)
        if function == "avg":
            return sums.means(count)
        assert function == "stddev", function
        squares = contents.sums(attribute, start, end, squared=True)
        return deviation(sums, squares, count)

    def _distributed(self, one: Aggregate, values: pa.Array) -> pa.Array:
        """What needs all values of each span, in pieces in which a value stands once for each span."""
        found = [distributed(one, values.slice(0, 0), np.zeros(0, np.int64), 0)]
        for piece in pieces(self.end - self.start):
            owner, rows = expand(self.start[piece], self.end[piece])
            of_spans = values.take(pa.array(rows))
            found.append(distributed(one, of_spans, owner, piece.stop - piece.start))
        return pa.concat_arrays(found)


@dataclass(frozen=True)
class SharedAggregates:
    """The same for some spans of a lane that rules share: each aggregate is computed once, of all its spans.

    Attributes:
        lane: all spans of the lane.
        index: int64[s], the spans.
        known: what is computed.
    """

    lane: SpanAggregates
    index: Ints
    known: dict[Aggregate, pa.Array]

    @property
    def rows(self) -> int:
        """How many spans there are."""
        return len(self.index)

    def take(self, index: Ints) -> SharedAggregates:
        """The same of the spans at these indices."""
        return replace(self, index=self.index[index])

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """See `SpanAggregates`."""
        return self.lane.take(self.index).column(component, attribute)

    def aggregate(self, one: Aggregate) -> pa.Array:
        """See `SpanAggregates`."""
        if one not in self.known:
            self.known[one] = self.lane.aggregate(one)
        return self.known[one].take(pa.array(self.index))


MOST_SHOWN = 1000  # events of a failed selection that are shown
MOST_SHOWN_BYTES = 1 << 20  # the size of the JSON lines that show them


def work_off(plan: Plan, lane: Lane, call: CallOperator = call_here) -> list[Result]:
    """Find the matches of a lane that may go out now; one result for each of its rules.

    Args:
        plan: the plan.
        lane: the lane.
        call: calls the rule's Python operator on the selections of the lane.

    Raises:
        OperatorError: a Python operator failed on a selection, and the plan says to stop then.
    """
    lane = lane.in_one_chunk()
    planned = plan.rules[lane.header.rule_index]
    rule, stream = planned.rule, lane.stream(planned.key_column)
    if rule.fold is not None or rule.rows is not None:
        return [_by_splitter(plan, planned, lane, stream)]
    if rule.operator is not None:
        return [_by_python(plan, planned, lane, stream, call)]
    if rule.pattern is None:
        return _by_aggregates(plan, lane, stream)
    resolved_us = NOTHING_US
    if lane.header.work == "free":
        found, labels, resolved_us = _free(rule, lane, stream)
    elif lane.header.work == "closed":
        found, labels = _closed(rule, lane, stream)
    elif lane.header.work == "matched":
        found, labels = _matched(lane, stream)
    else:
        found, labels = in_spans(rule, lane, stream)
    if rule.span is None:  # in spans it may depend on the span which member an event stands for
        found = in_roles(found, stream, rule.pattern)
    now, waiting = _releasable(planned, lane.header, labels)
    if rule.span is not None and is_awaited(planned) and not waits_for_sure(rule):
        waiting = waiting_in_spans(rule, lane, stream)
    found, labels = _in_output_order(planned, found, labels, now)
    fields = emit_fields(rule, stream, found)
    events = production_sets(role_names(rule.pattern), stream, found)
    matches = match_table(plan, planned, stream, labels, (found.first, found.last), fields, events)
    return [Result(lane.header, matches, len(found.openings), resolved_us, waiting=waiting)]


def _by_splitter(plan: Plan, planned: RulePlan, lane: Lane, stream: Stream) -> Result:
    """The matches of a fold or a row pattern, which the splitter has found."""
    rule, (found, labels) = planned.rule, _matched(lane, stream)
    names = (THE_EVENT,) if rule.rows is None else rule.rows.variables
    fields, events = fields_of_found(rule, lane, stream), production_sets(names, stream, found)
    ends = found.openings, found.closes
    matches = match_table(plan, planned, stream, labels, ends, fields, events)
    return Result(lane.header, matches, matches.num_rows)


def _by_aggregates(plan: Plan, lane: Lane, stream: Stream) -> list[Result]:
    """The matches of spans that satisfy the rule's condition over aggregates, if it has one.

    If rules share the lane, the first rule has a result, and the others only if they have matches.
    """
    header, first = lane.header, plan.rules[lane.header.rule_index]
    start, end = lane.column("start"), lane.column("end")
    sharing = [plan.rules[index].panes for index, _ in header.sharers] or [first.panes]
    panes = [one for one in sharing if one is not None]
    spans = SpanAggregates(contents_of(stream, united(panes) if panes else None), start, end)
    if not header.sharers:
        kept, fields = aggregate_spans(first.rule, spans)
        matches = _of_spans(plan, first, lane, stream, kept, fields)
        waiting = NOTHING_WAITS
        if is_awaited(first):  # the lane has spans of which only this is to be known
            out = numbers(matches, "@release_us") < header.frontier_us
            waiting = come_to_wait(matched_us(matches), out, header.passed_us, header.frontier_us)
            matches = matches.filter(boolean(out))
        return [Result(header, matches, len(start), waiting=waiting)]
    grids, known = lane.column("grid"), dict[Aggregate, pa.Array]()
    every = _of_spans(plan, first, lane, stream, np.arange(len(start)), {})
    results = list[Result]()
    for rule_index, grid in header.sharers:
        planned = plan.rules[rule_index]
        low, high = np.searchsorted(grids, [grid, grid + 1]).tolist()
        kept, fields = aggregate_spans(planned.rule, SharedAggregates(spans, np.arange(low, high), known))
        if len(kept) or rule_index == header.rule_index:
            matches = every.slice(low, high - low)
            if len(kept) < high - low:
                matches = matches.take(pa.array(kept))
            for name, column in fields.items():
                matches = matches.append_column(name, column)
            of_rule = replace(header, rule_index=rule_index, sharers=())
            results.append(Result(of_rule, matches, 0 if results else len(start)))
    return results


def _of_spans(
    plan: Plan, planned: RulePlan, lane: Lane, stream: Stream, spans: Ints, fields: Mapping[str, pa.Array]
) -> pa.Table:
    """The table of matches that these spans of the lane give, with these fields."""
    labels, last = of_whole_spans(planned.rule, lane, spans), lane.column("end")[spans] - 1
    matches = match_table(plan, planned, stream, labels, (last, last), fields, no_events(len(last)))
    if planned.panes is None:
        return matches
    # rows of panes have the `seq` of their first events
    following = stream.seq[last] + numbers(stream.events, EVENTS)[last]
    return with_column(matches, "seq", following - 1)


def _releasable(planned: RulePlan, header: LaneHeader, labels: Labels) -> tuple[Bools, Waiting]:
    """Which matches go out now, and the new ones that wait.

    If the lane is not exact, the matches that the merger must decide are among the first.
    """
    rule, time = planned.rule, labels.release.time
    now = time < header.frontier_us
    if header.resolved is not None:
        before, first = header.resolved
        now &= Resolution(first, before=before).lets_out(labels.selection_id, time >= header.passed_us)
    elif header.exact or not method_of(rule).waits:
        now &= time >= header.passed_us
    if not is_awaited(planned) or not waits_for_sure(rule):
        return now, NOTHING_WAITS
    return now, come_to_wait(labels.matched_us, now, header.passed_us, header.frontier_us)


def _in_output_order(planned: RulePlan, found: Found, labels: Labels, chosen: Bools) -> tuple[Found, Labels]:
    """The chosen matches; where the times of their releases decide about their order, they are in it.

    To sort them before their columns are gathered costs less than to sort the columns.
    """
    rule, time = planned.rule, labels.release.time
    index = np.flatnonzero(chosen)
    if planned.key_column is not None or rule.merge != "selection":
        index = index[np.argsort(time[index], kind="stable")]
    if len(index) == len(chosen) and (index[1:] > index[:-1]).all():
        return found, labels
    kept = Labels(
        labels.selection_id[index],
        labels.opened_us[index],
        labels.matched_us[index],
        labels.release.take(index),
    )
    return found.keep(index), kept


def _horizon(lane: Lane, stream: Stream) -> Horizon:
    frontier_us = lane.header.frontier_us
    if lane.selections is not None:
        ends_us = lane.column("ends_us")
        return Horizon(frontier_us, ends_us < frontier_us, ends_us=ends_us)
    finished = frontier_us == UNKNOWN_TIME
    return Horizon(frontier_us, np.full(len(stream.starts), True) if finished else None)


def _free(rule: Rule, lane: Lane, stream: Stream) -> tuple[Found, Labels, int]:
    """The matches of free selections, their labels, and when the last selection is resolved."""
    method = method_of(rule)
    way, pattern = method.way, method.pattern
    assert pattern is not None and isinstance(way, Forwards | Backwards)
    found = way.match(stream, pattern, search_of(stream, pattern), lane.header.owned)
    ends = resolved(stream, found, pattern.within, _horizon(lane, stream))
    at = known(stream, found, pattern.within, _horizon(lane, stream), waits=method.waits)
    at = releases(stream, found, at, ends, waits=method.waits and lane.header.resolved is None)
    opening = found.openings[found.selection]
    last = int(ends.time.max(initial=NOTHING_US)) if isinstance(way, Forwards) else NOTHING_US
    matched_us = match_times(stream, found.last, found.deciding, pattern.within)
    return found, Labels(numbers(stream.events, OPENING)[opening], stream.time[opening], matched_us, at), last


def _closed(rule: Rule, lane: Lane, stream: Stream) -> tuple[Found, Labels]:
    assert rule.pattern is not None
    way = method_of(rule).way
    assert isinstance(way, OneOpen) and way.inside is not None
    openings = lane.column("opening")
    found = way.inside(stream, rule.pattern, openings, lane.column("close"))
    ids = lane.column("selection_id")[found.selection]
    at = lane.positions("release").take(found.selection)
    matched_us = lane.column("matched_us")[found.selection]
    return found, Labels(ids, stream.time[openings[found.selection]], matched_us, at)


def _matched(lane: Lane, stream: Stream) -> tuple[Found, Labels]:
    assert lane.selections is not None
    members, roles = (array(lane.selections, name) for name in ("@members", "@roles"))
    first, offsets = lane.column("@first"), members.offsets.to_numpy().astype(np.int64)
    number, rows = np.arange(len(members)), members.values.to_numpy()
    found = Found(first, lane.column("@last"), number, offsets, rows, roles.values.to_numpy())
    ids, matched_us = lane.column("@selection_id"), lane.column("@matched_us")
    return found, Labels(ids, stream.time[first], matched_us, lane.positions("@release"))


def _by_python(plan: Plan, planned: RulePlan, lane: Lane, stream: Stream, call: CallOperator) -> Result:
    """Call the rule's Python operator for the spans, each once; its rows are the matches."""
    rule = planned.rule
    keys = None if planned.key_column is None else array(stream.events, planned.key_column).cast(pa.string())
    names = [field.name for field in rule.schema.fields if not field.name.startswith("@")]
    attributes = stream.events.select(names)
    start, end, ids = lane.column("start"), lane.column("end"), lane.column("selection_id")
    spans = Spans(rule, nested(attributes, rule.schema), keys, start, end, ids, lane.column("close") >= 0)
    tables, counts, failed = [emit_schema(rule).empty_table()], list[int](), []
    for answers in call(spans):
        failed += [
            _failure(plan, spans, len(counts) + place, reason, stream)
            for place, reason in answers.failed.items()
        ]
        counts += answers.counts
        tables.append(answers.rows)
    owner = np.repeat(np.arange(len(start)), counts)
    labels = of_whole_spans(rule, lane, owner)
    yielded = pa.concat_tables(tables).combine_chunks()
    fields, last = {name: array(yielded, name) for name in yielded.column_names}, (end - 1)[owner]
    matches = match_table(plan, planned, stream, labels, (last, last), fields, no_events(len(last)))
    failures = pa.Table.from_pylist(failed, schema=FAILED_SCHEMA)
    return Result(lane.header, matches, len(start), failed=failures)


def _failure(plan: Plan, spans: Spans, place: int, reason: str, stream: Stream) -> dict[str, Any]:
    """The row of `FAILED_SCHEMA` for the failed selection at index `place`.

    Raises:
        OperatorError: the plan says to stop.
    """
    span, first = spans[place], int(spans.start[place])
    if plan.on_operator_error == "fail":
        raise OperatorError(
            f"rule {span.rule} key {span.key and one_line(span.key)} selection {span.selection_id} — "
            f"its operator must return; got {last_line(reason)}. "
            f"Mend the operator, or set on_operator_error: quarantine.\n{reason}"
        )
    raw, events = _shown(span.events)
    if events < span.events.num_rows:
        reason += f"\nraw holds the first {events:,} of {counted(span.events.num_rows, 'event')}"
    return {
        "rule": span.rule,
        "key": span.key and shortened(span.key),
        "selection_id": span.selection_id,
        "reason": reason,
        "source": stream.attribute(SOURCE)[first].as_py(),
        "offset": stream.attribute(OFFSET)[first].as_py(),
        "raw": raw,
    }


def _shown(events: pa.Table) -> tuple[bytes, int]:
    """The first events as whole lines of JSON, and their number.

    There are at most `MOST_SHOWN` lines, with at most `MOST_SHOWN_BYTES` together.
    """
    events = events.slice(0, MOST_SHOWN)
    texts = np.zeros(events.num_rows, np.int64)
    for column in events.columns:
        if pa.types.is_string(column.type):
            texts += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    # a line is at least as long as its texts, so no event after these would fit
    short = int(np.searchsorted(np.cumsum(texts), MOST_SHOWN_BYTES, side="right"))
    lines = [line.encode() for line in json_rows(events.slice(0, short))]
    ends = np.cumsum([len(line) + 1 for line in lines])
    shown = int(np.searchsorted(ends, MOST_SHOWN_BYTES, side="right"))
    return b"\n".join(lines[:shown]), shown
