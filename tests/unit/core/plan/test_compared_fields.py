"""Every field of a rule shows in the parts that checkpoints compare, or stands here with a reason why not."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from spark_pace.core.expr import Call, Column, Expr
from spark_pace.core.plan import row_pattern as row_patterns
from spark_pace.core.plan import rule as rules
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.row_pattern import (
    Alternatives,
    Computed,
    Condition,
    Excluded,
    MatchNumber,
    Measure,
    Navigation,
    OrderKey,
    Outside,
    Repetition,
    RowPattern,
    Sequence,
    Summary,
    Variable,
)
from spark_pace.core.plan.rule import (
    Absence,
    Component,
    Conjunct,
    Context,
    CountSpan,
    EmitField,
    Ending,
    EventSchema,
    Field,
    GridSpan,
    Member,
    Move,
    Pattern,
    PredicateSpan,
    PythonFold,
    RecordForm,
    Rule,
    SessionSpan,
    SideTable,
    StateMachine,
    Times,
    Within,
)

MODULES = (rules, row_patterns)
NOT_COMPARED = {
    "Rule.name": "checkpoints keep the parts under the name: with another name it is another rule",
    "Rule.description": "it is for people",
    "Rule.enabled": "a rule that is paused is in no checkpoint",
    "Pattern.strategy": "every strategy finds the same matches",
    "Conjunct.components": "they follow from the expression",
    "Member.bit": "it follows from the place of the member",
    "Ending.bit": "it follows from the place of the component",
    **{
        f"RecordForm.{name}": "it says how events are written"
        for name in (
            "regex",
            "further",
            "preset",
            "ignores_unmatched",
            "has_json",
            "time_formats",
            "year",
            "zone",
            "newest_us",
            "empty_is_null",
        )
    },
    "EventSchema.side_tables": "their columns are fields of the schema",
    "EventSchema.rules": "they are the names of the rules that are read",
    "SideTable.name": "the names of fields of the schema begin with it",
    "SideTable.path": "events keep the rows that they were joined with when they were read",
    "SideTable.on": "events keep the rows that they were joined with when they were read",
    "RowPattern.where": "it is for messages",
    "RowPattern.skip_name": "it is for messages",
    "RowPattern.partition": "it is what Rule.partition_by is",
    "RowPattern.rows": "over a stream a match gives one row",
    "RowPattern.most_steps": "beyond them a search ends in an error",
    "RowPattern.order": "it is that of the stream, which the schema says",
    "OrderKey.column": "it is that of the stream, which the schema says",
    "OrderKey.descending": "the order is that of the stream",
    "OrderKey.nulls_first": "the order is that of the stream",
    "RowPattern.outside": "over a stream Spark computes no measures",
    "Outside.name": "over a stream Spark computes no measures",
    "Outside.sql": "over a stream Spark computes no measures",
    "Outside.reads": "over a stream Spark computes no measures",
    "Measure.stored": "it follows from what the measure reads",
    "Measure.type": "EmitField.type says it",
    **{
        f"{slot}.type": "it follows from what the slot reads"
        for slot in ("Navigation", "Summary", "MatchNumber")
    },
    "SideTable.refresh_us": "events keep the rows that they were joined with when they were read",
}
NESTED = {
    "Rule.rows",
    "RowPattern.pattern",
    "Measure.value",
    "Repetition.part",
    "Excluded.part",
    "EventSchema.form",
    "Rule.schema",
    "Rule.pattern",
    "Rule.span",
    "Pattern.within",
    "Pattern.context",
    "Component.times",
    "Component.until",
    "Absence.component",
    "Rule.fold",
    "SideTable.columns",
}  # their fields are changed

X = Column(None, "x", "BIGINT")
HOLDS = Call(">", (X, X), "BOOLEAN")
BOTH = Call(">", (Column("a", "x", "BIGINT"), Column("b", "x", "BIGINT")), "BOOLEAN")
PATTERN = Pattern(
    components=(Component("a", HOLDS), Component("b", HOLDS)),
    where=(Conjunct(BOTH, (0, 1)),),
    within=Within(time_us=60_000_000),
    context=Context("each", "zero"),
)
RULE = Rule(
    name="pair",
    schema=EventSchema((Field("t", "BIGINT"), Field("x", "BIGINT")), "t", ("x",), "s"),
    filter=HOLDS,
    partition_by=("x",),
    pattern=PATTERN,
    span=PredicateSpan(HOLDS, HOLDS, (BOTH,), 1_000_000),
    operator=None,
    merge="selection",
    emit=(EmitField("rise", "BIGINT", Column("a", "x", "BIGINT")),),
    description="rises",
)
GROUPED = Pattern(
    components=(
        Component("a", HOLDS, Times(2, 5), until=Ending(HOLDS, 2), further=HOLDS),
        Component("b", HOLDS),
    ),
    where=(Conjunct(BOTH, (0, 1)),),
    within=Within(time_us=60_000_000),
    context=Context("each", "zero"),
)
EITHER = Pattern(
    components=(Component("a", HOLDS, members=(Member("c", HOLDS, 2),)), Component("b", HOLDS)),
    where=(Conjunct(BOTH, (0, 1), BOTH),),
    within=Within(time_us=60_000_000),
    context=Context("each", "zero"),
)
BEHIND = replace(PATTERN, absences=(Absence(Component("n", HOLDS, negated=True), 1_000_000, (BOTH,)),))
MACHINE = StateMachine(("a", "b", "c"), (HOLDS, BOTH), (Move((0,), 0, 1, True),))
FORM = RecordForm(
    ".*",
    preset="syslog",
    time_formats=("%d.%m.%Y",),
    year=2024,
    zone="Europe/Berlin",
    newest_us=1,
    further=("a",),
)
SLOT = Navigation((0, 1), True, 1, 2, True, X, "BIGINT")
RISE = Measure("rise", Computed(HOLDS, (SLOT,)), "x", pa.int64())
ROWS = RowPattern(
    where="rules.yaml:1:1",
    partition=("x",),
    order=(OrderKey("t", False, True),),
    measures=(RISE,),
    outside=(Outside("rise", "abs(x)", ("rise",)),),
    rows="one",
    skip="to first",
    skip_variables=(1,),
    skip_name="B",
    variables=("A", "B", "C", "D"),
    conditions=(Condition((Computed(HOLDS, (SLOT,)),), (Computed(BOTH, (SLOT,)),)),),
    pattern=Sequence((Repetition(Variable(0), 1, 3, True), Variable(1))),
    within_us=60_000_000,
    most_steps=1_000,
)
OF_ROWS = replace(RULE, span=None, pattern=None, merge="detection")
SIDE = SideTable("hosts", "hosts.csv", (("x", "id"),), (), 1_000_000)
SAMPLES = (
    RULE,
    replace(RULE, schema=replace(RULE.schema, side_tables=(SIDE,))),
    replace(RULE, schema=replace(RULE.schema, form=FORM)),
    replace(RULE, pattern=EITHER),
    replace(RULE, pattern=GROUPED, forget_key_after_us=90_000_000),
    replace(RULE, pattern=BEHIND),
    replace(RULE, pattern=replace(PATTERN, taking=(Conjunct(BOTH, (0, 1)),))),
    replace(RULE, pattern=replace(PATTERN, within=Within(events=10))),
    replace(RULE, span=GridSpan(1_000_000, 2_000_000)),
    replace(RULE, pattern=replace(PATTERN, strategy="queues")),
    replace(RULE, span=SessionSpan(1_000_000, 2_000_000)),
    replace(RULE, span=CountSpan(5, 10), pattern=None, operator="operators:total"),
    replace(RULE, span=GridSpan(1_000_000, 2_000_000), pattern=None, having=HOLDS),
    replace(RULE, span=None, pattern=None, fold=MACHINE),
    replace(RULE, span=None, pattern=None, fold=PythonFold("folds:total", 2)),
    replace(OF_ROWS, rows=ROWS),
    replace(OF_ROWS, rows=replace(ROWS, pattern=Alternatives((Excluded(Variable(0)), Variable(1))))),
    *(
        replace(OF_ROWS, rows=replace(ROWS, measures=(replace(RISE, value=Computed(HOLDS, (slot,))),)))
        for slot in (Summary("sum", (0, 1), True, X, "BIGINT"), MatchNumber())
    ),
    replace(RULE, reads=(replace(RULE, name="lower"),), schema=replace(RULE.schema, rules=("lower",))),
)


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """(class and name of a field, the value with that field changed) for each of its fields and theirs."""
    for field in fields(value):
        for name, changed in changed_values(
            f"{type(value).__name__}.{field.name}", getattr(value, field.name)
        ):
            yield name, replace(value, **{field.name: changed})


def changed_values(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, typing.get_args(Expr)):
        yield name, Call("not", (value,), "BOOLEAN")
    elif is_dataclass(value):
        yield from changes(value)
    elif isinstance(value, pa.DataType):
        yield name, pa.list_(value)
    elif isinstance(value, str):
        yield name, f"{value}x"
    elif isinstance(value, bool):
        yield name, not value
    elif isinstance(value, int):
        yield name, value + 1
    elif isinstance(value, tuple) and value:
        yield name, value[1:]
        first = () if name == "Rule.reads" else value[0]  # the rules that are read have parts of their own
        yield from ((found, (changed, *value[1:])) for found, changed in changed_values(name, first))
    else:
        assert value in (None, ()), f"{name} is of a kind that this test does not know"


CHANGED = [
    pytest.param(sample, name, changed, id=f"{number}-{name}")
    for number, sample in enumerate(SAMPLES)
    for name, changed in changes(sample)
]


@pytest.mark.parametrize(("sample", "name", "changed"), CHANGED)
def test_a_change_of_a_field_shows_in_the_parts(sample: Rule, name: str, changed: Rule) -> None:
    follows = sample.pattern is EITHER and name == "Conjunct.expr"  # from what is stated
    assert (rule_parts(changed) == rule_parts(sample)) == (follows or name in NOT_COMPARED)


def test_every_field_was_changed() -> None:
    kinds = [
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    ]
    known = {f"{kind.__name__}.{field.name}" for kind in kinds for field in fields(kind)}
    assert {name for sample in SAMPLES for name, _ in changes(sample)} == known - NESTED
