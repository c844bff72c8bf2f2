"""Expressions of a clause: columns by variables of the pattern, navigations and aggregates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import TokenType, exp

from spark_pace.core.expr import Aggregate, Column, Expr, Literal, transform
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import (
    MatchNumber,
    Navigation,
    Slot,
    Summary,
    slot_column,
)
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.errors import ConfigError, Problem, counted
from spark_pace.rules.document import Place, Report, Scalar, TooManyError, nearest, quote
from spark_pace.rules.expressions.compile import compile_tree
from spark_pace.rules.expressions.functions import FUNCTIONS
from spark_pace.rules.expressions.names import name_of, whole_number
from spark_pace.rules.expressions.parsing import RuleDialect, parse_expression, start_of
from spark_pace.rules.expressions.scopes import Called, Compile, Scope
from spark_pace.rules.expressions.types import Wrong, averaged, over_values
from spark_pace.rules.row_patterns.words import Reader, as_spark

OPAQUE = "?"  # the type of columns that can only be taken as they are
COUNTED = ("FIRST", "LAST")
BEFORE, BEHIND = ("PREV", "LAG"), ("NEXT", "LEAD")
SHIFTED = (*BEFORE, *BEHIND)
SUMMARIES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
NUMBERS = ("MATCH_NUMBER", "MATCH_SEQUENCE_NUMBER")
CALLS = (*COUNTED, *SHIFTED, *SUMMARIES, *NUMBERS, "CLASSIFIER")
MOST_OFFSET = 1_000_000
OF_SPARK = " of Spark"  # ends the name of a column that Spark computes of the input
_UNITS = {
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"),
    *("DAY", "WEEK", "MONTH", "QUARTER", "YEAR"),
}
_OF_WINDOWS = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
Read = tuple[int, int, Expr]  # the places of a name or a call in a text, and what it stands for


@dataclass(frozen=True)
class Names:
    """What names mean.

    Attributes:
        schema: the input.
        variables: of each variable, and each union of them, the numbers of its variables.
        event_time: a column of times, whatever its type; None: there is none.
    """

    schema: pa.Schema
    variables: Mapping[str, tuple[int, ...]]
    event_time: str | None = None

    @property
    def events(self) -> EventSchema:
        """The columns that expressions read, as the compiler of expressions knows them."""
        typed = [(one.name, expression_type(one.type)) for one in self.schema]
        return EventSchema(tuple(Field(name, kind) for name, kind in typed if kind is not None), "")

    def column(self, name: str) -> str | Wrong:
        """The column of this name; as in Spark, small letters and capitals are not told apart."""
        found = [one for one in self.schema.names if one.lower() == name.lower()]
        if len(found) > 1 and found.count(name) != 1:
            got, do = f"{quote(name)}, which several columns have", "Rename one of them in a subquery."
            return Wrong("must be the name of one column", got, do)
        if not found:
            return Wrong("must be a column of the input", quote(name), nearest(name, self.schema.names))
        return name if name in found else found[0]

    def type_of(self, column: str) -> str:
        """The type of a column in expressions."""
        return expression_type(self.schema.field(column).type) or OPAQUE

    def is_time(self, column: str) -> bool:
        """Tell whether a column has times."""
        return column == self.event_time or self.type_of(column) in ("TIMESTAMP", "DATE")

    def variable(self, name: str) -> str | None:
        """The name of a variable or union as it is told apart; None if there is none."""
        return next((one for one in (name, name.upper()) if one in self.variables), None)

    def variables_of(self, name: str | None) -> tuple[int, ...] | Wrong | None:
        """The variables of a name before a dot; None stands for all rows."""
        if name is None:
            return None
        known = self.variable(name)
        if known is None:
            must = "must name a variable of the pattern, or a union of them"
            return Wrong(must, quote(name), nearest(name, self.variables))
        return self.variables[known]


# ---------------------------------------------------------------- the text of an expression


@dataclass(frozen=True)
class ExpressionText(Scalar):
    """An expression of a query.

    Attributes:
        starts: the places of its words in the text.
        places: those in the query.
        sparks: the places of calls in the text that Spark computes beforehand, whatever is in them.
    """

    starts: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()
    sparks: tuple[range, ...] = ()

    def is_sparks(self, offset: int) -> bool:
        """Tell whether what stands there is for Spark to read."""
        return any(offset in one for one in self.sparks)

    def at(self, offset: int) -> Place:
        """The place of the word at an offset of the text."""
        return self.places[max(0, bisect_right(self.starts, offset) - 1)]


def expression_text(reader: Reader, names: Names) -> ExpressionText:
    """The text of all words of a reader; RUNNING and FINAL become a part of the name of the call behind."""
    query, begin, starts, places = reader.query, reader.at, [], []
    text, behind = "", reader.word.start
    first = query.place(behind)
    while not reader.is_done:
        word = reader.word
        text += " " * (word.start > behind)
        starts.append(len(text))
        places.append(query.place(word.start))
        if word.upper in ("RUNNING", "FINAL") and begins_call(reader, reader.at + 1):
            reader.at += 1
            text += f"`{word.upper} {reader.word.upper}`"
        elif word.kind == "word" and (_is_beside_a_dot(reader) or _is_name_alone(reader, begin, names)):
            text += f"`{word.text}`"  # so that a variable or a column may have the name of a keyword
        else:
            text += as_spark(query, word)
        behind = reader.word.end
        reader.at += 1
    return ExpressionText(first, text, text, None, starts=tuple(starts), places=tuple(places))


def _is_beside_a_dot(reader: Reader) -> bool:
    """Tell whether the next word is a variable or a column of a pair, such as A.x."""
    words, at = reader.query.words, reader.at
    return (at > 0 and words[at - 1].is_sign(".")) or (at + 1 < reader.end and words[at + 1].is_sign("."))


def _is_name_alone(reader: Reader, begin: int, names: Names) -> bool:
    """Tell whether the next word is a keyword that names a column or a variable, as in LAST(from)."""
    words, at, name = reader.query.words, reader.at, reader.word.text
    if name.upper() not in RuleDialect.Tokenizer.KEYWORDS or name.upper() in _UNITS:
        return False
    ends = at + 1 >= reader.end or words[at + 1].text in (")", ",")
    is_alone = ends and (at == begin or words[at - 1].is_sign("("))
    return is_alone and (names.variable(name) is not None or not isinstance(names.column(name), Wrong))


def begins_call(reader: Reader, at: int) -> bool:
    """Tell whether the word with this number begins a navigation or an aggregate."""
    words = reader.query.words
    called = at + 1 < reader.end and words[at + 1].is_sign("(")
    return called and words[at].upper in CALLS and not (at > reader.at and words[at - 1].is_sign("."))


def compiled(read: Callable[[Report], Any]) -> Any:
    """What a compiler of expressions makes, which notes in a report what is wrong.

    Raises:
        ConfigError: something is.
    """
    report, found = Report(), None
    with suppress(TooManyError):
        found = read(report)
    if found is None or not report.clean:
        raise ConfigError(report.problems)
    return found


# ---------------------------------------------------------------- what an expression reads of a match


@dataclass
class Slots:
    """What an expression reads of the rows of a match.

    Attributes:
        names: the columns and variables.
        variables: the names of the variables, by their numbers.
        variable: the variable that the expression defines; None in a measure.
        inside: whether PREV and NEXT see only rows of the match.
        text: the expression.
        slots: what has been read so far.
    """

    names: Names
    variables: tuple[str, ...]
    variable: int | None
    inside: bool
    text: ExpressionText
    slots: list[Slot] = field(default_factory=list)

    def slot(self, slot: Slot) -> Column:
        """The node that reads a slot."""
        if slot not in self.slots:
            self.slots.append(slot)
        return slot_column(self.slots.index(slot), slot)

    @property
    def scope(self) -> Scope:
        """Names are values of the last row, or of a variable's last row, so far."""

        def column(prefix: str | None, attribute: str) -> Expr | Wrong:
            found = self.value(prefix, attribute)
            return found if isinstance(found, Wrong) else self._opaque(found) or self._node(found)

        return self._scope(column, self._called, of_row=self.variable is not None)

    def _scope(
        self, column: Callable[[str | None, str], Expr | Wrong], called: Called, *, of_row: bool
    ) -> Scope:
        """A scope in which `column` says what an attribute is, whatever stands before it.

        With `of_row` this is what Spark computes of a row, too.
        """

        def calls(tree: exp.Anonymous) -> Called | None:
            if _call(tree)[0] in CALLS:
                return called
            found = foreign(tree, self.text.text, self.names) if of_row else None
            if found is None or found[1] not in self.names.schema.names:
                return None
            return lambda *_: column(*found)

        other: Any = column  # which is wrong with names that are no variables
        return Scope(self.names.events, {}, partial(column, None), other, _no_aggregate, calls=calls)

    def value(self, prefix: str | None, attribute: str) -> Navigation | Wrong:
        """A column of any type, or CLASSIFIER as Snowflake writes it, in the last of these rows so far."""
        variables, column = self.names.variables_of(prefix), self.names.column(attribute)
        if isinstance(variables, Wrong):
            return variables
        if isinstance(column, Wrong):
            classifier = prefix is None and attribute.upper() == "CLASSIFIER"
            return Navigation(None, False, 0, 0, False, None, "STRING") if classifier else column
        kind = self.names.type_of(column)
        return Navigation(variables, False, 0, 0, False, Column(None, column, kind), kind)

    def _opaque(self, found: Navigation) -> Wrong | None:
        """What is wrong if values of a column are computed with that can only be taken as they are."""
        if found.type != OPAQUE or not isinstance(found.of, Column):
            return None
        got = f"{quote(found.of.attribute)}, {self.names.schema.field(found.of.attribute).type}"
        do = "It can stand alone, as in LAST(A.x) AS x; else take a part of it in a subquery."
        return Wrong("must be a column of a type that expressions can compute with", got, do)

    def _node(self, found: Navigation) -> Expr:
        """The node that reads a value; the row that a condition tests is one of the variable's."""
        of_row = self.variable is not None and not (found.of or found.first or found.back)
        if of_row and (found.variables is None or self.variable in found.variables):
            return Literal(self.variables[self.variable or 0], "STRING")
        return self.slot(found)

    def _called(self, tree: exp.Anonymous, build: Compile) -> Expr | Wrong | None:
        """What a navigation or an aggregate stands for."""
        name, final = _call(tree)
        if name in (*SUMMARIES, *NUMBERS):
            return self._wrong_mark(tree) or self._summary(tree, name, final, build)
        found = self._navigation(tree, build)
        if not isinstance(found, Navigation):
            return found
        is_taken = tree.parent is None and self.variable is None
        return (None if is_taken else self._opaque(found)) or self._node(found)

    def _wrong_mark(self, tree: exp.Anonymous) -> Wrong | None:
        mark, _, name = tree.name.upper().rpartition(" ")
        if mark and name in SHIFTED:
            do = f"Write PREV({mark} LAST(x))."
            return Wrong(f"must be FIRST, LAST or an aggregate behind {mark}", quote(name), do)
        if mark == "FINAL" and self.variable is not None:
            do = "A condition knows the match only up to its row: leave FINAL out."
            return Wrong("must be RUNNING in DEFINE", "FINAL", do)
        return None

    def _navigation(self, tree: exp.Anonymous, build: Compile) -> Navigation | Wrong | None:
        """``CLASSIFIER(U)``, ``LAST(value, offset)``, or ``PREV(value, offset)``, perhaps of ``LAST(…)``."""
        if wrong := self._wrong_mark(tree):
            return wrong
        (name, final), of = _call(tree), tree.expressions
        if name == "CLASSIFIER":
            return self._classifier(of, final)
        offset = _offset(name, of)
        if isinstance(offset, Wrong):
            return offset
        inner = _call(of[0])[0] in (["CLASSIFIER"] if name in COUNTED else COUNTED)
        found = self._navigation(of[0], build) if inner else self._of_row(of[0], build)
        if not isinstance(found, Navigation):
            return found
        if name in COUNTED:
            return replace(found, first=name == "FIRST", back=offset, final=final)
        if found.of is None:
            do = "Write FIRST or LAST of CLASSIFIER() alone."
            return Wrong("must navigate to a value of the input", "CLASSIFIER", do)
        return replace(found, shift=-offset if name in BEFORE else offset, inside=self.inside)

    def _classifier(self, of: Sequence[exp.Expr], final: bool) -> Navigation | Wrong:
        variables = None
        if of:
            if len(of) > 1 or not isinstance(of[0], exp.Column) or len(of[0].parts) > 1:
                got = quote(", ".join(one.sql("spark") for one in of))
                return Wrong("must be one name inside CLASSIFIER", got, "Write CLASSIFIER(U).")
            variables = self.names.variables_of(of[0].name)
        if isinstance(variables, Wrong):
            return variables
        return Navigation(variables, False, 0, 0, final, None, "STRING")

    def _of_row(self, tree: exp.Expr, build: Compile) -> Navigation | Wrong | None:
        """What is computed of one row: all names in it are of the same variable, or of none."""
        read = dict[str, Navigation]()

        def column(prefix: str | None, attribute: str) -> Expr | Wrong:
            found = self.value(prefix, attribute)
            if isinstance(found, Wrong) or found.of is None:
                return found if isinstance(found, Wrong) else _nested("CLASSIFIER")
            read["all rows" if prefix is None else str(self.names.variable(prefix))] = found
            return self._opaque(found) or found.of

        scope = self._scope(column, lambda call, _: _nested(_call(call)[0]), of_row=True)
        name = name_of(tree, scope)
        alone = self.value(*name) if name is not None else None
        if isinstance(alone, Navigation) and alone.of is not None:
            return alone
        expr = build(tree, scope)
        if expr is None:
            return None
        if len(read) != 1:
            must = "must be about the rows of one variable inside a navigation or an aggregate"
            do = "Write the same variable before each column, and name one at least."
            return Wrong(must, " and ".join(sorted(read)) or "no column", do)
        (found,) = read.values()
        return replace(found, of=expr, type=expr.type)

    def _summary(self, tree: exp.Anonymous, name: str, final: bool, build: Compile) -> Expr | Wrong | None:
        """An aggregate of the values of rows, or a number of rows, or of the match."""
        of = tree.expressions
        if name in NUMBERS and of:
            return Wrong(f"must be nothing inside {name}", quote(of[0].sql("spark")), f"Write {name}().")
        if name == "MATCH_NUMBER":
            return self.slot(MatchNumber())
        if name in NUMBERS or (name == "COUNT" and _are_rows(of)):
            variables = self.names.variables_of(of[0].text("table") or None) if of else None
            if isinstance(variables, Wrong):
                return variables
            return self.slot(Summary("count", variables, final, None, "BIGINT"))
        if len(of) != 1:
            got = counted(len(of), "argument")
            return Wrong(f"must be {name} of one value", got, f"Write for example {name}(A.x).")
        if isinstance(of[0], exp.Distinct):
            do = "Count with Spark from ALL ROWS PER MATCH, grouped by MATCH_NUMBER()."
            return Wrong(f"must be {name} of all values", "DISTINCT", do)
        found = self._of_row(of[0], build)
        if not isinstance(found, Navigation):
            return found
        built = self._opaque(found) or averaged(over_values(name.lower(), None, "x", found.type))
        if isinstance(built, Wrong):
            return built

        def slot(node: Expr) -> Expr | None:
            if not isinstance(node, Aggregate):
                return None
            function: Any = node.function
            return self.slot(Summary(function, found.variables, final, found.of, node.type))

        return transform(built, slot)


def _no_aggregate(function: str, prefix: str | None, attribute: str) -> Wrong:
    """The known aggregates are calls, and any other is not known."""
    do = "Compute it with Spark from ALL ROWS PER MATCH, grouped by MATCH_NUMBER()."
    return Wrong("must be one of the aggregates count, sum, avg, min and max", f"{function}(...)", do)


def _nested(name: str) -> Wrong:
    do = "FIRST and LAST alone stand inside PREV and NEXT, CLASSIFIER() inside FIRST and LAST."
    return Wrong("must not stand inside another navigation or aggregate", name, do)


def _call(tree: exp.Expr) -> tuple[str, bool]:
    """The name of a call, empty for all else, and whether FINAL stands before it."""
    mark, _, name = tree.name.upper().rpartition(" ") if isinstance(tree, exp.Anonymous) else ("", "", "")
    return name, mark == "FINAL"


def _are_rows(of: Sequence[exp.Expr]) -> bool:
    """Tell whether COUNT of these counts rows: of none, of ``*``, of ``A.*``, or of a constant."""
    rows = (exp.Star, exp.Literal, exp.RawString)
    return not of or (len(of) == 1 and (isinstance(of[0], rows) or isinstance(of[0].this, exp.Star)))


def _offset(name: str, of: Sequence[exp.Expr]) -> int | Wrong:
    """The offset of a navigation: the second one of its arguments, of which there must be one."""
    if not of:
        return Wrong(f"must be a value inside {name}", "nothing", f"Write for example {name}(A.x).")
    offset = int(name in SHIFTED) if len(of) == 1 else whole_number(of[1])
    if offset is None or len(of) > 2 or offset > MOST_OFFSET:
        must = f"must be a whole number from 0 to {MOST_OFFSET:,} behind the comma of {name}"
        got = quote(", ".join(one.sql("spark") for one in of[1:]))
        return Wrong(must, got, f"Write for example {name}(A.x, 2).")
    return offset


# ---------------------------------------------------------------- what Spark computes


def foreign(tree: exp.Anonymous, text: str, names: Names) -> tuple[str | None, str] | None:
    """The variable whose rows a call reads that only Spark may know, and the name of what it gives.

    None if it is known here, reads rows of several variables, or what must be found in the match. The name is
    the call as Spark writes it, and `OF_SPARK`.
    """
    inside = [*tree.walk()]
    columns = [one for one in inside if isinstance(one, exp.Column) and _reads_match(one)]
    of_match = any(_call(one)[0] in CALLS for one in inside) or not _have_places(columns)
    if of_match or tree.name.lower() in FUNCTIONS:
        return None
    start, prefixes = start_of(tree), set[str | None]()
    sql = text[start : _end_of_call(text, start)]
    for one in sorted(columns, key=start_of, reverse=True):
        variable, part = _column(one, names)
        begin, end = start_of(one) - start, part.meta["start"] - start
        sql = sql[:begin] + sql[end:]
        if variable is not None or not isinstance(names.column(part.name), Wrong):
            prefixes.add(variable)
    return None if len(prefixes) > 1 else (next(iter(prefixes), None), f"{sql}{OF_SPARK}")


def foreign_in(
    text: ExpressionText, names: Names, is_sparks: Callable[[str, str], bool], *, defines: bool
) -> Iterator[tuple[str, range]]:
    """The names and the places of calls that Spark computes of one row; see `beforehand`.

    Those of a measure are in navigations and aggregates: what stands outside of these is computed behind the
    match.
    """
    taken = set[int]()
    tree = parse_expression(replace(text, sparks=(range(len(text.text)),)), Report())
    if tree is None:
        return
    for root in [tree] if defines else [node for node in tree.walk() if _call(node)[0] in CALLS]:
        for node in root.walk(prune=lambda each: id(each) in taken):
            found = foreign(node, text.text, names) if isinstance(node, exp.Anonymous) else None
            if found is not None and is_sparks(node.name, found[1].removesuffix(OF_SPARK)):
                taken.add(id(node))
                start = start_of(node)
                yield found[1], range(start, _end_of_call(text.text, start))


def read_outside(known: Slots, in_spark: Callable[[str], bool]) -> list[Read]:
    """What an expression reads, from the end of its text on; empty if Spark cannot compute it either.

    Raises:
        ConfigError: Spark has its functions, but it names something that is not there.
    """
    tree, found = parse_expression(known.text, Report()), list[exp.Expr]()
    for node in () if tree is None else tree.walk(prune=_reads_match):
        if _call(node)[0] in CALLS and isinstance(node.parent, _OF_WINDOWS):
            return []
        if _reads_match(node):
            found.append(node)
        elif isinstance(node, exp.Anonymous) and not (node.name.lower() in FUNCTIONS or in_spark(node.name)):
            return []
    if not _have_places([node for node in found if isinstance(node, exp.Column)]):
        return []
    return sorted((_read(node, known) for node in found), key=lambda one: -one[0])


def _reads_match(node: exp.Expr) -> bool:
    """Tell whether a node is a name or a call that the match gives, not the unit of a function of times."""
    if not isinstance(node, exp.Column):
        return _call(node)[0] in CALLS
    is_first = isinstance(node.parent, exp.Anonymous) and node.parent.expressions[0] is node
    return not (is_first and len(node.parts) == 1 and node.name.upper() in _UNITS)


def _read(node: exp.Expr, known: Slots) -> Read:
    """What ``x``, ``A.x`` or a call stands for; what stands behind, as of a struct, is Spark's."""
    start = start_of(node)
    if not isinstance(node, exp.Column):
        whole = node.copy()  # with nothing around it, so that it may be of any type
        expr = compiled(lambda report: compile_tree(whole, known.text, known.scope, report))
        return start, _end_of_call(known.text.text, start), expr
    variable, part = _column(node, known.names)
    value = known.value(variable, part.name)
    if isinstance(value, Wrong):
        place = str(known.text.at(part.meta["start"]))
        raise ConfigError((Problem(place, value.must, value.got, value.do),))
    return start, part.meta["end"] + 1, known.slot(value)


def _have_places(columns: Sequence[exp.Column]) -> bool:
    """Tell whether names stand in the text, and are no ``*``."""
    return all("start" in part.meta for one in columns for part in one.parts)


def _column(node: exp.Column, names: Names) -> tuple[str | None, exp.Expr]:
    """The variable that a name begins with, None if it begins with none, and the part behind that."""
    parts = node.parts
    variable = names.variable(parts[0].name) if len(parts) > 1 else None
    return variable, parts[variable is not None]


def _end_of_call(text: str, start: int) -> int:
    """The place behind the parenthesis that closes a call."""
    depth = 0
    for token in RuleDialect().tokenize(text):
        if token.start >= start:
            closes = token.token_type == TokenType.R_PAREN
            depth += (token.token_type == TokenType.L_PAREN) - closes
            if closes and not depth:
                return int(token.end) + 1
    raise AssertionError(text)
