"""Expression text to sqlglot's tree, with limits on length and depth."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from spark_pace.rules.document import Broken, Node, Report, Scalar, describe, quote

MAX_CHARACTERS = 10_000
MAX_PARENTHESES = 20
MAX_HEIGHT = 60
ONLY_THIS_LANGUAGE = "Only the language of docs/rules/expressions.md is read."
_INSTEAD = {
    **dict.fromkeys(("&&", "&"), "Write and."),
    "|": "Write or.",
    "!": "Write not.",
    "[": "Write for example element_at(x, 1), for places count from 1, or x in ('a', 'b').",
}
_SIGNS = {
    TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.IDENTIFIER,
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT,
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE,
    TokenType.NOT, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE,
    TokenType.NULLSAFE_EQ,
    TokenType.DCOLON,  # what sqlglot puts into a constant such as 1L
}  # fmt: skip

_LOST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"]")  # as in 'a\d', which SQL reads as 'ad'
_OPENING = {TokenType.L_PAREN, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.END}
_LENGTHS = {TokenType.NUMBER, TokenType.STRING}  # what stands before a unit of time


class RuleDialect(Spark):
    """Spark SQL as Spark reads it, with all functions left alone.

    Each keeps its name and its arguments, whatever sqlglot knows of it. All comparisons bind alike, and are
    made before what stands before LIKE, IN, BETWEEN and IS.
    """

    class Tokenizer(Spark.Tokenizer):
        """Takes no word for the beginning of a command, whose other words would not be read."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(SparkParser):
        """Leaves functions alone, but for those that have their own syntax, and knows no statements."""

        STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            kind: made for kind, made in SparkParser.UNARY_PARSERS.items() if kind != TokenType.NOT
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            key: SparkParser.FUNCTION_PARSERS[key] for key in ("CAST", "TRY_CAST", "EXTRACT")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

        def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
            compared, this = {**self.EQUALITY, **self.COMPARISON}, this or self._parse_bitwise()
            while self._match_set(compared):
                made = compared[self._prev.token_type](this=this, expression=self._parse_bitwise())
                this = self.expression(made)
            return this

        def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
            if not parse_is:  # behind IS DISTINCT FROM
                return self._parse_comparison()
            if self._match(TokenType.NOT):
                return self.expression(exp.Not(this=self._parse_equality()))
            this = self._parse_comparison()
            negated = self._match(TokenType.NOT)
            if self._match_set(self.RANGE_PARSERS):
                this = self.RANGE_PARSERS[self._prev.token_type](self, this)
                return self.expression(exp.Not(this=this)) if negated else this
            if negated:
                self._retreat(self._index - 1)
            return this


def as_expression(node: Node | None, report: Report) -> Scalar | None:
    """A scalar as the text of an expression (``true`` and ``5`` are expressions too)."""
    if isinstance(node, Scalar) and node.text.strip():
        return node
    if node is not None and not isinstance(node, Broken):
        report.add(
            node.place,
            "must be an expression",
            describe(node),
            "Write for example x = 1, in quotes if it holds : or #.",
        )
    return None


def parse_expression(scalar: Scalar, report: Report) -> exp.Expr | None:
    """The tree of an expression; None where it is reported as wrong."""
    text = scalar.text
    if len(text) > MAX_CHARACTERS:
        must, got = f"must be at most {MAX_CHARACTERS} characters long", f"{len(text)} characters"
        report.add(scalar.place, must, got, "Write a shorter expression.")
        return None
    try:
        tokens = _by_sqlglot(RuleDialect().tokenize, text)
        if _deepest(tokens) > MAX_PARENTHESES:
            raise RecursionError
        if (wrong := _refused(tokens, scalar)) is not None:
            token, must, got, do = wrong
            report.add(scalar.at(token.start), must, got, do)
            return None
        tree: exp.Expr = _by_sqlglot(partial(sqlglot.parse_one, dialect=RuleDialect), text)
        if _height(tree) > MAX_HEIGHT:
            raise RecursionError
        return tree
    except RecursionError:
        must = f"must nest at most {MAX_PARENTHESES} parentheses and {MAX_HEIGHT} operators"
        report.add(scalar.place, must, quote(text), "Write a simpler expression.")
    except ParseError as error:
        _report_parse_error(error, scalar, report)
    except TokenError:
        report.add(scalar.place, "must be an expression", quote(text), "Close every quotation mark.")
    return None


def _by_sqlglot(read: Callable[[str], Any], text: str) -> Any:
    """What sqlglot makes of a text.

    Some malformed texts lead it into errors of Python's own, such as ``int("IS")``: they count as parse
    errors.
    """
    try:
        return read(text)
    except (ParseError, TokenError, RecursionError, MemoryError):
        raise
    except Exception as error:
        raise ParseError(str(error)) from error


def _refused(tokens: list[sqlglot.Token], scalar: Scalar) -> tuple[sqlglot.Token, str, str, str] | None:
    """The first token that cannot be taken: what must hold, what came, what to do."""
    for at, token in enumerate(tokens):
        kind, before = token.token_type, [one.token_type for one in tokens[max(0, at - 3) : at]]
        last, written = before[-1] if before else None, scalar.text[token.start : token.end + 1]
        if not (_is_known(token) or scalar.is_sparks(token.start)):
            do = _INSTEAD.get(token.text, ONLY_THIS_LANGUAGE)
            return token, "must be an expression of the rule language", quote(token.text), do
        called = TokenType.L_PAREN in [one.token_type for one in tokens[at + 1 : at + 2]]
        is_unit = kind == TokenType.VAR and last in _LENGTHS and not called
        if is_unit and TokenType.INTERVAL not in before:
            number = tokens[at - 1]
            got, do = f"{number.text} {token.text}", f"Write for example interval '{number.text}' minutes."
            return number, "must be an interval where it is a length of time", quote(got), do
        if kind == TokenType.STRING and last == TokenType.RLIKE and _LOST_BACKSLASH.search(written):
            do = "Write the pattern as r'...', or two backslashes for each."
            return token, "must be a pattern that keeps its backslashes", quote(written), do
    return None


def _is_known(token: sqlglot.Token) -> bool:
    """Words, constants and the signs of the language: the rest of SQL does not even reach the parser."""
    return token.token_type in _SIGNS or token.text[:1].isalpha() or token.text[:1] == "_"


def _deepest(tokens: list[sqlglot.Token]) -> int:
    depth = deepest = 0
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif token.token_type in _CLOSING:
            depth -= 1
    return deepest


def _height(tree: exp.Expr) -> int:
    """Levels of the tree; a chain of one connective is one level, as it will be balanced."""
    highest, waiting = 0, [(tree, 1)]
    while waiting:
        node, height = waiting.pop()
        highest = max(highest, height)
        for child in node.iter_expressions():
            chained = type(child) is type(node) and isinstance(node, exp.Connector)
            waiting.append((child, height if chained else height + 1))
    return highest


def _report_parse_error(error: ParseError, scalar: Scalar, report: Report) -> None:
    details = error.errors[0] if error.errors else {}
    word = details.get("highlight") or ""
    place = scalar.at(max(0, int(details["col"]) - len(word))) if word else scalar.place
    advice = f"Look near {quote(word)}." if word else "Write a condition or a value."
    if scalar.text.count("(") > scalar.text.count(")"):
        advice += " Close every parenthesis; within [ ] or { } a text with a comma must stand in quotes."
    report.add(place, "must be a whole expression", quote(scalar.text), advice)


def start_of(tree: exp.Expr) -> int:
    """The offset of the first character that the tree was read from."""
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    return min(starts, default=0)


def conjuncts_of(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that are joined by ``and`` at the top, in order.

    An ``and`` under an ``or`` or ``not`` does not split; parentheses do not count (semantics, section 3).
    """
    waiting, parts = [tree], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            parts.append(node)
    return parts
