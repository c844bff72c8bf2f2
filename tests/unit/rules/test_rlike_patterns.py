"""`rlike`: which patterns are taken, what they mean, and what is said of the others."""

import pyarrow as pa
import pytest

from spark_pace.core.expr import Column, Expr, Literal, evaluate
from spark_pace.rules.expressions.patterns import rlike
from spark_pace.rules.expressions.types import Wrong
from tests.support.expression_cases import TableColumns

TEXTS = ["EWR", "ewr\n", "a\r", "\x0b", "🙂", "a.b", None]


def fits(pattern: str) -> list[bool | None]:
    built = of(pattern)
    assert not isinstance(built, Wrong), built
    return evaluate(built, TableColumns(pa.table({"s": TEXTS}))).to_pylist()


def of(pattern: str) -> Expr | Wrong:
    return rlike([Column(None, "s", "STRING"), Literal(pattern, "STRING")])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^[A-Z]{3}$", [True, False, False, False, False, False, None]),
        ("wr$", [False, False, False, False, False, False, None]),
        ("a.", [False, False, False, False, False, True, None]),
        (r"\s", [False, True, True, True, False, False, None]),
        (r"[\S]", [True, True, True, False, True, True, None]),
        (r"\Aa\.b\z|^.$", [False, False, False, True, True, True, None]),
        (r"[^\x00-\x{ffff}]", [False, False, False, False, True, False, None]),
        ("", [True, True, True, True, True, True, None]),
    ],
)
def test_a_pattern_fits_some_part_of_a_text(pattern: str, expected: list[bool | None]) -> None:
    assert fits(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "character", "advice"),
    [
        ("a(?=b)", 2, "no looking ahead or behind"),
        ("(?i)ewr", 1, "use lower"),
        (r"(a)\1", 4, "escapes here"),
        (r"\bEWR\b", 1, r"instead of \bword\b"),
        (r"\p{L}", 1, "such as [A-Za-z]"),
        (r"a\Z", 2, "Write $"),
        ("a{2,1}", 2, "the smaller one first"),
        ("a{1001}", 2, "from 0 to 1000"),
        ("a**", 3, "Nothing that can be repeated"),
        ("a*+", 3, "Nothing that can be repeated"),
        ("*a", 1, "Nothing that can be repeated"),
        ("{a}", 1, "Put a backslash"),
        ("(a", 1, "Close the parenthesis"),
        ("a)", 2, "Remove the parenthesis"),
        ("[a", 1, "Close the bracket"),
        ("[]a]", 1, "Put a backslash"),
        ("[a[b]]", 3, "Put a backslash"),
        ("[a&&b]", 3, "Put a backslash"),
        ("[[:alpha:]]", 2, "Put a backslash"),
        (r"[\d-z]", 4, "a range such as a-z"),
        ("[z-a]", 3, "a range such as a-z"),
        (r"\x{d800}", 1, r"Write \x41"),
        ("a\\", 2, "escapes here"),
        (r"[\b]", 2, r"\bword\b"),
    ],
)
def test_what_is_read_differently_is_refused_with_its_place(
    pattern: str, character: int, advice: str
) -> None:
    wrong = of(pattern)
    assert isinstance(wrong, Wrong)
    assert wrong.must == "must be a pattern that RE2 and Java read alike"
    assert f" at character {character} of " in wrong.got
    assert advice in wrong.do
