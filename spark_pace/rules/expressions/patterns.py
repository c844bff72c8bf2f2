"""The patterns of ``rlike``: what RE2 and Java's regular expressions read alike, rewritten for RE2.

RE2 takes a time that is linear in the text, whatever the pattern. Java's engine may take for ever, so Spark
is never given a pattern to test. What the two would read differently is refused here. A part that only stands
for other characters in Java than in RE2, such as ``.``, is written for RE2 as the list of Java's characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import Call, Expr, Literal
from spark_pace.rules.document import quote
from spark_pace.rules.expressions.types import Wrong, constant_text, convert, require_type

MAX_PATTERN = 1_000  # characters
MAX_REPEATS = 1_000  # as RE2 has it
_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_SPACE, _NO_SPACE = r"\t-\r ", r"\x{0}-\x{8}\x{e}-\x{1f}!-\x{10ffff}"
_CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": f"[{_SPACE}]", "S": f"[{_NO_SPACE}]"}
_IN_CLASSES = {**_CLASSES, "s": _SPACE, "S": _NO_SPACE}
_CONTROLS = "tnrf"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d{1,4})(?:(,)(\d{1,4})?)?\})\??")
_HEX = re.compile(r"\\x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\})")
_ADVICE = {
    "b": r"Write (^|\W)word(\W|$) instead of \bword\b: what ends a word differs.",
    "B": "What ends a word differs between the two.",
    "p": "Their tables of letters differ: write the letters, such as [A-Za-z].",
    "P": "Their tables of letters differ: write the letters, such as [^A-Za-z].",
    "Z": "Write $ for the end of the text.",
}
_NO_GROUP = (
    "Groups are ( ) and (?: ): there is no looking ahead or behind; for letters of any case use lower."
)
_LITERAL = "Put a backslash before a sign that means itself."
# the place behind it, what RE2 is to read, its code if it is a character
Member = tuple[int, str, "int | None"]


class _Refused(Exception):
    """The pattern is refused: `at` is the index of the character at fault, `do` says what to do."""

    def __init__(self, at: int, do: str) -> None:
        super().__init__(at, do)
        self.at, self.do = at, do


def rlike(values: Sequence[Expr]) -> Expr | Wrong:
    """``text rlike 'pattern'``: whether the pattern fits some part of the text.

    The node's arguments: the text, the pattern as written, the pattern for RE2.
    """
    if wrong := require_type(values[0], "text"):
        return wrong
    sought = constant_text(values[1])
    if sought is None:
        got = f"{values[1].type} or a computed value"
        return Wrong("must be a constant pattern", got, "Write the pattern in quotes.")
    if len(sought) > MAX_PATTERN:
        got = f"{len(sought)} characters"
        return Wrong(f"must be a pattern of at most {MAX_PATTERN} characters", got, "Write a shorter one.")
    try:
        pattern = _for_re2(sought)
    except _Refused as refused:
        got = f"{quote(sought[refused.at :][:20])} at character {refused.at + 1} of {quote(sought)}"
        return Wrong("must be a pattern that RE2 and Java read alike", got, refused.do)
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        do = "Write smaller numbers of repetitions."
        return Wrong("must be a pattern that is not too large for RE2", quote(sought), do)
    return Call("rlike", (convert(values[0], "STRING"), values[1], Literal(pattern, "STRING")), "BOOLEAN")


def _for_re2(pattern: str) -> str:
    """The pattern for RE2; raises `_Refused`."""
    written, opened, at = list[str](), list[int](), 0
    repeatable = False  # whether a quantifier may follow
    while at < len(pattern):
        sign, start, text = pattern[at], at, _DOT if pattern[at] == "." else pattern[at]
        at += 1
        if sign in "*+?{":
            at = _quantifier(pattern, start, repeatable)
            text = pattern[start:at]
        elif sign == "(":
            opened.append(start)
            at += 2 * pattern.startswith("?:", at)
            text = "(?:"  # what a group holds is not asked for
            if pattern.startswith("(?", start) and at == start + 1:
                raise _Refused(start, _NO_GROUP)
        elif sign == ")" and not opened:
            raise _Refused(start, "Remove the parenthesis, or open one before it.")
        elif sign == ")":
            opened.pop()
        elif sign == "[":
            at, text = _class(pattern, start)
        elif sign == "\\":
            at, text, _ = _escaped(pattern, start, _CLASSES, "Az")
        repeatable = sign not in "(|^$*+?{" and text not in ("\\A", "\\z")
        written.append(text)
    if opened:
        raise _Refused(opened[-1], "Close the parenthesis.")
    return "".join(written)


def _quantifier(pattern: str, at: int, repeatable: bool) -> int:
    """The place behind a quantifier."""
    found = _QUANTIFIER.match(pattern, at)
    if found is None:
        raise _Refused(at, _LITERAL)
    if not repeatable:
        raise _Refused(at, f"Nothing that can be repeated stands before it. {_LITERAL}")
    least, most = int(found[1] or 0), int(found[3] or found[1] or 0)
    if max(least, most) > MAX_REPEATS or most < least:
        raise _Refused(at, f"Write numbers from 0 to {MAX_REPEATS}, the smaller one first.")
    return found.end()


def _escaped(pattern: str, at: int, classes: dict[str, str], places: str) -> Member:
    """What a backslash begins.

    `classes` has the letters of classes, such as that of digits, with what RE2 is to read for them; `places`
    the letters that stand for a place, such as the beginning of the text.
    """
    sign, found = pattern[at + 1 : at + 2], _HEX.match(pattern, at)
    if sign == "x":
        code = int(found[1] or found[2], 16) if found else -1
        if found is None or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise _Refused(at, "Write \\x41 or \\x{2028}.")
        return found.end(), f"\\x{{{code:x}}}", code
    if sign and sign in classes:
        return at + 2, classes[sign], None
    if sign and (sign in _CONTROLS or sign in places or (sign.isascii() and not sign.isalnum())):
        return at + 2, "\\" + sign, ord(sign)
    raise _Refused(at, _ADVICE.get(sign, "Only \\d \\w \\s, \\t \\n \\r \\f \\x are escapes here."))


def _class(pattern: str, start: int) -> tuple[int, str]:
    """The place behind ``[...]``, and what RE2 is to read: characters, ranges of them, and classes."""
    first = start + 1 + pattern.startswith("^", start + 1)
    at, text = first, pattern[start:first]
    while not pattern.startswith("]", at):
        if at >= len(pattern):
            raise _Refused(start, "Close the bracket.")
        at, written, low = _member(pattern, at, at == first)
        text += written
        if pattern.startswith("-", at) and not pattern.startswith("-]", at):
            dash, high = at, None
            if at + 1 < len(pattern):
                at, written, high = _member(pattern, at + 1, False)
            if low is None or high is None or high < low:
                raise _Refused(dash, "Write a range such as a-z, and \\- for the sign.")
            text += f"-{written}"
    if at == first:
        raise _Refused(start, "Put a backslash before a bracket that means itself.")
    return at + 1, f"{text}]"


def _member(pattern: str, at: int, first: bool) -> Member:
    """A member of ``[...]``; as the first one, a ``-`` means itself."""
    sign = pattern[at]
    if sign == "\\":
        return _escaped(pattern, at, _IN_CLASSES, "")
    ends = pattern[at + 1 : at + 2] in ("", "]")
    if sign == "[" or pattern.startswith("&&", at) or (sign == "-" and not (first or ends)):
        raise _Refused(at, _LITERAL)
    return at + 1, sign, ord(sign)
