"""A fold by a Python function: what the function is given, and what it may return.

The state of a key is kept as JSON text, so that it can be read, and stays what it is whatever version of
Python reads it again. So a state is made of what JSON has, and of nothing else.
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
from spark_pace.core.functions.operator_rows import as_table, emit_schema
from spark_pace.core.functions.python_function import load_operator
from spark_pace.core.functions.texts import last_line, traceback_text
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import OperatorError, one_line

MOST_STATE_BYTES = 16 << 20  # of one key
PIECE_ROWS = 10_000  # that are made, or checked, together
WHOLE_RUN = "takes_table"  # the attribute of a function that takes all events of a run as one table
ROW = "row"  # the column in which such a function says which event causes each row
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Runs:
    """The events of a batch, key by key: of each key those that stand together in its stream.

    Attributes:
        rule: the rule.
        events: the attributes of the events.
        seq: int64[n], the place of each event in the rule's stream.
        bounds: int64[runs + 1], where the events of each run begin, and where the last ones end.
        keys: of each run the text of its key; None without `partition_by`.
        states: of each run the state of its key as JSON; None where the stream of the key begins.
    """

    rule: Rule
    events: pa.Table
    seq: Ints
    bounds: Ints
    keys: Sequence[str] | None
    states: Sequence[str | None]

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.states)

    def failed(self, row: int, reason: str) -> OperatorError:
        """What is said where the function fails on the event in a row."""
        run = int(np.searchsorted(self.bounds, row, "right")) - 1
        key = "" if self.keys is None else f" key {one_line(self.keys[run])}"
        return OperatorError(
            f"rule {self.rule.name}{key} seq {self.seq[row]} — its fold {self.rule.function} must return; "
            f"got {one_line(reason)}. No state has changed: mend the function and start again."
        )


@dataclass(frozen=True)
class Folded:
    """What a function has made of some runs.

    Attributes:
        rows: int64[m], the event that causes each row, ascending.
        fields: a table of the m rows, with the fields of ``emit``.
        states: the state of each run's key from now on, as JSON.
    """

    rows: Ints
    fields: pa.Table
    states: list[str]


FoldRuns: TypeAlias = Callable[[Runs], Folded]
Begin: TypeAlias = Callable[[int], None]  # is told which event is folded now, or that a run begins with it


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
        begin: is called before the function is.
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
        raise runs.failed(at.row, last_line(traceback_text(error))) from None


@dataclass
class _At:
    """Where the work stands: at the event in a row."""

    begin: Begin
    row: int = 0

    def go(self, row: int) -> None:
        self.row = row
        self.begin(row)


def _by_row(function: Any, runs: Runs, at: _At) -> Folded:
    """One call for each event."""
    bounds, events = runs.bounds.tolist(), _listed(runs.events)
    rows: list[int] = []
    found: list[dict[str, Any]] = []
    states, tables = [], [emit_schema(runs.rule).empty_table()]
    done = 0  # of the rows, how many are in tables
    for run, text in enumerate(runs.states):
        state = _state_of(text)
        for row in range(bounds[run], bounds[run + 1]):
            at.go(row)
            state, given = function(state, next(events))
            for one in given:
                rows.append(row)
                found.append(dict(one))
            if len(found) >= PIECE_ROWS:
                tables.append(_table_of(found, rows[done:], runs.rule, at))
                found, done = [], len(rows)
        states.append(state_text(state))
    tables.append(_table_of(found, rows[done:], runs.rule, at))
    return Folded(np.array(rows, np.int64), pa.concat_tables(tables), states)


def _listed(events: pa.Table) -> Iterator[dict[str, Any]]:
    """The events one after the other. Those of a piece are made together, which is far quicker."""
    for first in range(0, events.num_rows, PIECE_ROWS):
        yield from events.slice(first, PIECE_ROWS).to_pylist()


def _table_of(found: list[dict[str, Any]], rows: list[int], rule: Rule, at: _At) -> pa.Table:
    """The rows that some events have caused; if one is refused, the work stands at its event then."""
    try:
        return as_table(found, rule)
    except Exception:
        for one, row in zip(found, rows, strict=True):
            at.row = row
            as_table([one], rule)
        raise


def _by_table(function: Any, runs: Runs, at: _At) -> Folded:
    """One call for each run."""
    bounds = runs.bounds.tolist()
    causes, tables, states = [np.zeros(0, np.int64)], [emit_schema(runs.rule).empty_table()], []
    for run, text in enumerate(runs.states):
        first, count = bounds[run], bounds[run + 1] - bounds[run]
        at.go(first)
        state, table = function(_state_of(text), runs.events.slice(first, count))
        if not isinstance(table, pa.Table):
            raise TypeError(f"the rows must be a pyarrow.Table; got {type(table).__name__}")
        tables.append(as_table(table, runs.rule))
        causes.append(first + _causes(table, count))
        states.append(state_text(state))
    return Folded(np.concatenate(causes), pa.concat_tables(tables), states)


def _causes(table: pa.Table, events: int) -> Ints:
    """int64[m], the column that says which event of the run causes each row."""
    if ROW not in table.column_names:
        names = ", ".join(table.column_names) or "none"
        raise ValueError(f'the table must have a column "{ROW}"; got {names}')
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
        TypeError: it holds what JSON has not.
        ValueError: it is too large, or goes round in a circle.
    """
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    _check_plain(state, 0)
    size = len(text.encode())
    if size > MOST_STATE_BYTES:
        raise ValueError(f"the state must be at most {MOST_STATE_BYTES >> 20} MiB; got {size:,} bytes")
    return text


def _check_plain(value: Any, depth: int) -> None:
    """Refuse what would not come back as it is. Types are compared exactly, for a subclass does not."""
    kind = type(value)
    if kind in _PLAIN:
        return
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
        _check_plain(one, depth + 1)
