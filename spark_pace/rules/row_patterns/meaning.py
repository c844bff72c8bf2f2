"""Checks a clause against the columns of its input; what it gives is a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Column, Expr, Literal, transform, walk
from spark_pace.core.match.row_patterns.program import MOST_INSTRUCTIONS, TooLargeError, program_of
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import (
    Computed,
    Condition,
    Measure,
    Navigation,
    OrderKey,
    Outside,
    RowPattern,
    Summary,
    final_columns,
    slot_column,
    slot_name,
)
from spark_pace.errors import ConfigError, one_line
from spark_pace.rules.document import Report, nearest, quote
from spark_pace.rules.expressions.calendar import constant_interval
from spark_pace.rules.expressions.compile import compile_parts, compile_value
from spark_pace.rules.expressions.names import name_of
from spark_pace.rules.expressions.parsing import parse_expression
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.clause import Clause, Key, Named
from spark_pace.rules.row_patterns.expressions import (
    OF_SPARK,
    Names,
    Slots,
    compiled,
    expression_text,
    foreign_in,
    read_outside,
)
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
    primary = tuple(word.folded for word in clause.variables)
    names = Names(schema, _variables(query, clause, primary), event_time)
    plan = _plan(query, clause, Expressions(names, primary, in_spark), most_steps)
    _check_whole(query, clause, plan, schema)
    return plan


def beforehand(
    query: Query, clause: Clause, schema: pa.Schema, is_sparks: Callable[[str, str], bool]
) -> dict[str, str]:
    """The further columns that a clause needs, each named by the call that gives it and `OF_SPARK`.

    Args:
        query: the query.
        clause: one of its clauses.
        schema: the columns of the input.
        is_sparks: tells of a function and of a call of it, as Spark writes it, whether Spark can compute it
            of one row.

    Returns:
        The names, with the place of the call.
    """
    names = Names(schema, _variables(query, clause, [one.folded for one in clause.variables]))
    found = dict[str, str]()
    for one in (*clause.measures, *clause.definitions):
        text = expression_text(replace(one.text), names)
        for name, place in foreign_in(text, names, is_sparks, defines=one in clause.definitions):
            found.setdefault(name, one_line(str(text.at(place.start))))
    return found


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
    text = expression_text(replace(clause.within), names)
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
    named = [one.name for one in clause.measures if one.name.text.lower() == twice.lower()]
    must, do = "must be the name of one column of the result", "Name the measure, or the column, otherwise."
    query.fail([*named, clause.opening][0], must, quote(twice), do)


# ---------------------------------------------------------------- measures and conditions


@dataclass(frozen=True)
class Expressions:
    """The expressions of a clause.

    Attributes:
        names: what names mean.
        variables: the names of the variables, by their numbers.
        in_spark: tells whether Spark has a function; None where there is no Spark.
    """

    names: Names
    variables: tuple[str, ...]
    in_spark: Callable[[str], bool] | None

    def measure(self, one: Named) -> tuple[tuple[Measure, ...], Outside | None]:
        """A measure; or those that it is computed of, and how, where Spark computes it.

        Raises:
            ConfigError: its expression is wrong.
        """
        known = self._reading(one, None)
        tree = parse_expression(known.text, Report())
        name = None if tree is None else name_of(tree, known.scope)
        plain = None if name is None else known.value(*name)
        if isinstance(plain, Navigation):
            return (self._measure(one.name.text, known.slot(plain), known),), None
        try:
            expr: Expr = compiled(lambda report: compile_value(known.text, known.scope, report))
        except ConfigError:
            found = self._by_spark(one.name.text, known)
            if found is None:
                raise
            return found
        return (self._measure(one.name.text, expr, known),), None

    def _by_spark(self, name: str, known: Slots) -> tuple[tuple[Measure, ...], Outside] | None:
        """A measure that Spark computes; None if it cannot."""
        found = None if self.in_spark is None else read_outside(known, self.in_spark)
        if not found:
            return None
        sql, measures = known.text.text, []
        for number, (start, end, expr) in enumerate(found):
            measures.append(self._measure(f"@{name}.{number}", expr, known))
            sql = f"{sql[:start]}`@{name.replace('`', '``')}.{number}`{sql[end:]}"
        return tuple(measures), Outside(name, sql, tuple(one.name for one in measures))

    def _measure(self, name: str, expr: Expr, known: Slots) -> Measure:
        """A measure that is computed here, or is a value of a column."""
        taken = self._taken(name, expr, known) if isinstance(expr, Column) else None
        if taken is not None:
            return taken
        kind = pa.timestamp("us", "UTC") if expr.type == "TIMESTAMP" else ARROW_TYPES[expr.type]
        return Measure(name, _computed(expr, known), None, kind)

    def condition(self, one: Named, variable: int) -> Condition:
        """The condition of a variable.

        Raises:
            ConfigError: its expression is wrong.
        """
        known = self._reading(one, variable)
        found = compiled(lambda report: compile_parts(known.text, known.scope, report))
        parts = [_computed(expr, known) for _, expr in found]
        fixed = [part for part in parts if all(_is_fixed(slot, variable) for slot in part.slots)]
        return Condition(tuple(fixed), tuple(part for part in parts if part not in fixed))

    def _reading(self, one: Named, variable: int | None) -> Slots:
        reader = replace(one.text)
        if reader.is_done:
            reader.fail("must be an expression", "Write a condition or a value.")
        inside = reader.query.dialect.inside and variable is None
        text = expression_text(reader, self.names)
        found = foreign_in(text, self.names, self._is_beforehand, defines=variable is not None)
        text = replace(text, sparks=tuple(place for _, place in found))
        return Slots(self.names, self.variables, variable, inside, text)

    def _is_beforehand(self, _function: str, call: str) -> bool:
        """Tell whether Spark has computed a call as a further column."""
        return f"{call}{OF_SPARK}" in self.names.schema.names

    def _taken(self, name: str, alone: Column, known: Slots) -> Measure | None:
        """A measure that is a value of a column as it is, or the least or greatest one."""
        slot = known.slots[int(alone.attribute[1:])]
        if not isinstance(slot, Navigation | Summary) or not isinstance(slot.of, Column):
            return None
        column = slot.of.attribute
        kind = self.names.schema.field(column).type
        value = Computed(slot_column(0, slot), (slot,))
        if isinstance(slot, Navigation):
            return Measure(name, value, column, kind)
        if slot.function in ("min", "max") and slot.type != "TIMESTAMP":
            return Measure(name, value, None, kind)
        return None


def _is_fixed(slot: object, variable: int) -> bool:
    """Tell whether a slot of a condition reads a row at a fixed distance from the row that is tested."""
    if not isinstance(slot, Navigation) or slot.first or slot.back or slot.of is None:
        return False
    return slot.variables is None or variable in slot.variables


def _computed(expr: Expr, known: Slots) -> Computed:
    """An expression with the slots that it reads, numbered anew."""
    used = list(dict.fromkeys(node.attribute for node in walk(expr) if isinstance(node, Column)))
    slots = tuple(known.slots[int(name[1:])] for name in used)
    numbers = {name: slot_name(number) for number, name in enumerate(used)}

    def numbered(node: Expr) -> Expr | None:
        return replace(node, attribute=numbers[node.attribute]) if isinstance(node, Column) else None

    return Computed(transform(expr, numbered), slots)
