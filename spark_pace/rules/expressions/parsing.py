"""Expression text to sqlglot's tree, with limits on length and depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from spark_pace.rules.document.document import Broken, Mapping, Node, Scalar, Section, describe
from spark_pace.rules.document.report import Report, quote
from spark_pace.rules.expressions.calendar import unit_in_words

MAX_CHARACTERS = 10_000
MAX_PARENTHESES = 20
MAX_HEIGHT = 60
ONLY_THIS_LANGUAGE = "Only the language of docs/rules/expressions.md is read."
_IN_WORDS = {"&&": "Write and.", "&": "Write and.", "|": "Write or.", "!": "Write not."}
_SET_PARENTHESES = (
    "Put the one to be made first into parentheses, as in a = (b < c): "
    "Spark SQL would make another one first."
)

_SIGNS = {
    TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.IDENTIFIER,
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT,
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE,
    TokenType.NOT, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE,
    TokenType.NULLSAFE_EQ,
    TokenType.DCOLON,  # what sqlglot puts into a constant such as 1L
}  # fmt: skip

_LOST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"]")  # as in 'a\d', which SQL reads as 'ad'
_EQUALITIES = {TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ}
_COMPARISONS = {*_EQUALITIES, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_RANGES = {TokenType.LIKE, TokenType.RLIKE, TokenType.IN, TokenType.BETWEEN}
_OPENING = {TokenType.L_PAREN, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.END}
_CONNECTIVES = {TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.WHEN, TokenType.THEN, TokenType.ELSE}
_BEFORE_A_VALUE = {
    *_COMPARISONS, *_RANGES, *_OPENING, *_CONNECTIVES, TokenType.NOT,
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE,
}  # fmt: skip


class RuleDialect(Spark):
    """Spark SQL in which every function keeps its name and its arguments, whatever sqlglot knows of it."""

    class Tokenizer(Spark.Tokenizer):
        """Takes no word for the beginning of a command, whose other words would not be read."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(SparkParser):
        """Leaves functions alone, but for those that have their own syntax, and knows no statements."""

        STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            key: SparkParser.FUNCTION_PARSERS[key] for key in ("CAST", "TRY_CAST", "EXTRACT")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }


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


def check_syntax(fields: Section, keys: Sequence[str]) -> None:
    """Report what is wrong in the expressions under these keys, as far as that needs no attributes."""
    for key in keys:
        node = fields.node(key)
        for scalar in [entry for _, entry in node.entries.values()] if isinstance(node, Mapping) else [node]:
            if isinstance(scalar, Scalar) and scalar.text.strip():
                parse_expression(scalar, fields.report)


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
        if (wrong := _refused(tokens, text)) is not None:
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


def _refused(tokens: list[sqlglot.Token], text: str) -> tuple[sqlglot.Token, str, str, str] | None:
    """The first token that cannot be taken: what must hold, what came, what to do."""
    at = next((at for at, token in enumerate(tokens) if not _is_known(token)), None)
    if at is not None:
        do = _IN_WORDS.get(tokens[at].text) or _element(tokens, at, text) or ONLY_THIS_LANGUAGE
        return tokens[at], "must be an expression of the rule language", quote(tokens[at].text), do
    if (wrong := _bare_length(tokens) or _distinct_alone(tokens, text)) is not None:
        return wrong
    for before, token in pairwise(tokens):
        written = text[token.start : token.end + 1]
        is_pattern = before.token_type == TokenType.RLIKE and token.token_type == TokenType.STRING
        if is_pattern and _LOST_BACKSLASH.search(written):
            do = "Write the pattern as r'...', or two backslashes for each."
            return token, "must be a pattern that keeps its backslashes", quote(written), do
    if (second := _other_order(tokens)) is not None:
        must = "must have parentheses where a comparison stands inside another"
        return second, must, f"{quote(second.text)} in {quote(text)}", _SET_PARENTHESES
    return None


def _bare_length(tokens: list[sqlglot.Token]) -> tuple[sqlglot.Token, str, str, str] | None:
    """The first length of time that lacks the word interval, as in ``b.t - a.t > 5 minutes``."""
    for at, (number, unit) in enumerate(pairwise(tokens)):
        name = unit_in_words(unit.text)
        if name is None or number.token_type not in (TokenType.NUMBER, TokenType.STRING):
            continue
        before = tokens[max(0, at - 2) : at]
        if all(token.token_type != TokenType.INTERVAL for token in before):
            got, do = quote(f"{number.text} {unit.text}"), f"Write interval '{number.text}' {name}."
            return number, "must be an interval where it is a length of time", got, do
    return None


def _distinct_alone(tokens: list[sqlglot.Token], text: str) -> tuple[sqlglot.Token, str, str, str] | None:
    """The first ``distinct(x)`` that stands in no aggregate."""
    for at, token in enumerate(tokens[:-1]):
        inside = at > 1 and tokens[at - 1].token_type == TokenType.L_PAREN and _is_word(tokens[at - 2])
        named = at > 0 and tokens[at - 1].token_type == TokenType.DOT
        called = tokens[at + 1].token_type == TokenType.L_PAREN
        if token.token_type != TokenType.DISTINCT or inside or named or not called:
            continue
        end = _closing(tokens, at + 1)
        of = text[tokens[at + 1].end + 1 : tokens[end].start].strip()
        got = quote(text[token.start : tokens[end].end + 1])
        return token, "must be an aggregate with distinct inside it", got, distinct_count(of)
    return None


def distinct_count(of: str) -> str:
    """What to write for the number of different values."""
    return f"Write count(distinct {of or 'x'})."


def _closing(tokens: list[sqlglot.Token], start: int) -> int:
    """The place of the parenthesis that closes the one at `start`; of the last token if none does."""
    depth = 0
    for at in range(start, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return at
    return len(tokens) - 1


def _element(tokens: list[sqlglot.Token], at: int, text: str) -> str | None:
    """What to write instead of ``name[0]``; None where the token at `at` is no such bracket."""
    start = at - 1
    while start >= 2 and tokens[start - 1].token_type == TokenType.DOT:
        start -= 2
    if tokens[at].token_type != TokenType.L_BRACKET or start < 0 or not _is_word(tokens[at - 1]):
        return None
    name = text[tokens[start].start : tokens[at - 1].end + 1]
    place = tokens[at + 1].text if at + 1 < len(tokens) else ""
    number = int(place) + 1 if place.isdecimal() and len(place) < 10 else 1
    return f"Write element_at({name}, {number}): places count from 1."


def _is_word(token: sqlglot.Token) -> bool:
    return token.text[:1].isalpha() and token.token_type not in _BEFORE_A_VALUE


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


def _other_order(tokens: list[sqlglot.Token]) -> sqlglot.Token | None:
    """The first operator from which on Spark SQL would read the text in another way than sqlglot does.

    In Spark SQL all comparisons bind alike.
    """
    # for each open parenthesis or case: the comparisons since the last connective
    levels: list[list[TokenType]] = [[]]
    open_cases: list[int] = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        kind, made = token.token_type, levels[-1]
        if before is not None and (
            before.token_type == TokenType.DOT
            or (kind == TokenType.END and before.token_type in _BEFORE_A_VALUE)
        ):
            continue  # the name of an attribute
        if before is not None and before.token_type in _COMPARISONS and kind in _COMPARISONS:
            return None  # as in a =< 2: the parser says so
        if kind in _OPENING:
            open_cases += [len(levels)] * (kind == TokenType.CASE)
            levels.append([])
        elif (kind == TokenType.R_PAREN and len(levels) > 1) or (kind == TokenType.END and open_cases):
            del levels[open_cases.pop() if kind == TokenType.END else -1 :]
        elif kind in _CONNECTIVES:
            made[:] = [*made, kind] if (kind, made[-1:]) == (TokenType.AND, [TokenType.BETWEEN]) else []
        elif kind == TokenType.NOT:
            if made and made[-1] != TokenType.IS and not (after and after.token_type in _RANGES):
                return token
        elif kind in _COMPARISONS or kind in _RANGES or kind == TokenType.IS:
            if made and not _reads_alike(made, kind):
                return token
            made.append(kind)
    return None


def _reads_alike(made: list[TokenType], kind: TokenType) -> bool:
    """Tell whether both read ``a = b < c`` from the left: `made` before the operator `kind`."""
    if kind in _RANGES or not _COMPARISONS.issuperset(made):
        return False
    return kind in _EQUALITIES or kind == TokenType.IS or _EQUALITIES.isdisjoint(made)


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
