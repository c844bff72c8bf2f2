"""Checks a clause against the columns of its input; what it gives is a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from spark_pace.core.expr import Literal
from spark_pace.core.match.row_patterns.program import MOST_INSTRUCTIONS, TooLargeError, program_of
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import Condition, OrderKey, RowPattern, final_columns
from spark_pace.errors import one_line
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.calendar import constant_interval
from spark_pace.rules.expressions.parsing import parse_expression
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.clause import Clause, Key
from spark_pace.rules.row_patterns.columns import Names, compiled, expression_text
from spark_pace.rules.row_patterns.expressions import Expressions
from spark_pace.rules.row_patterns.words import Query, Word

MOST_STEPS = 1_000_000


def plan_of(
    query: Query,
    clause: Clause,
    schema: pa.Schema,
    most_steps: int = MOST_STEPS,
    in_spark: Callable[[str], bool] | None = None,
    event_time: str | None = None,
) -> RowPattern:
    """The plan of a clause over rows of this schema.

    Args:
        query: the query.
        clause: one of its clauses.
        schema: the columns of the input.
        most_steps: see `RowPattern`.
        in_spark: tells whether Spark has a function; None where there is no Spark.
        event_time: a column of times whatever its type; None: there is none.

    Raises:
        ConfigError: names, types or parts of the clause do not go together.
    """
    primary = [word.folded for word in clause.variables]
    names = Names(schema, _variables(query, clause, primary), event_time)
    plan = _plan(query, clause, Expressions(names, tuple(primary), in_spark), most_steps)
    _check_whole(query, clause, plan, schema)
    return plan


def _plan(query: Query, clause: Clause, expressions: Expressions, most_steps: int) -> RowPattern:
    names, primary = expressions.names, expressions.variables
    measures = [expressions.measure(one) for one in clause.measures]
    order = tuple(order_key(query, names, key) for key in clause.order)
    skip_to = clause.skip_to
    targets = skip_to and query.checked(skip_to, names.variables_of(skip_to.folded))
    return RowPattern(
        where=str(query.place(clause.opening.start)),
        partition=tuple(_column(query, names, word) for word in clause.partition),
        order=order,
        measures=tuple(one for found, _ in measures for one in found),
        outside=tuple(one for _, one in measures if one is not None),
        rows=clause.rows,
        skip=clause.skip,
        skip_variables=targets or (),
        skip_name="" if skip_to is None else one_line(skip_to.text),
        variables=primary,
        conditions=tuple(_conditions(query, clause, primary, expressions)),
        pattern=clause.pattern,
        within_us=_within(query, clause, names, order),
        most_steps=most_steps,
    )


def _variables(query: Query, clause: Clause, primary: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The numbers of each variable and union."""
    variables: dict[str, tuple[int, ...]] = {name: (number,) for number, name in enumerate(primary)}
    for word in clause.variables:
        if word.kind == "name" and any(word.text != name and word.text.upper() == name for name in primary):
            must, do = "must differ from other variables in more than capitals", "Write another name."
            query.fail(word, must, quote(word.text), do)
    for name, members in clause.subsets:
        if name.folded in variables:
            must, do = "must be a name that nothing in the pattern has", "Write another name."
            query.fail(name, must, quote(name.text), do)
        numbers = []
        for member in members:
            if member.folded not in primary:
                must = "must be a variable of the pattern"
                query.fail(member, must, quote(member.text), nearest(member.folded, primary))
            numbers.append(primary.index(member.folded))
        variables[name.folded] = tuple(sorted(set(numbers)))
    return variables


def _column(query: Query, names: Names, word: Word) -> str:
    """A column by which rows can be sorted."""
    column = query.checked(word, names.column(word.text))
    kind = names.schema.field(column).type
    if expression_type(kind) is None:
        must = "must be a column by which rows can be sorted"
        query.fail(word, must, f"{quote(column)}, {kind}", "Take a part of it in a subquery.")
    return column


def order_key(query: Query, names: Names, key: Key) -> OrderKey:
    """A column of ORDER BY, with the place of nulls that the dialect has where the query says none."""
    at = query.dialect.nulls
    nulls_first = (at == "least" and not key.descending) or (at == "greatest" and key.descending)
    if key.nulls_first is not None:
        nulls_first = key.nulls_first
    return OrderKey(_column(query, names, key.name), key.descending, nulls_first)


def _conditions(
    query: Query, clause: Clause, primary: Sequence[str], expressions: Expressions
) -> Iterator[Condition]:
    defined: dict[str, Condition] = {}
    for one in clause.definitions:
        name = one.name.folded
        if name not in primary:
            must = "must be a variable of the pattern"
            query.fail(one.name, must, quote(one.name.text), nearest(name, primary))
        if name in defined:
            query.fail(one.name, "must be defined once", quote(one.name.text), "Join the conditions by AND.")
        defined[name] = expressions.condition(one, primary.index(name))
    yield from (defined.get(name, Condition()) for name in primary)


def _within(query: Query, clause: Clause, names: Names, order: Sequence[OrderKey]) -> int | None:
    """The microseconds of WITHIN."""
    if clause.within is None:
        return None
    word = clause.within.word
    if not order or order[0].descending or not names.is_time(order[0].column):
        must = "must stand beside an ORDER BY whose first column is a TIMESTAMP or DATE, ascending"
        got = "none" if not order else f"{quote(order[0].column)}, {names.schema.field(order[0].column).type}"
        query.fail(word, must, got, "Order by the time first, or leave WITHIN out.")
    text = expression_text(replace(clause.within), lambda _: None)
    tree = compiled(lambda report: parse_expression(text, report))
    do = "Write for example INTERVAL '1' HOUR."
    none = Wrong("must be an interval", quote(word.text), do)
    length = query.checked(word, constant_interval(tree) if tree.key == "interval" else none)
    micros = length.micros.value if isinstance(length.micros, Literal) else None
    found: int | Wrong = int(micros) if micros else none
    return query.checked(word, found)


def _check_whole(query: Query, clause: Clause, plan: RowPattern, schema: pa.Schema) -> None:
    if clause.excludes and plan.rows == "unmatched":
        must = "must not stand beside {- -}, whose rows would be neither matched nor unmatched"
        query.fail(clause.rows_word, must, "WITH UNMATCHED ROWS", "Leave one of them out.")
    columns = [name for name, _ in final_columns(plan, tuple(schema.names))]
    _refuse_twice(query, clause, columns)
    try:
        program_of(plan.pattern)
    except TooLargeError:
        must = f"must have at most {MOST_INSTRUCTIONS:,} instructions when its bounds are written out"
        query.fail(clause.opening, must, "a larger pattern", "Write smaller bounds in {n,m}.")


def _refuse_twice(query: Query, clause: Clause, columns: Sequence[str]) -> None:
    lower = [name.lower() for name in columns]
    twice = next((name for name in columns if lower.count(name.lower()) > 1), None)
    if twice is None:
        return
    must = "must be the name of one column of the result"
    named = next((one.name for one in clause.measures if one.name.text.lower() == twice.lower()), None)
    do = "Rename columns of the input in a subquery." if named is None else "Name the measure otherwise."
    query.fail(named or clause.opening, must, quote(twice), do)
