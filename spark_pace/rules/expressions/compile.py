"""Compiles the expression language, a subset of Spark SQL, to the core's expression trees.

Text is parsed by sqlglot and never evaluated; only what `_Compiler` knows gets through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from spark_pace.core.expr import Call, Expr, Literal, decimal_digits
from spark_pace.errors import counted
from spark_pace.rules.document import Node, Place, Report, Scalar, nearest, quote
from spark_pace.rules.expressions.calendar import (
    Interval,
    calculate,
    constant_interval,
    no_value,
    part,
    signed,
    with_unit,
)
from spark_pace.rules.expressions.functions import (
    ELSEWHERE,
    FUNCTIONS,
    arithmetic,
    case,
    comparison,
    computed,
    concat,
    connect,
    no_rule,
    with_constant_text,
)
from spark_pace.rules.expressions.names import (
    PREV,
    aggregate,
    name_of,
    previous,
    whole,
)
from spark_pace.rules.expressions.parsing import (
    ONLY_THIS_LANGUAGE,
    as_expression,
    conjuncts_of,
    parse_expression,
    start_of,
)
from spark_pace.rules.expressions.patterns import rlike
from spark_pace.rules.expressions.scopes import Scope
from spark_pace.rules.expressions.types import (
    AGGREGATES,
    COUNTED_IF,
    NO_ATTRIBUTE,
    UNKNOWN_EVENTS,
    Wrong,
    averaged,
    cast_to,
    constant_text,
    convert,
    excess_of,
    no_type,
    number_literal,
    require_type,
    text_constant,
    unify,
)

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}

_INSTEAD: dict[type[exp.Expr], str] = {
    exp.Filter: COUNTED_IF,
    exp.Window: "Leave OVER out; in a query, compute it in a subquery.",
}


def compile_value(scalar: Scalar, scope: Scope, report: Report) -> Expr | None:
    """An expression of any type but bare null; None where it is reported as wrong."""
    tree = parse_expression(scalar, report)
    value = None if tree is None else compile_tree(tree, scalar, scope, report)
    if value is not None and value.type == "NULL":
        report.add(scalar.place, "must have a type", "null", "Write cast(null as TYPE).")
        return None
    return value


def compile_condition(scalar: Scalar, scope: Scope, report: Report) -> Expr | None:
    """A BOOLEAN expression; None where it is reported as wrong."""
    tree = parse_expression(scalar, report)
    return None if tree is None else _condition(tree, scalar, scope, report)


def read_condition(node: Node | None, scope: Scope, report: Report) -> Expr | None:
    """The condition that a node of a file says; None if there is none, or it is reported as wrong."""
    scalar = as_expression(node, report)
    return None if scalar is None else compile_condition(scalar, scope, report)


def compile_parts(scalar: Scalar, scope: Scope, report: Report) -> list[tuple[Place, Expr]]:
    """The conditions that are joined by ``and`` at the top, in order, with their places.

    Wrong ones are reported and left out. An ``and`` under an ``or`` or ``not`` does not split; parentheses do
    not count (semantics, section 3).
    """
    tree = parse_expression(scalar, report)
    parts = [] if tree is None else conjuncts_of(tree)
    built = [(scalar.at(start_of(part)), _condition(part, scalar, scope, report)) for part in parts]
    return [(place, expr) for place, expr in built if expr is not None]


def _condition(tree: exp.Expr, scalar: Scalar, scope: Scope, report: Report) -> Expr | None:
    value = compile_tree(tree, scalar, scope, report)
    if value is None:
        return None
    if value.type not in ("BOOLEAN", "NULL"):
        place, must = scalar.at(start_of(tree)), "must be a condition (BOOLEAN)"
        report.add(place, must, value.type, "Compare it with something.")
        return None
    return convert(value, "BOOLEAN")


def compile_tree(tree: exp.Expr, scalar: Scalar, scope: Scope, report: Report) -> Expr | None:
    """What a part of a text says; None where it is reported as wrong."""
    value = _Compiler(scalar, scope, report).value(tree)
    excess = "" if value is None else excess_of(value)
    if excess:
        report.add(scalar.place, f"must be {excess}", quote(scalar.text), "Write a simpler expression.")
        return None
    return value


class _Compiler:
    """Turns a sqlglot tree into an expression; None stands for what is already reported."""

    def __init__(self, scalar: Scalar, scope: Scope, report: Report) -> None:
        self._scalar = scalar
        self._scope = scope
        self._report = report
        self._handlers: dict[type[exp.Expr], Callable[[Any], Expr | Interval | Wrong | None]] = {
            exp.Literal: self._literal,
            exp.Boolean: lambda tree: Literal(bool(tree.this), "BOOLEAN"),
            exp.Null: lambda tree: Literal(None, "NULL"),
            exp.Column: self._column,
            exp.Dot: self._column,
            exp.Paren: lambda tree: self.node(tree.this),
            exp.And: lambda tree: self._chain(tree, exp.And, "and"),
            exp.Or: lambda tree: self._chain(tree, exp.Or, "or"),
            exp.Not: lambda tree: self._not(self.value(tree.this)),
            exp.Neg: self._negative,
            exp.Is: self._is,
            exp.NullSafeNEQ: lambda tree: self._not(self._compare("<=>", tree.this, tree.expression)),
            exp.Between: self._between,
            exp.In: self._in,
            exp.Like: self._like,
            exp.RegexpLike: lambda tree: self._apply(rlike, [tree.this, tree.expression]),
            exp.RawString: lambda tree: Literal(str(tree.this), "STRING"),
            exp.DPipe: lambda tree: self._apply(concat, [tree.this, tree.expression]),
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Anonymous: self._function,
            exp.Interval: constant_interval,
            exp.Extract: lambda tree: self._apply(lambda of: part(tree.name, of[0]), [tree.expression]),
        }

    def value(self, tree: exp.Expr) -> Expr | None:
        """Compile one node that must have a value, or report it."""
        built = self.node(tree)
        if isinstance(built, Interval):
            self._report_wrong(no_value(built), tree)
            return None
        return built

    def node(self, tree: exp.Expr) -> Expr | Interval | None:
        """Compile one node, or report it."""
        built: Expr | Interval | Wrong | None
        kind = type(tree)
        if kind in _COMPARISONS:
            built = self._compare(_COMPARISONS[kind], tree.this, tree.expression)
        elif kind in _ARITHMETIC:
            built = self._calculate(_ARITHMETIC[kind], tree)
        elif kind in self._handlers:
            built = self._handlers[kind](tree)
        else:
            built = self._unknown(tree)
        if isinstance(built, Wrong):
            self._report_wrong(built, tree)
            return None
        return built

    def _report_wrong(self, wrong: Wrong, tree: exp.Expr) -> None:
        self._report.add(self._scalar.at(start_of(tree)), wrong.must, wrong.got, wrong.do)

    def _unknown(self, tree: exp.Expr) -> Wrong:
        got = f"{quote(self._scalar.text)} ({tree.key})"
        do = _INSTEAD.get(type(tree), ONLY_THIS_LANGUAGE)
        return Wrong("must be an expression of the rule language", got, do)

    def _apply(
        self, build: Callable[[list[Expr]], Expr | Wrong], trees: Sequence[exp.Expr]
    ) -> Expr | Wrong | None:
        values = [self.value(tree) for tree in trees]
        present = [value for value in values if value is not None]
        return build(present) if len(present) == len(values) else None

    def _nodes(self, trees: Sequence[exp.Expr]) -> list[Expr | Interval] | None:
        """What may be lengths of time too."""
        values = [self.node(tree) for tree in trees]
        present = [value for value in values if value is not None]
        return present if len(present) == len(values) else None

    def _calculate(self, name: str, tree: exp.Expr) -> Expr | Interval | Wrong | None:
        values = self._nodes([tree.this, tree.expression])
        if values is None:
            return None
        built = calculate(name, values)
        numbers = [value for value in values if not isinstance(value, Interval)]
        return computed(name, numbers) if built is None else built

    def _literal(self, tree: exp.Literal) -> Expr | Wrong:
        return Literal(str(tree.this), "STRING") if tree.is_string else number_literal(str(tree.this))

    def _column(self, tree: exp.Expr) -> Expr | Wrong | None:
        name = name_of(tree, self._scope)
        if name is None:
            return self._unknown(tree)
        if self._scope.schema is UNKNOWN_EVENTS:
            return None
        found = self._scope.column(*name)
        if isinstance(found, Wrong):
            unlike = found.must == NO_ATTRIBUTE and found.do.startswith("Use")
            return replace(found, do=found.do + f" If it is a text, write '{tree.name}' in quotes." * unlike)
        return whole(found, tree) or found

    def _chain(self, tree: exp.Expr, kind: type[exp.Expr], name: str) -> Expr | Wrong | None:
        """Compile what one connective joins, as a balanced tree, so that no chain is too deep to walk."""
        waiting, parts = [tree], []
        while waiting:
            part = waiting.pop()
            if type(part) is kind:
                waiting += [part.expression, part.this]
            else:
                parts.append(part)
        return self._apply(lambda values: connect(name, values), parts)

    def _not(self, value: Expr | Wrong | None) -> Expr | Wrong | None:
        if value is None or isinstance(value, Wrong):
            return value
        return require_type(value, "a condition") or Call("not", (convert(value, "BOOLEAN"),), "BOOLEAN")

    def _negative(self, tree: exp.Neg) -> Expr | Interval | Wrong | None:
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return number_literal("-" + str(tree.this.this))
        return self._signed("negate", tree.this)

    def _signed(self, name: str, tree: exp.Expr) -> Expr | Interval | Wrong | None:
        """Compile ``-x`` and ``abs(x)``, which may be a length of time."""
        value = self.node(tree)
        if value is None or isinstance(value, Interval):
            return value and signed(name, value)
        return arithmetic(name, [value])

    def _is(self, tree: exp.Is) -> Expr | Wrong | None:
        if isinstance(tree.expression, exp.Null):
            return self._apply(lambda values: Call("is_null", (values[0],), "BOOLEAN"), [tree.this])
        if isinstance(tree.expression, exp.Boolean):
            return self._compare("<=>", tree.this, tree.expression)
        return self._unknown(tree)

    def _compare(self, name: str, left: exp.Expr, right: exp.Expr) -> Expr | Wrong | None:
        values = self._nodes([left, right])
        if values is None:
            return None
        equal = name in ("=", "<>", "<=>")
        return (self._no_rule(values) if equal else None) or comparison(name, values)

    def _no_rule(self, values: Sequence[Expr | Interval]) -> Wrong | None:
        return no_rule(values, self._scope.schema.rules)

    def _between(self, tree: exp.Between) -> Expr | Wrong | None:
        if tree.args.get("symmetric"):
            return self._unknown(tree)
        if self.node(tree.this) is None:
            return None
        low, high = tree.args["low"], tree.args["high"]
        sides = [exp.GTE(this=tree.this, expression=low), exp.LTE(this=tree.this, expression=high)]
        return self._apply(lambda values: connect("and", values), sides)

    def _in(self, tree: exp.In) -> Expr | Wrong | None:
        items = tree.expressions
        if not items:
            return self._unknown(tree)

        def build(values: list[Expr]) -> Expr | Wrong:
            unified = self._no_rule(values) or unify(values, "BIGINT")
            return unified if isinstance(unified, Wrong) else Call("in", unified, "BOOLEAN")

        return self._apply(build, [tree.this, *items])

    def _like(self, tree: exp.Like) -> Expr | Wrong | None:
        def build(values: list[Expr]) -> Expr | Wrong:
            pattern = constant_text(values[1])
            if pattern is not None and "\\" in pattern:
                do = "Use contains, startswith or endswith."
                return Wrong("must be a pattern without a backslash", quote(pattern), do)
            return with_constant_text("like", values)

        built = self._apply(build, [tree.this, tree.expression])
        return self._not(built) if tree.args.get("negate") else built

    def _case(self, tree: exp.Case) -> Expr | Wrong | None:
        """``case when c then v …`` and ``case x when v then …``; without ``else`` the rest is null."""
        branches, subject = tree.args["ifs"], tree.this
        if subject is not None and self.value(subject) is None:
            return None
        tests, values = [branch.this for branch in branches], [branch.args["true"] for branch in branches]
        if subject is not None:
            tests = [exp.EQ(this=subject, expression=test) for test in tests]
        parts, count = [*tests, *values, tree.args.get("default") or exp.Null()], len(tests)
        return self._apply(lambda built: case(built[:count], built[count:-1], built[-1]), parts)

    def _cast(self, tree: exp.Cast) -> Expr | Wrong | None:
        if tree.args.get("format") or tree.args.get("default"):
            return self._unknown(tree)
        digits = [size.name for size in tree.to.expressions]
        kind = "" if digits else tree.to.sql(dialect="spark").upper()
        if digits and tree.to.is_type("decimal") and all(number.isdecimal() for number in digits):
            kind = f"DECIMAL({','.join(digits)})"
        if digits and not decimal_digits(kind):
            return no_type("one with parameters")
        if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            constant = text_constant(str(tree.this.this), kind)
            if constant is not None:
                return constant
        return self._apply(lambda values: cast_to(values[0], kind), [tree.this])

    def _function(self, tree: exp.Anonymous) -> Expr | Interval | Wrong | None:
        name, called = tree.name.lower(), self._scope.calls(tree)
        if called is not None:
            return called(tree, self._inside)
        if name == "abs" and len(tree.expressions) == 1:
            return self._signed(name, tree.expressions[0])
        if name in (*AGGREGATES, PREV) and self._scope.schema is UNKNOWN_EVENTS:
            return None
        if name in AGGREGATES:
            found = aggregate(name, tree.expressions, self._scope, self._inside)
            return None if found is None else averaged(found)
        if name == PREV:
            return previous(self._scope, tree.expressions)
        if name not in FUNCTIONS:
            do = ELSEWHERE.get(name) or nearest(name, [*FUNCTIONS, *AGGREGATES, PREV])
            return Wrong("must be a known function", quote(name), do)
        function = FUNCTIONS[name]
        if not function.least <= len(tree.expressions) <= function.most:
            return Wrong(
                f"must be {function.usage}",
                counted(len(tree.expressions), "argument"),
                "Correct the arguments.",
            )
        return self._apply(function.build, with_unit(name, tree.expressions))

    def _inside(self, tree: exp.Expr, scope: Scope) -> Expr | None:
        """What an aggregate is computed of."""
        return _Compiler(self._scalar, scope, self._report).value(tree)
