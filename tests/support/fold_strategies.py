"""Hypothesis strategies: rules with folds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.expr import Call, Column, Expr, Previous
from spark_pace.core.plan.rule import EmitField, Move, PythonFold, Rule, StateMachine
from tests.support.draws import built_once, chosen, composite, shuffled, some
from tests.support.strategies import column, condition, number, predicates, schemas, varied

STATES = ("idle", "busy", "done", "lost")
FIELDS = (
    EmitField("was", "STRING", Column(None, "@from", "STRING")),
    EmitField("now", "STRING", Column(None, "@to", "STRING")),
    EmitField("since", "TIMESTAMP", Column(None, "@since", "TIMESTAMP")),
    EmitField("total", "BIGINT", Call("+", (column("x"), number(1)), "BIGINT")),
)


@built_once
def moving_conditions() -> st.SearchStrategy[Expr]:
    rising = st.sampled_from(["<", ">=", "="]).flatmap(
        lambda sign: st.integers(1, 2).map(
            lambda back: condition(sign, column("x"), Previous("x", back, "BIGINT"))
        )
    )
    return predicates() | predicates() | predicates() | rising


@built_once
def lists_of_conditions() -> st.SearchStrategy[list[Expr]]:
    return st.lists(moving_conditions(), min_size=1, max_size=4)


@built_once
def more_states(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, count - 1), max_size=4)


@composite
def machines(draw: st.DrawFn) -> StateMachine:
    """Two to four states; every state but the first is led to by a move, as the checker demands."""
    states = STATES[: draw(st.integers(2, 4))]
    conditions = tuple(dict.fromkeys(draw(lists_of_conditions())))
    wanted = [*range(1, len(states)), *draw(more_states(len(states)))]
    moves = [
        Move(
            tuple(sorted(some(draw, range(len(states))))),
            chosen(draw, [*range(len(conditions)), *range(len(conditions)), None]),
            target,
            chosen(draw, [True, True, False]),
        )
        for target in wanted
    ]
    return StateMachine(states, conditions, tuple(shuffled(draw, moves)))


@composite
def machine_rules(draw: st.DrawFn) -> Rule:
    plain = Rule("rule", draw(schemas()), None, (), None, None, None, "detection", FIELDS)
    return replace(varied(draw, plain), merge="detection", fold=draw(machines()))


FUNCTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "tests.support.folds:balance": (("id", "STRING"), ("balance", "BIGINT")),
    "tests.support.folds:balance_of_table": (("id", "STRING"), ("balance", "BIGINT")),
    "tests.support.folds:seen": (),
}


@composite
def function_rules(draw: st.DrawFn) -> Rule:
    name = chosen(draw, sorted(FUNCTIONS))
    fields = tuple(EmitField(*field, None) for field in FUNCTIONS[name])
    plain = Rule("rule", draw(schemas()), None, (), None, None, None, "detection", fields)
    return replace(varied(draw, plain), merge="detection", fold=PythonFold(name))


@built_once
def fold_rules() -> st.SearchStrategy[Rule]:
    return machine_rules() | function_rules()
