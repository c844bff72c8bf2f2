"""What a Python operator sees of a selection, and how it is called."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.rule import Rule
from spark_pace.errors import OperatorError

ATTEMPTS = 2


@dataclass(frozen=True)
class Span:
    """One selection, whole: the argument of a Python operator.

    Attributes:
        events: its events in stream order, one column for each attribute of the schema; times are UTC.
        rule: the rule's name.
        selection_id: number of the selection.
        key: the key's text; None without `partition_by`.
        closed: whether an event closed it, which is then the last one; else its window's end did.
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
        """The event that closed the selection; None where its window's end did."""
        if not self.closed:
            return None
        return self.events.slice(self.events.num_rows - 1).to_pylist()[0]  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """The events as a pandas DataFrame."""
        return self.events.to_pandas()


Rows: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]
Operator = Callable[[Span], Rows]


@cache
def load_operator(name: str) -> Operator:
    """The callable that ``module:function`` names.

    Raises:
        OperatorError: there is no such module or function.
    """
    module, _, function = name.partition(":")
    try:
        operator = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise OperatorError(
            f"operator {name} — must be importable where the operators run; got {error}. "
            "Install the module, or put its folder on PYTHONPATH (--py-files on a cluster)."
        ) from error
    return operator  # type: ignore[no-any-return]


def emit_schema(rule: Rule) -> pa.Schema:
    """The fields that the rule declares, as its operator yields them."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in rule.emit])


def call_operator(rule: Rule, span: Span) -> pa.Table | str:
    """The rows the rule's operator yields for a selection, or the last traceback where every attempt failed."""
    assert rule.operator is not None
    operator = load_operator(rule.operator)
    reason = ""
    for _ in range(ATTEMPTS):
        try:
            return _as_table(operator(span), emit_schema(rule))
        except Exception:  # whatever a user's function raises belongs to the selection
            reason = traceback.format_exc()
    return reason


def _as_table(rows: Rows, schema: pa.Schema) -> pa.Table:
    """The declared fields of the rows; one that is not yielded is null, one that is not declared is left out."""
    if not isinstance(rows, pa.Table):
        return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
