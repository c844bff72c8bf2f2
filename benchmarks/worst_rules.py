"""The rules of `benchmarks.worst`, and their data: events a millisecond apart, with a type and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.core_runs import records

SCHEMA = "time TIMESTAMP, type STRING, v DOUBLE, k BIGINT"
EVENT_TIME = "event_time: time"
TYPES = np.array([*"abcdefghij"])
CONTEXTS = (
    *("each, zero", "latest, zero", "next, zero", "earliest, zero", "each, selected"),
    *("latest, selected", "next, selected", "earliest, selected", "all, selected"),
)
WINDOW, ONE_WINDOW = "within: 200 ms", "within: 1 d"

Columns = dict[str, np.ndarray[tuple[int], np.dtype[Any]]]


@dataclass(frozen=True)
class Trial:
    """A rule and its data.

    Attributes:
        name: what it is called; empty: as it is written.
        rule: its text, as in a rule file.
        data: how `v` and the types come, such as ``rising`` or ``rare d``.
    """

    name: str
    rule: str
    data: str = "random"

    def columns(self, count: int) -> Columns:
        """The attributes of the first events."""
        numbers = np.arange(count)
        random = np.random.default_rng(1)
        types, v = random.integers(0, len(TYPES), count), random.random(count)
        if self.data in ("rising", "falling"):
            v = numbers / 1e6 * (1 if self.data == "rising" else -1)
        elif self.data == "equal":
            v = np.zeros(count)
        elif self.data == "waves":
            v = np.abs(numbers % 100 - 50) / 50
        elif self.data.startswith("rare "):
            letter = int(np.flatnonzero(self.data[-1] == TYPES)[0])
            types = np.where((types == letter) & (numbers % 5000 != 4999), (letter + 5) % 10, types)
        elif self.data.startswith("no "):
            letter = int(np.flatnonzero(self.data[-1] == TYPES)[0])
            types = np.where(types == letter, (letter + 5) % 10, types)
        k = random.integers(0, 20, count)
        return {"type": TYPES[types], "v": v, "k": k}

    def table(self, count: int) -> pa.Table:
        """The first events as the core takes them."""
        return records(np.arange(count) * 1000, 0, **self.columns(count))


def _sequence(letters: str) -> str:
    return "pattern: {sequence: [" + ", ".join(f"{one}: type = '{one}'" for one in letters) + "]}"


def _named(name: str, rest: str, data: str = "random") -> Trial:
    return Trial(name, f"{{name: r, {rest}}}", data)


def _fixed() -> Iterator[Trial]:
    chain = "where: a.v < b.v and b.v < c.v"
    yield _named(
        "each, zero; rising chain, no d, one window",
        f"{_sequence('abcd')}, {chain}, {ONE_WINDOW}, context: 'each, zero'",
        "no d",
    )
    never = "where: a.v > b.v + 10 and c.v > a.v"
    yield _named(
        "earliest, zero; never holds, one window",
        f"{_sequence('abc')}, {never}, {ONE_WINDOW}, context: 'earliest, zero'",
    )
    negation = "pattern: {sequence: [a: type = 'a', {name: n, when: type = 'c', not: true}, b: type = 'b']}"
    group = "pattern: {sequence: [a: type = 'a', {name: g, when: type = 'c', times: 1..5}, b: type = 'b']}"
    for name, pattern in {"negation": negation, "groups": group}.items():
        yield _named(f"earliest, selected; {name}", f"{pattern}, {WINDOW}, context: 'earliest, selected'")
    runs = "[{name: down, when: v < prev(v), times: 2+}, up: v > prev(v)]"
    for context in ("next, selected", "each, zero"):
        yield _named(
            f"{context}; prev runs, keyed, strict",
            f"partition_by: [k], pattern: {{sequence: {runs}}}, contiguity: strict, within: 200 events, "
            f"context: '{context}'",
        )
    both = "pattern: {conjunction: [a: type = 'a', b: type = 'b', c: type = 'c']}"
    for context in CONTEXTS:
        yield _named(
            f"{context}; arithmetic over three",
            f"{_sequence('abc')}, where: a.v + b.v < c.v, {WINDOW}, context: '{context}'",
        )
    for context in CONTEXTS:
        yield _named(
            f"{context}; negation with where",
            f"{negation}, where: n.v > a.v and b.v > a.v, {WINDOW}, context: '{context}'",
        )
        if not context.startswith("next"):
            yield _named(
                f"{context}; conjunction with where",
                f"{both}, where: a.v < b.v and b.v < c.v, {WINDOW}, context: '{context}'",
            )


FIXED = tuple(_fixed())
LEAST = _named("of one component", f"pattern: {{sequence: [a: type = 'a']}}, {WINDOW}")


# ---------------------------------------------------------------- random rules


def random_trials(count: int, seed: int) -> Iterator[Trial]:
    """So many random rules."""
    random = Random(seed)
    for _ in range(count):
        yield _random_trial(random)


def _random_trial(random: Random) -> Trial:
    names, conjunction = "abcde"[: random.choice([2, 3, 3, 3, 4, 4, 5])], random.random() < 0.2
    context = random.choice([one for one in CONTEXTS if not (conjunction and one.startswith("next"))])
    strict = not conjunction and random.random() < 0.1
    forms = ["one"] * len(names)
    for place in range(1, len(names) - 1):
        allowed = ["one", "one"]
        allowed += ["not"] if not conjunction and not strict else []
        allowed += ["times"] if not conjunction and forms[place - 1] == "one" else []
        forms[place] = random.choice(allowed)
    if not conjunction and not strict and random.random() < 0.2:
        may = [k for k in range(1, len(forms)) if forms[k] == "one" and forms[k - 1] != "not"]
        forms = ["follows" if k in may and random.random() < 0.5 else form for k, form in enumerate(forms)]
    parts = [_component(random, *one) for one in zip(names, forms, strict=True)]
    where = _conditions(random, dict(zip(names, forms, strict=True)))
    window = WINDOW if random.random() < 0.8 else ONE_WINDOW
    order = "conjunction" if conjunction else "sequence"
    rule = f"pattern: {{{order}: [{', '.join(parts)}]}}, {where}{window}, context: '{context}'"
    rule += ", contiguity: strict" if strict else ""
    rule += ", partition_by: [k]" if random.random() < 0.2 else ""
    rare = f"{random.choice(['rare', 'no'])} {random.choice(names)}"
    return Trial("", f"{{name: r, {rule}}}", random.choice(["random", "rising", "falling", "waves", rare]))


def _component(random: Random, name: str, form: str) -> str:
    """A random component of a form: one event (also one directly behind another), a group or a negation."""
    rarely = random.choice([f"type <= '{name}'", f"v > 0.{random.randint(1, 9)}"])
    when = rarely if random.random() < 0.3 else f"type = '{name}'"
    if form == "one":
        return f"{name}: {when}"
    more = {"not": "not: true", "follows": "follows: strict"}.get(form)
    more = more or f"times: {random.choice(['1..3', '2..5', '0..2', '1+'])}"
    return f"{{name: {name}, when: {when}, {more}}}"


def _conditions(random: Random, forms: dict[str, str]) -> str:
    """A random `where`, or nothing."""
    single = [name for name, form in forms.items() if form in ("one", "follows")]
    found = []
    for _ in range(random.choice([0, 1, 1, 2, 2, 3])):
        one, two = random.sample(single, 2)
        three, other = random.choice(single), random.choice(list(forms))
        choices = [f"{one}.v < {two}.v", f"{one}.v > {two}.v + 0.9", f"{one}.v > {two}.v + 10"]
        choices += [f"{one}.k = {two}.k", f"{one}.v + {two}.v < {three}.v", f"abs({one}.v - {two}.v) < 0.01"]
        if forms[other] == "times":
            choices = [f"sum({other}.v) > {one}.v", f"last({other}.v) < {one}.v", f"max({other}.v) < 0.5"]
        elif forms[other] == "not":
            choices = [f"{other}.v > {one}.v", f"{other}.k = {one}.k"]
        found.append(random.choice(choices))
    return f"where: {' and '.join(found)}, " if found else ""
