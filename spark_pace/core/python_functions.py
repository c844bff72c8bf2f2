"""Calls the Python functions of rules, their operators and folds, and checks and converts what they return.

The state of a fold's key is kept as JSON text, which people can read, and which every version of Python reads
in the same way. So a state may only have values that JSON has.
"""

from __future__ import annotations

import importlib
import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from functools import cache
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, TypeName
from spark_pace.core.expr.time_functions import out_of_range
from spark_pace.core.plan.rule import Rule
from spark_pace.core.ranks import segments_of
from spark_pace.core.tables import Ints
from spark_pace.errors import OperatorError, one_line

MOST_CHARACTERS = 10_000  # in a reason or a key of the table `quarantine`


def shortened(text: str) -> str:
    """The text as valid Unicode; in one of more than `MOST_CHARACTERS` a note stands for the middle."""
    text = text.encode("utf-8", "backslashreplace").decode()  # a table takes no half of a surrogate pair
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters are left out here …\n{text[-half:]}"
    return text


def traceback_text(error: BaseException) -> str:
    """The traceback of an exception, cut to `MOST_CHARACTERS`; if it cannot be shown, a sentence says so."""
    try:
        return shortened("".join(traceback.format_exception(error)))
    except Exception as why:  # Python calls the exception's own code for that
        return f"{type.__repr__(type(error))}: its text cannot be shown ({type.__repr__(type(why))})"


def raised_at(error: BaseException, function: str) -> str:
    """Where in the package of a rule's ``module:function`` an exception was raised: `` (path, line 3)``.

    It is the innermost line of that package, for what other libraries raise too; "" if no such line is known.
    """
    package, found = function.partition(":")[0].partition(".")[0], ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package:
            found = f" ({frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def last_line(text: str) -> str:
    """The last line of words in a traceback, without the frame that Python draws around exception groups."""
    lines = [line.strip(" |") for line in text.splitlines() if any(letter.isalpha() for letter in line)]
    return one_line(lines[-1] if lines else text.strip())


MOST_TEXT_BYTES = 16 << 20  # the size of a value: readers of Parquet refuse pages with much longer ones
MOST_ROWS_BYTES = 256 << 20  # the size of one selection's rows: rows of many selections travel together
ROW = "row"  # the column in which a fold that takes tables says which event causes each row
_ALIKE = 0.8  # a misspelt name is at least as similar: `total` and `totla` are, `amount` and `count` not

Rows: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]

_TAKEN = {  # the types of a column that may be cast to each declared type, if no value loses anything
    "BOOLEAN": (pa.types.is_boolean,),
    "BIGINT": (pa.types.is_integer,),
    "DOUBLE": (pa.types.is_floating, pa.types.is_integer),
    "STRING": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "TIMESTAMP": (pa.types.is_timestamp, pa.types.is_date),
    "DATE": (pa.types.is_date,),
}


def emit_schema(rule: Rule) -> pa.Schema:
    """The Arrow schema of the fields that the rule declares in ``emit``."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in rule.emit])


def as_table(rows: Rows, rule: Rule) -> pa.Table:
    """Convert rows to a table of the declared fields. Missing fields are null, undeclared ones are left out.

    Raises:
        TypeError: a value is not of its field's type, or the name of a field is misspelt.
        ValueError: a value or all of them are too large, or a time is out of range.
        Exception: whatever reading the rows raises.
    """
    if isinstance(rows, pa.Table):
        rows.validate(full=True)  # Arrow trusts its buffers, and bad ones would crash whoever reads the table
        count = rows.num_rows
        _check_names(tuple(rows.column_names), rule)
        columns = {field.name: rows[field.name] for field in rule.emit if field.name in rows.column_names}
    else:
        listed = [dict(row) for row in rows]
        count = len(listed)
        for names in dict.fromkeys(tuple(row) for row in listed):
            _check_names(names, rule)
        columns = {
            field.name: _column(field.name, field.type, [row.get(field.name) for row in listed])
            for field in rule.emit
        }
    schema = emit_schema(rule)
    given = [
        _declared(field.name, columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, ARROW_TYPES[field.type])
        for field in rule.emit
    ]
    table = pa.table(given, schema=schema) if given else _without_columns(count)
    if table.nbytes > MOST_ROWS_BYTES:
        must = f"must be at most {MOST_ROWS_BYTES >> 20} MiB"
        raise ValueError(f"the rows that are returned at once {must}; got {table.nbytes >> 20} MiB")
    return table


def _check_names(names: tuple[Any, ...], rule: Rule) -> None:
    """Refuse an undeclared name that is similar to that of a declared field which is not there."""
    lacking = [field.name for field in rule.emit if field.name not in names]
    if not lacking:
        return
    declared = {field.name for field in rule.emit} | ({ROW} if rule.fold is not None else set())
    for name in names:
        meant = get_close_matches(name, lacking, n=1, cutoff=_ALIKE) if isinstance(name, str) else []
        if meant and name not in declared:
            got = f'got "{one_line(name)}" (did you mean "{meant[0]}"?)'
            raise TypeError(f"a row must have the fields of emit; {got}")


def _without_columns(rows: int) -> pa.Table:
    """A table that has a number of rows and nothing else."""
    return pa.table([pa.nulls(rows)], names=[""]).select([])


def _column(name: str, declared: TypeName, values: list[Any]) -> pa.Array:
    """The values of a field as one array, of the type that Arrow gives values of their Python types."""
    values = [_plain(name, declared, value) for value in values]
    column = _by_arrow(name, declared, lambda: pa.array(values))
    if not pa.types.is_boolean(column.type) and any(isinstance(value, (bool, np.bool_)) for value in values):
        # Arrow would make numbers of them
        raise TypeError(f"emit {name} — must be {declared}; got truth values among others")
    if pa.types.is_date(column.type) and any(isinstance(value, datetime) for value in values):
        raise TypeError(f"emit {name} — must be dates or times; got both")  # Arrow would cut the times
    if pa.types.is_timestamp(column.type) and any(getattr(value, "nanosecond", 0) for value in values):
        # times of pandas have them, and Arrow would cut them
        raise TypeError(f"emit {name} — must be whole microseconds; got nanoseconds")
    return column


def _plain(name: str, declared: TypeName, value: Any) -> Any:
    """The value in a form that Arrow reads as what it is.

    A day of NumPy's becomes a date, and a date for a TIMESTAMP becomes its midnight.
    """
    if isinstance(value, np.datetime64):
        missing = bool(np.isnat(value))
        if not missing and np.datetime_data(value)[0] == "D":
            value = value.item()
            if isinstance(value, int):  # Python has no such date
                raise ValueError(f"emit {name} — must be between the years 1 and 9999; got another year")
    else:
        missing = type(value).__name__ in ("NaTType", "NAType")  # types of pandas, which may not be installed
    if missing:
        raise TypeError(f"emit {name} — must be a value or None; got {value}")
    if declared == "TIMESTAMP" and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


def _by_arrow(name: str, declared: TypeName, make: Callable[[], pa.Array]) -> pa.Array:
    """Call `make`; if Arrow refuses the values, raise an error with the field's name and Arrow's message."""
    try:
        return make()
    except OverflowError:
        raise TypeError(f"emit {name} — must be within 64 bits; got a greater integer") from None
    except Exception as error:
        raise TypeError(f"emit {name} — must be {declared}; got what Arrow refuses: {error}") from None


def _declared(
    name: str, column: pa.Array | pa.ChunkedArray, declared: TypeName
) -> pa.Array | pa.ChunkedArray:
    """The column in its field's type. Most columns are short: calls cost more than rows, so make few."""
    target = ARROW_TYPES[declared]
    if column.type != target:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not pa.types.is_null(column.type) and not any(taken(column.type) for taken in _TAKEN[declared]):
            raise TypeError(f"emit {name} — must be {declared}; got {column.type}")
        given = column
        column = _by_arrow(name, declared, lambda: given.cast(target))
    if declared == "STRING" and column.nbytes > MOST_TEXT_BYTES:
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > MOST_TEXT_BYTES:
            must = f"must be texts of at most {MOST_TEXT_BYTES >> 20} MiB"
            raise ValueError(f"emit {name} — {must}; got one of {longest:,} bytes")
    if declared in ("TIMESTAMP", "DATE") and out_of_range(column) is not None:
        raise ValueError(f"emit {name} — must be between the years 1 and 9999; got another year")
    return column


ATTEMPTS = 2  # the number of calls until a failure is final


@cache
def load_operator(name: str) -> Callable[..., Any]:
    """The callable that ``module:function`` names.

    Raises:
        OperatorError: there is no such module or function, or another package defines the function.
    """
    module, _, function = name.partition(":")
    try:
        operator = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:  # a module may raise anything when it is imported
        got = last_line(traceback_text(error))
        raise OperatorError(
            f"operator {name} — must be importable where the operators run; got {got}. "
            "Install the module, or put its folder on PYTHONPATH (--py-files on a cluster)."
        ) from error
    home, package = str(getattr(operator, "__module__", "")), module.partition(".")[0]
    if not callable(operator) or home.partition(".")[0] != package:  # it must not be an import
        raise OperatorError(
            f"operator {name} — must be a function that the package {package} defines; "
            f"got {type(operator).__name__} of {home or 'none'}. "
            "Define it there, or allow and name the module that does."
        )
    return operator  # type: ignore[no-any-return]


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

    If rows of several events have types that do not fit together, they are converted in halves, down to the
    rows of one event, because results must not depend on which events are in a batch. If the rows of one
    event are refused, `at` names it.
    """
    try:
        return as_table(found, rule)
    except Exception:
        first = segments_of(rows)
        if len(first) < 2:
            at.row = int(rows[0]) if len(rows) else at.row
            raise
    middle = first[len(first) // 2]
    parts = ((found[:middle], rows[:middle]), (found[middle:], rows[middle:]))
    return pa.concat_tables([_table_of(part, of, rule, at) for part, of in parts])


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
