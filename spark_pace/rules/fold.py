"""Reads the key ``fold``: a table of states and moves, or the name of a Python function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace.core.expr import Expr
from spark_pace.core.plan.rule import EventSchema, Fold, Move, PythonFold, StateMachine
from spark_pace.core.python_functions import ROW
from spark_pace.core.tables import MOST_COMPONENTS
from spark_pace.rules.document import (
    Listing,
    Mapping,
    Node,
    Place,
    Report,
    Scalar,
    Section,
    as_mapping,
    describe,
    quote,
)
from spark_pace.rules.expressions.compile import read_condition
from spark_pace.rules.expressions.scopes import STATE, event_scope
from spark_pace.rules.rule_kinds import function_name

MAX_STATES = 64
MAX_MOVES = 256
MAX_VERSION = 1_000_000
ANY = "any"  # in ``from``: every state
_STATE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_MOVE_KEYS = ("from", "when", "to", "emit")
_EXAMPLE = "{initial: closed, moves: [{from: closed, when: kind = 'open', to: open}]}"
_FUNCTION = "my_rules.sessions:step"
_IN_PYTHON = f"States are names; for numbers write a Python function: fold: {_FUNCTION}."
_NO_KEYS = dict.fromkeys(("to", "state", "update", "step"), _IN_PYTHON)
_MOVE = "{from: closed, when: kind = 'open', to: open}"


@dataclass(frozen=True)
class _Move:
    """A move as written in the file; `sources` are (name of a state, its place)."""

    sources: tuple[tuple[str, Place], ...]
    condition: Expr | None
    target: str
    emits: bool


def read_fold(rule: Section, schema: EventSchema) -> Fold | None:
    """Read the key ``fold``; None if it is missing or wrong."""
    if not rule.has("fold"):
        return None
    node = rule.node("fold")
    _refuse_row(rule)
    if isinstance(node, Scalar) and isinstance(node.value, str):
        function = function_name(node, rule.report, _FUNCTION)
        return None if function is None else PythonFold(function)
    mapping = rule.mapping("fold", f"{_EXAMPLE}, or my_rules.sessions:step")
    if mapping is not None and "function" in mapping.entries:
        return _read_function(mapping, rule.report)
    return None if mapping is None else _read_machine(mapping, rule.report, schema)


def says_form(rule: Section) -> bool:
    """True if `fold` is a mapping or a text, so that the form that is meant is clear, even if it is wrong."""
    node = rule.node("fold")
    return isinstance(node, Mapping) or (isinstance(node, Scalar) and isinstance(node.value, str))


def is_machine(rule: Section) -> bool:
    """True if the rule has a fold that is a table of states and moves."""
    node = rule.node("fold")
    return isinstance(node, Mapping) and "function" not in node.entries


def _refuse_row(rule: Section) -> None:
    """Refuse a field with the name of the column in which a Python function says which event gives a row."""
    emit = rule.node("emit")
    if isinstance(emit, Mapping) and ROW in emit.entries and not is_machine(rule):
        must, do = "must not be the column that says which event gives a row", "Rename the field."
        rule.report.add(emit.entries[ROW][0], must, quote(ROW), do)


def _read_function(mapping: Mapping, report: Report) -> PythonFold | None:
    fields = Section(mapping, report, ("function", "version"))
    text, version = fields.text("function", f"function: {_FUNCTION}"), fields.whole("version", 1, MAX_VERSION)
    function = function_name(text, report, _FUNCTION)
    if function is None or (version is None and fields.has("version")):
        return None
    return PythonFold(function, version or 1)


def _read_machine(mapping: Mapping, report: Report, schema: EventSchema) -> StateMachine | None:
    """Read the states and moves."""
    before = report.count
    if STATE in schema.structs:
        do = "Rename the STRUCT."
        report.add(mapping.place, "must not be over events with a STRUCT of that name", quote(STATE), do)
    fields = Section(mapping, report, ("initial", "moves"), _NO_KEYS)
    initial = fields.text("initial", f"initial: closed. {_IN_PYTHON[:-1]}", "initial: closed")
    known = None if initial is None else _state(initial, report)
    node = fields.node("moves", f"moves: [{_MOVE}]")
    if node is not None and not (isinstance(node, Listing) and node.items):
        report.add(node.place, "must be a list of moves", describe(node), f"Write for example [{_MOVE}].")
    if not isinstance(node, Listing) or _too_many(len(node.items), MAX_MOVES, "moves", node.place, report):
        return None
    moves = [_read_move(item, report, schema) for item in node.items]
    read = [move for move in moves if move is not None]
    if known is None or len(read) < len(moves):
        return None
    states = tuple(dict.fromkeys([known, *(move.target for move in read)]))
    conditions = tuple(dict.fromkeys(move.condition for move in read if move.condition is not None))
    _check_states(read, states, report)
    _too_many(len(states), MAX_STATES, "states", node.place, report)
    _too_many(len(conditions), MOST_COMPONENTS, "different conditions", node.place, report)
    return None if report.count > before else _machine(states, conditions, read)


def _too_many(count: int, most: int, what: str, place: Place, report: Report) -> bool:
    if count > most:
        do = "Write several rules, or a fold in Python: fold: my_rules.sessions:step."
        report.add(place, f"must have at most {most} {what}", f"{count}", do)
    return count > most


def _read_move(node: Node, report: Report, schema: EventSchema) -> _Move | None:
    mapping = as_mapping(node, report, _MOVE)
    if mapping is None:
        return None
    fields = Section(mapping, report, _MOVE_KEYS)
    emits = fields.flag("emit", True)
    sources = _read_sources(fields)
    to = fields.text("to", "to: open", "to: and the state that it leads to")
    target = None if to is None else _state(to, report)
    condition = read_condition(fields.node("when"), event_scope(schema, looks_back=True), report)
    if not sources or target is None:
        return None
    return _Move(sources, condition, target, emits)


def _read_sources(fields: Section) -> tuple[tuple[str, Place], ...]:
    fields.require("from", "from: and the state that it leaves, or any")
    texts = fields.texts("from", "from: [closed, ajar]", alone=True)
    if len(texts) == 1 and texts[0].text == ANY:
        return ((ANY, texts[0].place),)
    named = [(_state(text, fields.report), text.place) for text in texts]
    return tuple((name, place) for name, place in named if name is not None)


def _state(text: Scalar, report: Report) -> str | None:
    if text.text == ANY:
        do = "It stands for every state, and stands alone in from: choose another name."
        report.add(text.place, "must be the name of a state", quote(ANY), do)
        return None
    if not _STATE.fullmatch(text.text):
        must = "must be the name of a state: a letter, then letters, digits and _ (64 at most)"
        report.add(text.place, must, quote(text.text), "Rename the state.")
        return None
    return text.text


def _check_states(moves: Sequence[_Move], states: Sequence[str], report: Report) -> None:
    """Report states in `from` that do not exist, and states that no key can reach."""
    named = [(name, place) for move in moves for name, place in move.sources if name != ANY]
    unknown = [(name, place) for name, place in named if name not in states]
    reached = {states[0]}
    for _ in states:
        for move in moves:
            if any(name == ANY or name in reached for name, _ in move.sources):
                reached.add(move.target)
    do = f"Keys begin in {quote(states[0])}, and moves lead to {', '.join(states[1:]) or 'no other'}."
    for name, place in unknown or [(name, place) for name, place in named if name not in reached]:
        report.add(place, "must be a state that a key can reach", quote(name), do)


def _machine(states: tuple[str, ...], conditions: tuple[Expr, ...], moves: Sequence[_Move]) -> StateMachine:
    every = tuple(range(len(states)))
    made = []
    for move in moves:
        names = [name for name, _ in move.sources]
        sources = every if ANY in names else tuple(sorted({states.index(name) for name in names}))
        condition = None if move.condition is None else conditions.index(move.condition)
        made.append(Move(sources, condition, states.index(move.target), move.emits))
    return StateMachine(states, conditions, tuple(made))
