"""The pattern of a rule: its components, the conditions over them, the window and the context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from spark_pace.core.columns import MOST_COMPONENTS
from spark_pace.core.expr import Call, Column, Expr, conjunction, walk
from spark_pace.core.match.contexts.context import ParameterContext
from spark_pace.core.plan.rule import Close, Component, Conjunct, Context, EventSchema, Pattern, Within
from spark_pace.rules.contexts import read_context, why_within
from spark_pace.rules.document.document import Broken, Listing, Mapping, Node, Scalar, describe
from spark_pace.rules.document.report import Report, quote
from spark_pace.rules.document.section import Section, as_mapping
from spark_pace.rules.durations import read_length
from spark_pace.rules.expressions.compile import compile_condition, compile_conjuncts
from spark_pace.rules.expressions.parsing import RuleDialect, conjuncts_of, parse_expression
from spark_pace.rules.expressions.scopes import EventScope, MatchScope

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONG_KEYS = ("name", "when", "times", "not")
_EXAMPLE = "sequence: [a: x = 1, b: x = 2]"


def read_pattern(rule: Section, schema: EventSchema, *, in_span: bool) -> Pattern | None:
    """The keys pattern, where, within, context and close of a rule; None where too much is wrong to go on."""
    report = rule.report
    context, close, within = read_window(rule)
    components = _read_components(rule, schema)
    if components is None:
        check_syntax(rule, ("where", "emit"))
        return None
    conjuncts = _read_where(rule, schema, components)
    plain = not _several(conjuncts) and not _names_several(rule, components)
    if (
        not rule.has("within")
        and (why := why_within(context, plain, close))
        and not (in_span and close != "window")
    ):
        report.add(
            rule.place, 'must have the key "within"', "none", f"{why}; add for example within: 10 min."
        )
    return _assemble(components, conjuncts, within, context.value, close)


def check_pattern_syntax(rule: Section) -> None:
    """Report what is wrong under pattern, where and emit, as far as that needs no attributes."""
    _read_components(rule, None)
    check_syntax(rule, ("where", "emit"))


def check_syntax(fields: Section, keys: Sequence[str]) -> None:
    """Report what is wrong in the expressions under these keys, as far as that needs no attributes."""
    for key in keys:
        node = fields.node(key)
        for scalar in [entry for _, entry in node.entries.values()] if isinstance(node, Mapping) else [node]:
            if isinstance(scalar, Scalar) and scalar.text.strip():
                parse_expression(scalar, fields.report)


def read_window(rule: Section) -> tuple[ParameterContext, Close, Within | None]:
    """The keys context, close and within; the defaults where they are missing or reported as wrong."""
    context = read_context(rule)
    close = _read_close(rule, context)
    node = rule.node("within")
    return context, close, None if node is None else read_length(node, rule.report)


def _read_close(rule: Section, context: ParameterContext) -> Close:
    if rule.choice("close", ("completion", "window"), "completion") == "completion":
        return "completion"
    if not context.window_may_close:
        report, place = rule.report, rule.key_place("close")
        report.add(
            place,
            'must be "completion" in this context',
            f'"window" with "{context.value}"',
            'Use context "each, zero", or leave "close" out.',
        )
    return "window"


def _read_components(rule: Section, schema: EventSchema | None) -> list[Component] | None:
    """The components, as far as their names can be told: then the conditions over them can be read."""
    mapping = rule.mapping("pattern", _EXAMPLE)
    if mapping is None:
        return None
    fields = Section(mapping, rule.report, ("sequence",), later=("conjunction",))
    if not fields.has("conjunction"):
        fields.require("sequence", _EXAMPLE)
    node = fields.node("sequence")
    if node is None:
        return None
    if not isinstance(node, Listing) or not 1 <= len(node.items) <= MOST_COMPONENTS:
        got = f"a list of {len(node.items)}" if isinstance(node, Listing) else describe(node)
        rule.report.add(
            node.place,
            f"must be a list of 1 to {MOST_COMPONENTS} components",
            got,
            f"Write for example {_EXAMPLE}.",
        )
        return None
    components: list[Component | None] = []
    for item in node.items:
        component = _read_component(item, schema, rule.report)
        if component is not None and any(other and other.name == component.name for other in components):
            rule.report.add(item.place, "must name a component once", quote(component.name), "Rename one.")
        components.append(component)
    read = [component for component in components if component is not None]
    return read if len(read) == len(components) else None


def _read_component(item: Node, schema: EventSchema | None, report: Report) -> Component | None:
    """Short form ``name: predicate`` or long form with the keys of `_LONG_KEYS`; None without a name."""
    mapping = as_mapping(item, report, "a: x = 1")
    if mapping is None:
        return None
    if len(mapping.entries) == 1 and not set(mapping.entries) & set(_LONG_KEYS):
        ((name, (place, node)),) = mapping.entries.items()
        _check_name(Scalar(place, name, name, place.column), report)
        return Component(name, _read_predicate(node, schema, report))
    return _read_long(mapping, schema, report)


def _read_long(mapping: Mapping, schema: EventSchema | None, report: Report) -> Component | None:
    fields = Section(mapping, report, _LONG_KEYS)
    name = (
        fields.text("name", "name: a") if fields.require("name", "name: and the component's name") else None
    )
    if fields.flag("not", False):
        report.add(
            fields.key_place("not"), "must be false", "true", "Negated components are not supported yet."
        )
    times = fields.node("times")
    if times is not None and not (isinstance(times, Scalar) and times.text == "1"):
        report.add(times.place, "must be 1", describe(times), "Repeated components are not supported yet.")
    fields.require("when", "when: and a condition")
    node = fields.node("when")
    predicate = _read_predicate(node, schema, report)
    if name is None:
        return None
    _check_name(name, report)
    return Component(name.text, predicate)


def _read_predicate(node: Node | None, schema: EventSchema | None, report: Report) -> Expr:
    """The component's condition.

    It is ``true`` if it is missing, reported as wrong, or if the attributes are not known.
    """
    scalar = None if node is None else as_expression(node, report)
    if scalar is None:
        return conjunction([])
    if schema is None:
        parse_expression(scalar, report)
        return conjunction([])
    return compile_condition(scalar, EventScope(schema), report) or conjunction([])


def as_expression(node: Node, report: Report) -> Scalar | None:
    """A scalar as the text of an expression (``true`` and ``5`` are expressions too)."""
    if isinstance(node, Scalar) and node.text.strip():
        return node
    if not isinstance(node, Broken):
        report.add(
            node.place,
            "must be an expression",
            describe(node),
            "Write for example x = 1, in quotes if it holds : or #.",
        )
    return None


def _check_name(name: Scalar, report: Report) -> None:
    if not _NAME.fullmatch(name.text):
        report.add(
            name.place, "must be a name of letters, digits and _", quote(name.text), "Rename the component."
        )
        return
    try:
        tree = sqlglot.parse_one(f"{name.text}.x = 1", dialect=RuleDialect)
        usable = (
            isinstance(tree, exp.EQ) and isinstance(tree.this, exp.Column) and tree.this.table == name.text
        )
    except SqlglotError:
        usable = False
    if not usable:
        report.add(
            name.place,
            "must not be a word of the expression language",
            quote(name.text),
            "Rename the component.",
        )


def _read_where(rule: Section, schema: EventSchema, components: Sequence[Component]) -> list[Conjunct]:
    node = rule.node("where")
    scalar = None if node is None else as_expression(node, rule.report)
    if scalar is None:
        return []
    names = tuple(component.name for component in components)
    found = []
    for expr in compile_conjuncts(scalar, MatchScope(schema, names), rule.report):
        named = {node.component for node in walk(expr) if isinstance(node, Column)}
        if named:
            found.append(Conjunct(expr, tuple(index for index, name in enumerate(names) if name in named)))
        else:
            rule.report.add(
                scalar.place,
                "must be about components",
                quote(scalar.text),
                "Remove the condition that is always the same.",
            )
    return found


def _names_several(rule: Section, components: Sequence[Component]) -> bool:
    """Whether a condition, be it right or wrong, is over several components."""
    node, names = rule.node("where"), {component.name for component in components}
    tree = parse_expression(node, Report()) if isinstance(node, Scalar) else None
    parts = [] if tree is None else conjuncts_of(tree)
    return any(len(names & {column.table for column in part.find_all(exp.Column)}) > 1 for part in parts)


def _several(conjuncts: Sequence[Conjunct]) -> bool:
    return any(len(conjunct.components) > 1 for conjunct in conjuncts)


def _assemble(
    components: list[Component],
    conjuncts: list[Conjunct],
    within: Within | None,
    context: Context,
    close: Close,
) -> Pattern:
    """Conjuncts over a single component become part of that component's predicate."""
    several = tuple(conjunct for conjunct in conjuncts if len(conjunct.components) > 1)
    complete = []
    for index, component in enumerate(components):
        own = [_without_component(conjunct.expr) for conjunct in conjuncts if conjunct.components == (index,)]
        complete.append(replace(component, predicate=conjunction([component.predicate, *own])))
    return Pattern(tuple(complete), several, within, context, close)


def _without_component(expr: Expr) -> Expr:
    if isinstance(expr, Column):
        return replace(expr, component=None)
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(_without_component(argument) for argument in expr.arguments))
    return expr
