"""A stretch of a rule's stream in which a pattern is searched: the stream of a key, or a span."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from spark_pace.core.columns import MASK, OFFSET, SOURCE, Ints, has_bit
from spark_pace.core.expr import Aggregate, Call, Columns, Expr, Previous, evaluate, evaluate_mask, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.expr.nodes import Column
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import walks
from spark_pace.core.match.search.alternatives import Alternatives
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.optional_last import behind, rows_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon, window_end
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import alternative
from spark_pace.core.tables import with_column
from spark_pace.reasons.answer_parts import EventRef, Member
from spark_pace.reasons.wording import iso, plain, shown

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Taken:
    """The rows of a match in the stretch, and its number in the output.

    `end` is the row that completed it: the last one, but for those of an optional component in last place.
    """

    out_seq: int
    rows: Ints
    end: int


@dataclass(frozen=True)
class Stretch:
    """One segment of a rule's stream, the pattern, and the engine's matches in it.

    Attributes:
        stream: one segment.
        pattern: the pattern as in the rule.
        search: the search for the pattern; its conditions read attributes of a span's opening event as
            columns of every event.
        horizon: what is known of the future at the end of the input.
        matches: in output order.
        span: True if the stretch is a span.
        is_alternative: True if the pattern is an alternative of a disjunction.
    """

    stream: Stream
    pattern: Pattern
    search: Search
    horizon: Horizon
    matches: tuple[Taken, ...]
    span: bool
    is_alternative: bool = False
    _unused: dict[int, Search] = field(default_factory=dict, init=False, compare=False)

    @staticmethod
    def of(
        stream: Stream,
        pattern: Pattern,
        horizon: Horizon,
        matches: list[Taken],
        inside: Pattern | None = None,
    ) -> Stretch:
        """Make a stretch; for a span, `inside` is the pattern that reads the opening event as columns."""
        search = search_of(stream, inside or pattern)
        return Stretch(stream, pattern, search, horizon, tuple(matches), inside is not None)

    @property
    def any_order(self) -> bool:
        """True for a conjunction, whose components may come in any order."""
        return self.pattern.order == "conjunction"

    @property
    def alternatives(self) -> list[Stretch]:
        """Of a disjunction of sequences the same stretch with each alternative as its pattern; else none."""
        if not isinstance(self.search, Alternatives):
            return []
        parts = zip(self.search.components, self.search.parts, strict=True)
        return [
            replace(
                self,
                stream=part.stream,
                pattern=alternative(self.pattern, own),
                search=part,
                is_alternative=True,
            )
            for own, part in parts
        ]

    @property
    def walks(self) -> bool:
        """True if the context finds matches by a walk."""
        return walks(context_of(self.pattern).way)

    def window_end(self, row: int) -> int:
        """The row after the last row of the window that starts at a row."""
        return int(window_end(self.stream, np.array([row]), self.pattern.within)[0])

    def unused(self, last: int) -> Search:
        """A search in which events of matches that end before row `last` match no component."""
        used = [taken.rows for taken in self.matches if taken.rows[-1] < last]
        if len(used) not in self._unused:  # equal numbers mean equal events
            mask = self.stream.mask.copy()
            mask[np.concatenate([np.zeros(0, np.int64), *used])] = 0
            events = with_column(self.stream.events, MASK, mask)
            self._unused[len(used)] = search_of(Stream(events, self.stream.starts), self.search.pattern)
        return self._unused[len(used)]

    def ref(self, row: int) -> EventRef:
        """The reference to the event of a row."""
        return ref(self.stream, row)

    def member(self, row: int, component: str = "") -> Member:
        """The event of a row with the name of its component; of a disjunction, with that of its member."""
        members = (one.members for one in self.pattern.components if one.name == component)
        for member in next(members, ()):
            if has_bit(self.stream.mask[row : row + 1], member.bit)[0]:
                component = member.name
        return Member(component, self.ref(row))


def ref(stream: Stream, row: int) -> EventRef:
    """The reference to the event of a row of a stream."""
    source, offset = stream.events[SOURCE][row].as_py(), stream.events[OFFSET][row].as_py()
    return EventRef(int(stream.seq[row]), iso(stream.time[row]), source, offset)


def as_matrix(rows: list[int]) -> Ints:
    """int64[1, n]: the rows of one candidate as a matrix of candidates."""
    return np.array([rows], np.int64)


def events_of(search: Search, rows: list[int], *, walking: bool) -> list[tuple[int, int]]:
    """(component of the search's pattern, row) of the events of a candidate with these first anchors.

    The events of groups are included as far as they are decided.
    """
    shape, matrix = search.between.shape, as_matrix(rows)
    empty = [
        level
        for level in range(len(rows) - 1)
        if shape.gaps[level].skipped and rows[level] == rows[level + 1]
    ]
    anchored = [(component_at(search, level, row), row) for level, row in enumerate(rows)]
    found = {one for level, one in enumerate(anchored) if level not in empty}
    if shape.without_first is not None and not begins_with_first(search, rows):
        found -= {(shape.anchors[0], rows[0])}
        found |= {(shape.without_first, rows[0])}
    for place, gap in enumerate(shape.gaps[: len(rows) - 1]):
        if gap.group is not None:
            _, members = search.between.events_of(gap.group, matrix[:, : place + 2], capped=walking)
            found.update((gap.group, int(row)) for row in members)
    if shape.optional_last is not None and len(rows) == search.steps:
        after = events_behind(search, rows, walking=walking).tolist()
        found.update((shape.optional_last, row) for row in after)
    return sorted(found, key=lambda member: (member[1], member[0]))


def component_at(search: Search, level: int, row: int) -> int:
    """The component of an anchor's row: the last group of those that may begin there, else a single one."""
    between = search.between
    at = [one for one in between.shape.components_at(level) if row in between.stream.matching(one)]
    groups = [one for one in at if one in between.rows_of]
    return (groups or at or [between.shape.anchors[level]])[-1]


def events_behind(search: Search, rows: list[int], *, walking: bool) -> Ints:
    """int64[k], the events of an optional component in last place behind a whole candidate."""
    ranges = behind(search.varied(walking=walking), as_matrix(rows))
    return np.zeros(0, np.int64) if ranges is None else rows_of(search)[slice(*ranges[0])]


def begins_with_first(search: Search, rows: list[int]) -> bool:
    """False if an optional component in first place has no event, for these first anchors."""
    group = search.between.shape.anchors[0]
    return rows[:1] != rows[1:2] and rows[0] in search.between.rows_of[group]


def is_false(search: Search, expr: Expr, rows: list[int], *, walking: bool) -> bool:
    """True if a condition does not hold for a candidate."""
    columns = search.varied(walking=walking).columns(as_matrix(rows))
    return not bool(evaluate_mask(expr, columns)[0])


def in_values(columns: Columns, expr: Expr, told: Expr) -> tuple[str, dict[str, object]]:
    """Describe a false condition: ``b.card = a.card: 'B' = 'A' is false``; and return the values in it.

    Args:
        columns: one row of what the condition reads.
        expr: the condition.
        told: the same condition as in the rule, where columns may have other names.
    """

    def value(node: Expr) -> object:
        return plain(evaluate(node, columns)[0].as_py())

    whole = "null" if value(expr) is None else "false"
    if isinstance(expr, Call) and isinstance(told, Call) and expr.function in COMPARISONS:
        both = list(zip(expr.arguments, told.arguments, strict=True))
        left, right = (shown(value(side)) for side, _ in both)
        text = f"{canonical_text(told)}: {left} {expr.function} {right} is {whole}"
        return text, {canonical_text(name): value(side) for side, name in both}
    nodes = zip(walk(expr), walk(told), strict=True)
    kinds = Column | Previous | Aggregate
    read = {canonical_text(name): value(node) for node, name in nodes if isinstance(node, kinds)}
    listed = ", ".join(f"{name} = {shown(one)}" for name, one in read.items())
    return f"{canonical_text(told)} is {whole} with {listed}", read
