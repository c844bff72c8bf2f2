"""Calls the Python function of a fold, and checks what it returns.

The state of a key is kept as JSON text, which people can read, and which every version of Python reads in the
same way. So a state may only have values that JSON has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints
from spark_pace.core.functions.error_texts import last_line, raised_at, traceback_text
from spark_pace.core.functions.operator_rows import ROW, as_table, emit_schema
from spark_pace.core.functions.python_function import load_operator
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import OperatorError, one_line

MOST_STATE_BYTES = 16 << 20  # the size of a key's state
PIECE_ROWS = 10_000  # events that are converted, or returned rows that are checked, together
WHOLE_RUN = "takes_table"  # the attribute of a function that takes all events of a run as one table
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Runs:
    """The events of a batch in runs: a run has events of one key, in the order of its stream.

    Attributes:
        rule: the rule.
        events: the attributes of the events.
        seq: int64[n], the place of each event in the rule's stream.
        bounds: int64[runs + 1], where the events of each run begin, and where the last ones end.
        keys: the text of each run's key; None without `partition_by`.
        states: the state of each run's key as JSON; None if the key's stream begins with the run.
    """

    rule: Rule
    events: pa.Table
    seq: Ints
    bounds: Ints
    keys: Sequence[str] | None
    states: Sequence[str | None]

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.states)

    def failed(self, row: int, reason: str) -> OperatorError:
        """The error if the function fails on the event in a row."""
        run = int(np.searchsorted(self.bounds, row, "right")) - 1
        key = "" if self.keys is None else f" key {one_line(self.keys[run])}"
        return OperatorError(
            f"rule {self.rule.name}{key} seq {self.seq[row]} — its fold {self.rule.function} must return; "
            f"got {one_line(reason)}. No state has changed: mend the function and start again."
        )


@dataclass(frozen=True)
class Folded:
    """The results of a function for some runs.

    Attributes:
        rows: int64[m], the row in `Runs.events` of the event that causes each match, ascending.
        fields: the fields of ``emit``, a table of m rows.
        states: the new state of each run's key, as JSON.
    """

    rows: Ints
    fields: pa.Table
    states: list[str]


FoldRuns: TypeAlias = Callable[[Runs], Folded]
Begin: TypeAlias = Callable[[int], None]  # called with the row of the next event, or of the run's first


def fold_here(runs: Runs) -> Folded:
    """Call the function in this process.

    Raises:
        OperatorError: it cannot be imported, or has failed.
    """
    return fold_runs(runs, lambda row: None, (Exception, SystemExit))


def fold_runs(runs: Runs, begin: Begin, caught: tuple[type[BaseException], ...]) -> Folded:
    """Call the function for all runs.

    Args:
        runs: the runs.
        begin: called before each call of the function.
        caught: the exceptions that count as a failure of the function; others are raised.

    Raises:
        OperatorError: it cannot be imported, or has failed.
    """
    assert runs.rule.function is not None
    function: Any = load_operator(runs.rule.function)
    fold = _by_table if getattr(function, WHOLE_RUN, False) is True else _by_row
    at = _At(begin)
    try:
        return fold(function, runs, at)
    except caught as error:
        where = raised_at(error, runs.rule.function)
        raise runs.failed(at.row, last_line(traceback_text(error)) + where) from None


@dataclass
class _At:
    """Remembers the row of the event that is being folded, for errors."""

    begin: Begin
    row: int = 0

    def go(self, row: int) -> None:
        self.row = row
        self.begin(row)


def _by_row(function: Any, runs: Runs, at: _At) -> Folded:
    """Call the function for each event."""
    bounds, events = runs.bounds.tolist(), _listed(runs.events)
    rows: list[int] = []
    found: list[dict[str, Any]] = []
    states, tables = [], [emit_schema(runs.rule).empty_table()]
    done = 0  # the number of rows in tables
    for run, text in enumerate(runs.states):
        state = _state_of(text)
        for row in range(bounds[run], bounds[run + 1]):
            at.go(row)
            state, given = function(state, next(events))
            _check_plain(state, 0, set())  # here, and not only where the batch ends
            for one in given:
                rows.append(row)
                found.append(dict(one))
            if len(found) >= PIECE_ROWS:
                tables.append(_table_of(found, np.array(rows[done:], np.int64), runs.rule, at))
                found, done = [], len(rows)
        states.append(state_text(state))
    tables.append(_table_of(found, np.array(rows[done:], np.int64), runs.rule, at))
    return Folded(np.array(rows, np.int64), pa.concat_tables(tables), states)


def _listed(events: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the events as dicts. A piece of them is converted at once, which is far faster."""
    for first in range(0, events.num_rows, PIECE_ROWS):
        yield from events.slice(first, PIECE_ROWS).to_pylist()


def _table_of(found: list[dict[str, Any]] | pa.Table, rows: Ints, rule: Rule, at: _At) -> pa.Table:
    """Convert the rows that events have caused to a table; `rows`: int64[m], the event of each, ascending.

    If rows of several events have types that do not fit together, they are converted event by event, because
    results must not depend on which events are in a batch. If the rows of one event are refused, `at` names
    it.
    """
    try:
        return as_table(found, rule)
    except Exception:
        border = _border(rows)
        if border is None:
            at.row = int(rows[0]) if len(rows) else at.row
            raise
    parts = ((found[:border], rows[:border]), (found[border:], rows[border:]))
    return pa.concat_tables([_table_of(part, of, rule, at) for part, of in parts])


def _border(rows: Ints) -> int | None:
    """A place near the middle between the rows of one event and those of another; None if there is none."""
    if not len(rows):
        return None
    middle = rows[len(rows) // 2]
    borders = (int(np.searchsorted(rows, middle)), int(np.searchsorted(rows, middle, side="right")))
    return next((border for border in borders if 0 < border < len(rows)), None)


def _by_table(function: Any, runs: Runs, at: _At) -> Folded:
    """Call the function for each run."""
    bounds = runs.bounds.tolist()
    causes, tables, states = [np.zeros(0, np.int64)], [emit_schema(runs.rule).empty_table()], []
    for run, text in enumerate(runs.states):
        first, count = bounds[run], bounds[run + 1] - bounds[run]
        at.go(first)
        state, table = function(_state_of(text), runs.events.slice(first, count))
        if not isinstance(table, pa.Table):
            raise TypeError(f"the rows must be a pyarrow.Table; got {type(table).__name__}")
        causes.append(first + _causes(table, count))
        if table.num_rows:  # columns of an empty table may have no types
            tables.append(_table_of(table, causes[-1], runs.rule, at))
        states.append(state_text(state))
    return Folded(np.concatenate(causes), pa.concat_tables(tables), states)


def _causes(table: pa.Table, events: int) -> Ints:
    """int64[m], for each row that the function has returned, the place in the run of the event that gives it.

    That is its column ``row``.

    Raises:
        ValueError: the column is missing, or does not hold ascending places of the run.
    """
    if ROW not in table.column_names:
        names = ", ".join(table.column_names) or "none"
        raise ValueError(f'the table must have a column "{ROW}"; got {names}')
    if not table.num_rows:
        return np.zeros(0, np.int64)
    column = table[ROW]
    whole = pa.types.is_integer(column.type) and not column.null_count
    rows = pc.cast(column, pa.int64()).to_numpy() if whole else np.array([-1])
    if len(rows) and (rows[0] < 0 or rows[-1] >= events or (rows[1:] < rows[:-1]).any()):
        must = f"must be ascending whole numbers from 0 to {events - 1}"
        raise ValueError(f'the column "{ROW}" {must}, the places of events; got others')
    return np.asarray(rows, np.int64)


def _state_of(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def state_text(state: Any) -> str:
    """A state as JSON text.

    Raises:
        TypeError: the state has a value of a type that JSON does not have.
        ValueError: the state is too large or contains itself.
    """
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    _check_plain(state, 0, set())
    size = len(text.encode())
    if size > MOST_STATE_BYTES:
        raise ValueError(f"the state must be at most {MOST_STATE_BYTES >> 20} MiB; got {size:,} bytes")
    return text


def _check_plain(value: Any, depth: int, met: set[int]) -> None:
    """Refuse values that JSON would change. Types are compared exactly, because JSON loses subclasses.

    `met` collects the identities of all lists and dicts: JSON would make two of one that stands twice.
    """
    kind = type(value)
    if kind is str and not value.isascii():
        value.encode()  # JSON has no half of a surrogate pair
    if kind in _PLAIN:
        return
    if id(value) in met:
        raise ValueError(f"the state must have each {kind.__name__} in one place; got one in two")
    met.add(id(value))
    if depth > 100:
        raise ValueError("the state must be nested at most 100 deep; got more")
    if kind is dict:
        for name in value:
            if type(name) is not str:
                raise TypeError(f"the keys in a state must be str; got {type(name).__name__}")
        value = value.values()
    elif kind is not list:
        must = "must be made of dict, list, str, int, float, bool and None"
        raise TypeError(f"the state {must}; got {kind.__module__}.{kind.__qualname__}")
    for one in value:
        _check_plain(one, depth + 1, met)
