"""Hypothesis strategies: rules of every form, drawn as the text of a rule file, which is loaded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Context, Rule
from spark_pace.errors import RuleError
from tests.support.draws import built_once, chosen, composite, shuffled, some
from tests.support.grammar import OF_GROUP, OF_SPAN, OF_VALUES, Words
from tests.support.loaded_rules import CONTEXTS, MERGES, TIES, WITH_OPTIONAL_LAST, loaded

OPERATORS = {
    "known": "{id: STRING, x: BIGINT}",
    "summary": "{n: BIGINT, first: STRING, last: STRING, total: BIGINT}",
    "bounds": "{opened_by: STRING, closed_by: STRING}",
}
FUNCTIONS = {
    "balance": "{id: STRING, balance: BIGINT}",
    "balance_of_table": "{id: STRING, balance: BIGINT}",
    "seen": "{}",
}
STATES = ("idle", "busy", "done", "lost")
MOST_DRAWN = 8  # components: the oracle takes too long for more, which `test_long_patterns.py` has
# what the components of a pattern are: 1 stands for one event, g for a group, n is negated; o and l are
# optional ones in first and in last place
PLAIN = (*["11"] * 6, *["111"] * 3, "1111", "1")
SEVERAL = ("11", "11", "11", "11", "111", "111", "1111")
GROUPED = ("g", "11", "g1", "1g", "1g1", "1g1", "g1g", "11g", "g11", "111", "1g11", "1g1g")
NEIGHBOURS = ("1gg1", "1gg1", "gg1", "gg", "1gg", "1ggg", "ggg1", "1gg11", "11gg1", "gg1g")
PARTS = ("11 1", "1 11", *["11 11"] * 3, "111 1", "11 111", "1 11 1", "11 1 11", "111 11", "11 11 1")
WITH_GROUPS = ("until", "further", "optional first", "optional last")
GROUPS = "gol"
# of which a rule has one; where none is named, it is of the first or, with groups, the second
KINDS = (
    *("plain", "grouped", "neighbours", "conjunction", "alternatives", "join", "carried"),
    *("aggregates", "operator", "moves", "function"),
)
# forms of rules that the property tests draw, by name
FORMS = {
    "conjunction": "conjunction",
    "conjunction_in_span": "conjunction, span",
    "prev": "prev",
    "prev_in_span": "prev, span",
    "prev_in_conjunction": "conjunction, prev | conjunction, prev | grouped, prev",
    "open": "open, opened span",
    "open_in_conjunction": "conjunction, open, opened span",
    "aggregates": "aggregates, span",
    "fold": "moves | function",
    "disjunction": "disjunction",
    "disjunction_in_span": "disjunction, span | disjunction, opened span, open",
    "previous_values": "prev of components",
    "previous_values_in_span": "prev of components, span",
    "filtered_back": "conjunction, prev in filter | prev, span, prev in filter | moves, prev in filter"
    " | aggregates, span, prev in filter | function, prev in filter",
    "negated_first": "negated first | negated first | negated first, forgotten keys",
    "negated_first_in_span": "negated first, span | negated first, span, forgotten keys",
    "until": "until",
    "until_in_span": "until, span | until, opened span, open",
    "further": "further | further | further, until | further, disjunction",
    "further_in_span": "further, span | further, opened span, open | further, until, span",
    "optional_first": "optional first | optional first, until | optional first, further"
    " | optional first, disjunction",
    "optional_first_in_span": "optional first, span | optional first, span, until",
    "neighbouring": "neighbours | neighbours, until | neighbours, further",
    "neighbouring_in_span": "neighbours, span | neighbours, opened span, open, until",
    "optional_last": "optional last | optional last, optional first | optional last, until"
    " | optional last, further | optional last, disjunction",
    "optional_last_in_span": "optional last, span | optional last, opened span, open",
    "alternatives": "alternatives",
    "alternatives_in_span": "alternatives, span | alternatives, opened span, open",
    "all_in_one": "conjunction, open, prev, opened span | grouped, open, prev, opened span",
}


@dataclass
class Part:
    """A component of a pattern.

    Attributes:
        name: its name; nothing where a disjunction has none.
        kind: the letter of its shape.
        when: its condition.
        more: what else its long form says.
        members: the conditions of a disjunction's members, by name.
    """

    name: str
    kind: str
    when: str
    more: str
    members: dict[str, str]

    @property
    def names(self) -> list[str]:
        """What conditions may call it; of a disjunction the first member twice."""
        return [*[self.name] * bool(self.name), *self.members, *list(self.members)[:1]]

    def text(self) -> str:
        """As it stands in the file."""
        if not self.members:
            return f'{{name: {self.name}, when: "{self.when}"{self.more}}}'
        listed = ", ".join(f'{{name: {name}, when: "{when}"}}' for name, when in self.members.items())
        return f"{{{f'name: {self.name}, ' * bool(self.name)}disjunction: [{listed}]{self.more}}}"


def suiting(forms: str, contexts: Sequence[Context]) -> list[Context]:
    """Those of the contexts that take these forms."""
    found = list(contexts)
    if "conjunction" in forms:
        found = [one for one in found if one.selection != "next"]
    if "optional last" in forms:
        found = [one for one in found if one in WITH_OPTIONAL_LAST]
    return [one for one in found if one == CONTEXTS[0]] if "close window" in forms else found


class _Draft:
    """A rule that is being drawn: texts of its keys."""

    def __init__(self, draw: st.DrawFn, forms: str, contexts: Sequence[Context], span: str) -> None:
        self.draw = draw
        self.forms = forms.split(", ")
        if not self.has(*KINDS):
            self.forms.append("grouped" if self.has(*WITH_GROUPS) or self.one_in(2) else "plain")
        self.words = Words(partial(chosen, draw))
        self.say = self.words.say
        self.span = span or "".join(self.say(one) for one in self.forms if "span" in one)
        self.context = str(chosen(draw, suiting(forms, contexts)))
        self.parts = list[Part]()
        self.keys = dict[str, str]()
        self.back = "prev of components" in self.forms

    def has(self, *forms: str) -> bool:
        """Whether one of the forms is wanted."""
        return any(one in self.forms for one in forms)

    def one_in(self, count: int) -> bool:
        """By chance."""
        return chosen(self.draw, [*[False] * (count - 1), True])

    # ---------------------------------------------------------------- the whole

    def rule(self) -> tuple[str, tuple[str, ...]]:
        """The text, and what breaks ties."""
        if self.span:
            self.keys["span"] = self.span
        self._keys_and_filter()
        if self.has("aggregates"):
            self._aggregates()
        elif self.has("operator"):
            opens = "open:" in self.span
            self._calls("operator", "operators", OPERATORS if opens else dict([*OPERATORS.items()][:2]))
        elif self.has("moves"):
            self._moves()
        elif self.has("function"):
            self._calls("fold", "folds", FUNCTIONS)
        else:
            self._pattern()
        text = "\n".join(f"{key}: {told}" for key, told in self.keys.items())
        if self.has("forgotten keys"):
            text = self._forgetting(text)
        return text, chosen(self.draw, TIES)

    def _keys_and_filter(self) -> None:
        if not self.has("moves", "function"):
            self.keys["merge"] = chosen(self.draw, MERGES)
        keys = "" if self.has("join", "carried") else self.say("keys")
        if self.has("forgotten keys"):
            keys = self.say("lasting keys")
        if keys:
            self.keys["partition_by"] = f"[{keys}]"
        told = self.say("filter") if not self.has("join") and self.one_in(5) else ""
        if self.has("prev in filter"):
            told = self._joined(told, self.say("before")) if told else self.say("before")
        if told:
            self.keys["filter"] = f'"{told}"'

    def _joined(self, old: str, new: str) -> str:
        return self.say("joined", old=f"({old})", new=f"({new})")

    def _forgetting(self, text: str) -> str:
        """Keys that are forgotten, and windows that are short enough for it."""
        least = 1 if self.span.startswith("{every") else 0
        most = max(least, chosen(self.draw, [0, 1, 2, 2, 3, 3, 5, 5, 8]))
        windows = re.compile(r"(?<=within: |..size: |..time: |...gap: )(\d+) s")
        text = windows.sub(lambda found: f"{min(int(found[1]), most)} s", text)
        return f"{text}\nforget_key_after: {most} s"

    def _calls(self, key: str, module: str, functions: dict[str, str]) -> None:
        name = chosen(self.draw, sorted(functions))
        self.keys |= {key: f"tests.support.{module}:{name}", "emit": functions[name]}

    def _aggregates(self) -> None:
        values = self.one_in(4)
        fields = some(self.draw, _listed(OF_SPAN + OF_VALUES * values), 1, 6)
        having = self.say("having") if self.one_in(3) or self.one_in(2) else ""
        bare = ["k"] * ("k" in self.keys.get("partition_by", "")) + ["open.k"] * ("open:" in self.span)
        if bare and self.one_in(2):
            outside = chosen(self.draw, bare)
            fields.append(f"outside: {outside}")
            if self.one_in(2):
                having = f"({having or 'false'}) or {outside} = first(k)"
        if "open:" in self.span and self.one_in(2):
            fields.append("more: sum(x) - open.x")
        self._emit(fields)
        if having:
            self.keys["where"] = f'"{having}"'

    def _emit(self, fields: Sequence[str]) -> None:
        self.keys["emit"] = f"{{{', '.join(fields)}}}"

    def _moves(self) -> None:
        """Two to four states; every state but the first is led to from one before it."""
        states = STATES[: chosen(self.draw, [2, 3, 4])]
        conditions = [f', when: "{self.say("moving")}"' for _ in range(chosen(self.draw, [1, 2, 3, 4]))]
        moves = []
        for target in [*range(1, len(states)), *some(self.draw, range(len(states)), 0)]:
            sources = {*some(self.draw, states), states[chosen(self.draw, range(max(1, target)))]}
            when = chosen(self.draw, [*conditions, *conditions, ""])
            silent = ", emit: false" * self.one_in(3)
            moves.append(f"{{from: [{', '.join(sorted(sources))}]{when}, to: {states[target]}{silent}}}")
        self.keys["fold"] = f"{{initial: idle, moves: [{', '.join(shuffled(self.draw, moves))}]}}"
        self._emit(["was: state.from", "now: state.to", "since: state.since", "total: x + 1"])

    # ---------------------------------------------------------------- patterns

    def _pattern(self) -> None:
        where = list[str]()
        if self.has("alternatives"):
            whole = self._alternatives(where)
        elif self.has("conjunction"):
            whole = self._conjunction(where)
        else:
            whole = self._sequence(where)
        self.keys |= {"pattern": whole, "context": self.context}
        either = self.has("alternatives", "conjunction") and not self.span and self.context == "each, zero"
        if either and self.one_in(3):
            self.forms.append("close window")
        if self.has("close window"):
            self.keys["close"] = "window"
        if not self.has("alternatives"):
            opened = ["opened pair"] * (self.has("open") and self.one_in(2))
            for symbol in (*opened, *(form for form in ("sum", "by columns") if self.has(form))):
                where += self._condition(symbol, self._those(2))
        if where:
            self.keys["where"] = f'"{" and ".join(shuffled(self.draw, where))}"'
        if (within := self._within(bool(where))) is not None:
            self.keys["within"] = within
        fields = [*self._fields(), *self._fields_of_open()]
        if self.context != "all, selected" and len(self._named()) > 1 and self.one_in(2):
            given, _ = self._given(self._those(2))
            fields.append(f"total: {self.words.fill('<a> + <b>', **given)}")
        self._emit([_quoted(one) for one in fields])

    def _within(self, several: bool) -> str | None:
        """A window; by chance none where none is needed."""
        if self.has("join", "carried"):
            return self.say("time")
        needed = self.has("close window") or not self.span
        simple = not several and self.context not in ("earliest, zero", "all, selected")
        simple = simple and all(one.kind == "1" and not one.more for one in self.parts)
        simple = simple and not self.has("alternatives", "conjunction")
        bounded = "contiguity" in self.keys and not re.search(r"\d\+", self.keys["pattern"])
        if (not needed or (simple and not self.has("close window")) or bounded) and self.one_in(2):
            return None
        return self.say("short window" if self.has("grouped", "neighbours") else "window")

    def _sequence(self, where: list[str]) -> str:
        shape, strict = self._shape()
        if strict:
            self.keys["contiguity"] = "strict"
        apart = self.has("grouped", "neighbours") and not self.one_in(3)
        self.parts = self._of_shape(shape, "pqrstuvwxyz", apart=apart, strict=strict)
        self._conditions(where)
        first = [f"{self._absent(name, where)}" for name in "mn"[: chosen(self.draw, [1, 1, 1, 2])]]
        return f"{{sequence: [{', '.join([*first * self.has('negated first'), *self._texts()])}]}}"

    def _texts(self) -> list[str]:
        return [one.text() for one in self.parts]

    def _shape(self) -> tuple[str, bool]:
        """The letters of the components, and whether no event may stand between them."""
        if not self.has("grouped", "neighbours"):
            return chosen(self.draw, SEVERAL if self.has("where", "join") else PLAIN), False
        close = self.has("close window")
        negation = close or self.one_in(2)
        groups = self.has("neighbours", *WITH_GROUPS) or (not close and not self.one_in(4))
        among: Sequence[str] = NEIGHBOURS if self.has("neighbours") else GROUPED
        if self.has(*WITH_GROUPS):
            among = [one for one in among if "g" in one]
        shape = chosen(self.draw, among if groups else [one for one in among if "g" not in one])
        strict = not negation and ("g" not in shape or self.one_in(4))
        if negation:
            shape = shape[0] + "".join("n" * chosen(self.draw, [0, 0, 0, 1, 1, 2]) + one for one in shape[1:])
            if "n" not in shape or self.one_in(2):
                shape += "n" * chosen(self.draw, [1, 1, 1, 1, 2])
        shape = shape[:MOST_DRAWN]
        if self.has("optional first"):
            single = shape.replace("n", "")[1:2] == "1"
            shape = "o" + (shape[1:] if shape[0] == "g" and single else "1" * (shape[0] == "g") + shape)
        if self.has("optional last"):
            shape = shape.rstrip("n")
            if shape[-1] == "g":
                shape = shape[:-1] if shape[-2:-1] == "1" and self.one_in(2) else f"{shape}1"
            shape += "l"
        return shape, strict

    def _of_shape(
        self,
        shape: str,
        names: str,
        *,
        apart: bool = False,
        strict: bool = False,
        before: Sequence[Part] = (),
    ) -> list[Part]:
        """Components of these kinds; `before`: those whose conditions some have too."""
        parts, inner, letters = list[Part](), shape.strip("n"), iter("abcabcabcabc")
        near = not strict and self.has("grouped", "neighbours") and self.one_in(4)
        for place, (name, kind) in enumerate(zip(names, shape, strict=False)):
            if place < len(before) and self.one_in(3):
                when = before[place].when
            elif kind == "n":
                when = self.say("rare")
            else:
                when = self.say("type", letter=next(letters)) if apart else self.say("event")
            part = Part(name, kind, when, ", not: true" * (kind == "n"), {})
            if kind in GROUPS:
                times = {"o": "optional", "l": "last times"}.get(kind, "times")
                if kind == "g" and shape.replace("n", "").count("") and 0 < place < len(inner) - 1:
                    times = "inner times"
                part.more += f", times: {self.say(times)}"
            elif near and kind == "1" and parts and parts[-1].kind != "n" and not self.one_in(4):
                part.more += ", follows: strict"
            parts.append(part)
        self._changes(parts)
        self._ends(parts, strict=strict)
        self._disjunctions(parts)
        return parts

    def _changes(self, parts: list[Part]) -> None:
        """Conditions more, of one component or two, on events before and on the opening one."""
        for form, symbol in (("prev", "before"), ("open", "opened")):
            changes = self.has(form) and not (form == "open" and self.one_in(4))
            for part in some(self.draw, parts, 1, 2) if changes else ():
                part.when = self._joined(part.when, self.say(symbol))
        groups = [one for one in parts if one.kind in GROUPS] if self.has("further") else []
        for part in some(self.draw, groups) if groups else ():
            further = "further of opened" if self.has("open") else "further"
            told = self.say(further, g=part.name)
            if self.one_in(4):
                told = self.say("joined", old=told, new=self.say(further, g=part.name))
            part.when = f"({part.when}) and {told}"

    def _ends(self, parts: list[Part], *, strict: bool) -> None:
        """Ends of one or all groups that have no group directly before them."""
        positive = [one for one in parts if one.kind != "n"]
        kinds = zip(["1", *(one.kind for one in positive)], positive, strict=False)
        groups = [own for before, own in kinds if own.kind in GROUPS and before not in GROUPS]
        for part in some(self.draw, groups) if self.has("until") and groups else ():
            place = parts.index(part)
            free = not strict and not (place and parts[place - 1].kind == "n")
            how = chosen(self.draw, ["until", "until", "follows", "both"]) if free else "until"
            part.more += ", follows: strict" * (how != "until")
            if how != "follows":
                symbol = "opened" if self.has("open") and self.one_in(2) else "until"
                part.more += f', until: "{self.say(symbol)}"'

    def _disjunctions(self, parts: list[Part]) -> None:
        """One or two of the components that stand for one event, each of two members or three."""
        single = [one for one in parts if one.kind == "1"] if self.has("disjunction") else []
        for part in some(self.draw, single, 1, 2) if single else ():
            for number in range(chosen(self.draw, [2, 2, 2, 3])):
                when = part.when if number == 0 and self.one_in(2) else self.say("event")
                for form, symbol in (("prev", "before"), ("open", "opened")):
                    if self.has(form) and self.one_in(3):
                        when = self._joined(when, self.say(symbol))
                part.members[f"{part.name}{number}"] = when
            part.name *= not self.one_in(3)

    def _absent(self, name: str, where: list[str]) -> str:
        """A negated component in front of the first one."""
        if not self.has("negated first"):
            return ""
        first, count = self.parts[0], 0
        if first.kind == "1" and not first.members:
            count = chosen(self.draw, [0, 1, 1, 1, 2])
        lasts = (self.span or self.has("forgotten keys")) and self.one_in(2)
        symbol = "equally forbidden" if lasts and not self.span else "forbidden"
        for _ in range(count):
            where.append(self.say(symbol, m=name, p=first.name, attribute=self.say("same")))
        when = self.say(chosen(self.draw, ["event", "rare"]))
        if self.one_in(6):
            when = self._joined(when, self.say("before"))
        within = "" if lasts else f", within: {chosen(self.draw, [0, 1, 2, 2, 3, 5, 8, 100])} s"
        return f'{{name: {name}, when: "{when}", not: true{within}}}'

    def _conjunction(self, where: list[str]) -> str:
        """Components in any order, by chance with sequences of those that are listed one after the other."""
        joins = self.one_in(5)
        self.parts = self._of_shape(chosen(self.draw, [*["11"] * 5, *["111"] * 3, "1111"]), "pqrs")
        if joins:
            self._equalities(where)
        for _ in range(chosen(self.draw, [0, 0, 1, 1, 1, 2])):
            where += self._condition("pair", self._those(chosen(self.draw, [2] * 8 + [3])))
        texts, count = self._texts(), len(self.parts)
        if self.one_in(2) and not self.has("inner sequence"):
            return f"{{conjunction: [{', '.join(texts)}]}}"
        bounds = sorted({0, count, *some(self.draw, range(1, count), 0)})
        listed = [", ".join(texts[start:end]) for start, end in pairwise(bounds)]
        listed = [f"{{sequence: [{one}]}}" if one not in texts else one for one in listed]
        return f"{{conjunction: [{', '.join(listed)}]}}"

    def _alternatives(self, where: list[str]) -> str:
        """Two or three sequences, of which some begin alike, by chance with conditions."""
        names, listed = "pqrstu", []
        for shape in chosen(self.draw, PARTS).split():
            own = self._of_shape(shape, names, before=self.parts)
            names = names[len(shape) :]
            self.parts += own
            for _ in range(chosen(self.draw, [0, 0, 1, 1, 2]) if len(own) > 1 else 0):
                symbol = "by columns" if self.one_in(6) else "pair"
                where += self._condition(symbol, some(self.draw, own, 2, 2))
            texts = ", ".join(one.text() for one in own)
            listed.append(texts if len(own) == 1 else f"{{sequence: [{texts}]}}")
        return f"{{disjunction: [{', '.join(listed)}]}}"

    # ---------------------------------------------------------------- conditions over components

    def _named(self, *, negated: bool = False) -> list[Part]:
        """What conditions may name: not what may have no event in last place, unless that is one at most."""
        named = [one for one in self.parts if negated == (one.kind == "n")]
        return [one for one in named if one.kind != "l" or "0..1" in one.more]

    def _those(self, count: int) -> list[Part]:
        named = self._named()
        return some(self.draw, named, min(count, len(named)), count)

    def _conditions(self, where: list[str]) -> None:
        several = len(self._named()) > 1
        if self.has("join"):
            self._equalities(where)
        elif not self.has("grouped", "neighbours"):
            wanted = self.has("where", "prev of components")
            if several and (wanted or (self.one_in(2) and not self.has("no where"))):
                for _ in range(chosen(self.draw, [1, 1, 1, 1, 1, 2])):
                    where += self._condition("pair", self._those(chosen(self.draw, [2] * 8 + [3])))
        for part in self._named(negated=True):
            if self.one_in(2):
                others = [one for one in self._named() if one.kind != "l"]
                where += self._condition("pair", [part, *some(self.draw, others, 1, min(2, len(others)))])
        groups = [one for one in self._named() if one.kind in GROUPS]
        if groups and self.one_in(5):
            where.append(self.say("whole group", g=chosen(self.draw, groups).name))
        often = 2 if self.back else 5
        if several and self.has("grouped", "neighbours") and self.one_in(often):
            where += self._condition("pair", self._those(chosen(self.draw, [2, 2, 3])))
        last = self.parts[-1]
        if last in self._named() and last.kind == "l" and not self.one_in(4):
            if self.one_in(4):
                where.append(self.say("whole group", g=last.name))
            else:
                others = [one for one in self._named() if one is not last]
                where += self._condition("pair", [*some(self.draw, others, 1, 2), last])

    def _equalities(self, where: list[str]) -> None:
        """All components are equal in one attribute, or one of them more."""
        attribute = chosen(self.draw, ["x", "y", "k", "k"])
        order = shuffled(self.draw, self.parts) if self.one_in(2) else self.parts
        for place in range(1, len(order)):
            left, right = order[place], order[chosen(self.draw, range(place))]
            names = [chosen(self.draw, one.names) if one.members else one.name for one in (left, right)]
            where.append(" = ".join(f"{name}.{attribute}" for name in names))
        if self.one_in(3):
            where += self._condition("pair", self._those(2))

    def _condition(self, symbol: str, parts: Sequence[Part]) -> list[str]:
        """A condition over these; by chance those on other members of a disjunction that it names, too."""
        if len(parts) == 1:
            symbol = {"pair": "whole group", "opened pair": "opened group"}.get(symbol, "")
            if parts[0].kind not in GROUPS or not symbol:
                return []
        elif len(parts) > 2:
            symbol = "triple"
        given, other = self._given(parts)
        told = self.say(symbol, **given)
        found = [told]
        if other and self.one_in(2):
            name, *members = other
            swapped = str.maketrans("xy", "yx") if self.one_in(2) else {}
            attribute = re.compile(rf"\b{name}\.(\w+)")
            for more in members:
                if more != name:
                    found.append(attribute.sub(lambda it, to=more: f"{to}.{it[1].translate(swapped)}", told))  # type: ignore[misc]
        return found

    def _given(self, parts: Sequence[Part]) -> tuple[dict[str, Any], list[str]]:
        """What the letters stand for; and a member of a disjunction that is named, with all of them."""
        given, other = dict[str, Any](), list[str]()
        for letter, part in zip("abc", parts, strict=False):
            name = chosen(self.draw, part.names) if part.members else part.name
            given["g"] = name
            kind = "of group" if part.kind in GROUPS else "before" if self.back else "of one"
            given[letter] = partial(self.say, f"value {kind}", g=name)
            given[f"{letter} text"] = partial(self.say, f"key {kind}", g=name)
            if name in part.members and not other:
                other = [name, *part.members]
        return given, other

    # ---------------------------------------------------------------- fields

    def _fields(self) -> list[str]:
        """Something of every component that has events in a match."""
        fields = list[str]()
        for part in self.parts:
            if part.kind == "n":
                continue
            names = [*part.members, *[part.name] * bool(part.name)]
            gathered = part.kind in GROUPS or self.context == "all, selected"
            for name in names:
                if gathered:
                    told = some(self.draw, _listed(OF_GROUP), 1, 5)
                else:
                    told = ["id: <g>.id", "no_x: <g>.x is null", "x: <g>.x"][: 1 + self.one_in(2) * 2]
                    if self.back and self.one_in(2):
                        told += ["before: prev(<g>.x<near>) + <g>.x", "before_id: prev(<g>.id)"]
                fields += [f"{name}_{self.words.fill(one, g=name)}" for one in told]
        return fields

    def _fields_of_open(self) -> list[str]:
        if not self.has("open") or not self.one_in(2):
            return []
        first = self.parts[0]
        name = first.name or next(iter(first.members))
        gathered = first.kind in GROUPS or self.context == "all, selected"
        return ["opener: open.id", f"more: {f'min({name}.x)' if gathered else f'{name}.x'} - open.x"]


def _quoted(field: str) -> str:
    """The field, in quotes where its expression has a comma."""
    return field if '"' in field else re.sub(r": (.*,.*)$", r': "\1"', field)


@cache
def _listed(text: str) -> list[str]:
    return [one.strip() for line in text.splitlines() for one in line.split("|")]


@composite
def rules(draw: st.DrawFn, forms: str, contexts: tuple[Context, ...] = CONTEXTS, span: str = "") -> Rule:
    """A rule that has some forms, in one of the contexts.

    Args:
        draw: draws.
        forms: names of forms, with commas between them; several such lists, one of which is drawn, with bars.
        contexts: the contexts to choose from.
        span: the span, if it is none of those that are drawn.
    """
    draft = _Draft(draw, chosen(draw, forms.split(" | ")), contexts, span)
    try:
        return loaded(*draft.rule())
    except RuleError:
        reject()


def any_rule() -> st.SearchStrategy[Rule]:
    """A rule of any form."""
    return st.one_of(any_lasting_rule(), any_lasting_rule(), any_lasting_rule(), any_forgetful_rule())


ANY = (
    *("plain", "plain", "grouped", "grouped", "join", "plain, close window", "grouped, close window"),
    *("plain, span", "grouped, span", "operator, span", *FORMS.values()),
)


@built_once
def any_lasting_rule() -> st.SearchStrategy[Rule]:
    """A rule of any form with keys, if any, that live for ever, but for some with negated components."""
    return st.one_of(*map(rules, ANY))


@built_once
def any_forgetful_rule() -> st.SearchStrategy[Rule]:
    """A rule of any form with keys that are forgotten."""
    lists = [forms.split(" | ") for forms in ANY]
    every = (" | ".join(f"{one}, forgotten keys" for one in forms if "filter" not in one) for forms in lists)
    return st.one_of(*map(rules, filter(None, every)))
