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
from spark_pace.rules.document.report import quote
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
        pattern = _Rewriter(sought).rewritten()
    except _Refused as refused:
        got = f"{quote(sought[refused.at :][:20])} at character {refused.at + 1} of {quote(sought)}"
        return Wrong("must be a pattern that RE2 and Java read alike", got, refused.do)
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        do = "Write smaller numbers of repetitions."
        return Wrong("must be a pattern that is not too large for RE2", quote(sought), do)
    return Call("rlike", (convert(values[0], "STRING"), values[1], Literal(pattern, "STRING")), "BOOLEAN")


class _Rewriter:
    """Goes through a pattern once, and writes what RE2 is to read."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._written: list[str] = []

    def rewritten(self) -> str:
        """The pattern for RE2; raises `_Refused`."""
        depth, opened = 0, 0
        repeatable = False  # whether a quantifier may follow
        while self._at < len(self._pattern):
            sign, start = self._pattern[self._at], self._at
            if sign in "*+?{":
                self._quantifier(repeatable)
                repeatable = False
                continue
            repeatable = sign not in "(|^$"
            if sign == "(":
                depth, opened = depth + 1, start
                self._open()
            elif sign == ")":
                depth -= 1
                self._take(sign)
            elif sign == "[":
                self._class()
            elif sign == "\\":
                repeatable = self._escape(_CLASSES, "Az")
            else:
                self._take(sign, _DOT if sign == "." else sign)
            if depth < 0:
                raise _Refused(start, "Remove the parenthesis, or open one before it.")
        if depth:
            raise _Refused(opened, "Close the parenthesis.")
        return "".join(self._written)

    def _take(self, read: str, written: str | None = None) -> None:
        self._at += len(read)
        self._written.append(read if written is None else written)

    def _open(self) -> None:
        start = self._pattern[self._at : self._at + 3]
        if start[1:2] == "?" and start != "(?:":
            raise _Refused(self._at, _NO_GROUP)
        self._take(start if start == "(?:" else "(", "(?:")  # what a group holds is not asked for

    def _quantifier(self, repeatable: bool) -> None:
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            raise _Refused(self._at, _LITERAL)
        if not repeatable:
            raise _Refused(self._at, f"Nothing that can be repeated stands before it. {_LITERAL}")
        least, most = int(found[1] or 0), int(found[3] or found[1] or 0)
        if max(least, most) > MAX_REPEATS or most < least:
            raise _Refused(self._at, f"Write numbers from 0 to {MAX_REPEATS}, the smaller one first.")
        self._take(found[0])

    def _escape(self, classes: dict[str, str], places: str) -> bool:
        """Take a backslash and what belongs to it; returns whether a quantifier may follow.

        `classes` has the letters of classes, such as that of digits, with what RE2 is to read for them;
        `places` the letters that stand for a place, such as the beginning of the text.
        """
        sign = self._pattern[self._at + 1 : self._at + 2]
        if sign == "x":
            self._take_character()
            return True
        if sign in classes and sign:
            self._take("\\" + sign, classes[sign])
        elif sign and (sign in _CONTROLS or sign in places or (sign.isascii() and not sign.isalnum())):
            self._take("\\" + sign)
        else:
            raise _Refused(
                self._at, _ADVICE.get(sign, "Only \\d \\w \\s, \\t \\n \\r \\f \\x are escapes here.")
            )
        return sign not in places

    def _take_character(self) -> int:
        found = _HEX.match(self._pattern, self._at)
        code = int(found[1] or found[2], 16) if found else -1
        if found is None or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise _Refused(self._at, "Write \\x41 or \\x{2028}.")
        self._take(found[0], f"\\x{{{code:x}}}")
        return code

    def _class(self) -> None:
        """Take ``[...]``: characters, ranges of them, and classes such as that of digits."""
        start = self._at
        self._take("[^" if self._pattern.startswith("[^", start) else "[")
        first = self._at
        while not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise _Refused(start, "Close the bracket.")
            low = self._member(self._at == first)
            rest = self._pattern[self._at :]
            if rest.startswith("-") and not rest.startswith("-]"):
                self._range(low)
        if self._at == first:
            raise _Refused(start, "Put a backslash before a bracket that means itself.")
        self._take("]")

    def _range(self, low: int | None) -> None:
        start = self._at
        self._take("-")
        high = self._member(False) if self._at < len(self._pattern) else None
        if low is None or high is None or high < low:
            raise _Refused(start, "Write a range such as a-z, and \\- for the sign.")

    def _member(self, first: bool) -> int | None:
        """Take one member of ``[...]``: a character, or a class such as that of digits.

        Args:
            first: True if it is the first member, where a ``-`` means itself.

        Returns:
            the character's code point; None for a class.
        """
        sign = self._pattern[self._at]
        if sign == "\\":
            following = self._pattern[self._at + 1 : self._at + 2]
            if following == "x":
                return self._take_character()
            self._escape(_IN_CLASSES, "")
            return None if following in _IN_CLASSES else ord(following)
        ends = self._pattern[self._at + 1 : self._at + 2] in ("", "]")
        if sign == "[" or self._pattern.startswith("&&", self._at) or (sign == "-" and not (first or ends)):
            raise _Refused(self._at, _LITERAL)
        self._take(sign)
        return ord(sign)
