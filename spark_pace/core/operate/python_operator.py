"""The argument of a Python operator, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from spark_pace.core.plan.rule import Rule
from spark_pace.core.python_functions import ATTEMPTS, as_table, emit_schema, load_operator, traceback_text
from spark_pace.core.tables import Bools, Ints


@dataclass(frozen=True)
class Span:
    """One selection, whole: the argument of a Python operator.

    Attributes:
        events: its events in stream order, with a column for each attribute of the schema; times are UTC.
        rule: the rule's name.
        selection_id: number of the selection.
        key: the text of the partition key; None without `partition_by`.
        closed: True if an event closed it, the last one of `events`; False if its window ended.
    """

    events: pa.Table
    rule: str
    selection_id: int
    key: str | None
    closed: bool

    @cached_property
    def opening(self) -> dict[str, Any]:
        """The first event."""
        return self.events.slice(0, 1).to_pylist()[0]  # type: ignore[no-any-return]

    @cached_property
    def closing(self) -> dict[str, Any] | None:
        """The event that closed the selection; None if its window ended."""
        if not self.closed:
            return None
        return self.events.slice(self.events.num_rows - 1).to_pylist()[0]  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """The events as a pandas DataFrame."""
        return self.events.to_pandas()


@dataclass(frozen=True)
class Spans:
    """The selections of a lane whose rule has a Python operator.

    Attributes:
        rule: the rule.
        events: the attributes of the lane's events.
        keys: the text of each event's partition key; None without `partition_by`.
        start: int64[n], the row of each selection's first event.
        end: int64[n], the row after its last event.
        ids: int64[n], the number of each selection.
        closed: bool[n], True if an event closed it.
    """

    rule: Rule
    events: pa.Table
    keys: pa.Array | None
    start: Ints
    end: Ints
    ids: Ints
    closed: Bools

    def __len__(self) -> int:
        """The number of selections."""
        return len(self.start)

    def __getitem__(self, place: int) -> Span:
        """One selection, as the operator's argument."""
        first, rows = int(self.start[place]), int(self.end[place] - self.start[place])
        key = None if self.keys is None else self.keys[first].as_py()
        events = self.events.slice(first, rows)
        return Span(events, self.rule.name, int(self.ids[place]), key, bool(self.closed[place]))


Raised: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]
Answer: TypeAlias = pa.Table | str  # the rows for a selection, or the reason why the operator failed


@dataclass(frozen=True)
class Answers:
    """The answers of an operator for some neighbouring selections.

    Attributes:
        rows: the rows for all of them, one after the other.
        counts: the number of rows for each selection.
        failed: the reasons for failures, by the index of the selection.
        seconds: the time for each selection; empty if it is not known.
    """

    rows: pa.Table
    counts: tuple[int, ...]
    failed: Mapping[int, str]
    seconds: tuple[float, ...] = ()


# Yields the answers for all spans in their order, in any number of pieces.
CallOperator = Callable[[Spans], Iterator[Answers]]


def call_here(spans: Spans) -> Iterator[Answers]:
    """Yield the answers for spans, by calling the rule's operator in this process."""
    for place in range(len(spans)):
        yield gathered(spans.rule, [call_operator(spans.rule, spans[place])])


def call_operator(
    rule: Rule, span: Span, attempts: int = ATTEMPTS, caught: Raised = (Exception, SystemExit)
) -> Answer:
    """Call the rule's operator on a selection; return its rows, or the last traceback if every attempt fails.

    Args:
        rule: the rule.
        span: the selection.
        attempts: how often it is called at most.
        caught: the exceptions that count as failures; others are raised.
    """
    assert rule.operator is not None
    operator = load_operator(rule.operator)
    reason = ""
    for _ in range(attempts):
        try:
            return as_table(operator(span), rule)
        except caught as error:
            reason = traceback_text(error)
    return reason


def gathered(rule: Rule, answers: Sequence[Answer]) -> Answers:
    """Put the answers for single selections together."""
    tables = [emit_schema(rule).empty_table(), *(answer for answer in answers if not isinstance(answer, str))]
    counts = tuple(0 if isinstance(answer, str) else answer.num_rows for answer in answers)
    failed = {place: answer for place, answer in enumerate(answers) if isinstance(answer, str)}
    return Answers(pa.concat_tables(tables), counts, failed)
