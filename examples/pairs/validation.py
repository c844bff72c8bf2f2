"""Compares what a job answered with what is expected, as the validator of the Pairs benchmark does.

Sources: Mendes 2013, section B.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from math import isclose
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from examples.pairs.oracle import Answer, Indicator, MarketOrder

INDICATORS, ORDERS = "indicator", "market_order"  # the rules that give the two streams of answers
_RATIOS, _ORDERED = ("ratio", "average", "upper", "lower"), ("type", "symbol", "price", "size")
COLUMNS = ("rule", "strategy", "matched_at", *_RATIOS, *_ORDERED)  # of the table, that are compared
_NEAR = 1e-9  # doubles are equal up to this share of them


@dataclass(frozen=True)
class Validation:
    """The counts of one stream of answers.

    Attributes:
        expected: how many answers the oracle gives.
        produced: how many the job gave.
        correct: of these, how many are expected with these values.
        missing: how many expected ones were not produced.
        undue: how many produced ones are not expected, repeats included.
        wrong: how many are both, with other values.
    """

    expected: int
    produced: int
    correct: int
    missing: int
    undue: int
    wrong: int

    @property
    def passed(self) -> bool:
        """Whether all answers were right."""
        return not (self.missing or self.undue or self.wrong)


def produced(matches: pa.Table) -> list[Answer]:
    """The answers in a job's table `matches`."""
    found: list[Answer] = []
    indicators = matches.filter(pc.equal(matches["rule"], INDICATORS))
    orders = matches.filter(pc.equal(matches["rule"], ORDERS))
    found += [Indicator(*row) for row in _rows(indicators, _RATIOS)]
    found += [MarketOrder(*row) for row in _rows(orders, _ORDERED)]
    return found


def _rows(matches: pa.Table, columns: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
    milliseconds = pc.divide(matches["matched_at"].cast(pa.int64()), 1000)
    read = [matches["strategy"], milliseconds, *(matches[name] for name in columns)]
    return zip(*(column.to_pylist() for column in read), strict=True)


def validate(expected: Iterable[Answer], answered: Iterable[Answer]) -> dict[str, Validation]:
    """The counts of the streams `Indicator` and `MarketOrder`."""
    expected, answered = list(expected), list(answered)
    return {
        kind.__name__: _validate(
            [answer for answer in expected if isinstance(answer, kind)],
            [answer for answer in answered if isinstance(answer, kind)],
        )
        for kind in (Indicator, MarketOrder)
    }


def _validate(expected: list[Answer], answered: list[Answer]) -> Validation:
    due = {_key(answer): answer for answer in expected}
    correct, undue, wrong = 0, 0, 0
    found = set()
    for answer in answered:
        key = _key(answer)
        if key in found or key not in due:
            undue += 1
            continue
        found.add(key)
        if _equal(answer, due[key]):
            correct += 1
        else:
            wrong += 1
    return Validation(len(expected), len(answered), correct, len(due) - len(found), undue, wrong)


def _key(answer: Answer) -> tuple[str, int, str]:
    return answer.strategy, answer.time, answer.type if isinstance(answer, MarketOrder) else ""


def _equal(one: Answer, other: Answer) -> bool:
    return all(
        isclose(ours, theirs, rel_tol=_NEAR) if isinstance(ours, float) else ours == theirs
        for ours, theirs in zip(astuple(one), astuple(other), strict=True)
    )
