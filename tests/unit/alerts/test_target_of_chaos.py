"""What `make chaos ALL=1` says of a target that was not sent what it was promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.long.chaos.target import FAILS, WELL, Target, wrongly_sent

Got = list[tuple[dict[str, Any], str]]
NAMES = ("kind", "source", "offset", "rule", "key", "selection_id")
NOTHING = pa.table({name: pa.array([], pa.string()) for name in NAMES})


def row(number: int) -> dict[str, Any]:
    return {"rule": "a", "out_seq": number, "key": None, "seq": number, "selection_id": 0, "x": number}


def alert(number: int, repeat: bool = False) -> dict[str, Any]:
    sent = row(number)
    fields = {"x": sent.pop("x")}
    return {"id": f"a/{number}", "table": "matches", "repeat": repeat, "fields": fields, **sent}


def found(got: Got) -> list[str]:
    matches = pa.Table.from_pylist([{**row(number), "events": 0} for number in range(3)])
    return list(wrongly_sent(Target(got=got), {"matches": matches, "late": NOTHING, "quarantine": NOTHING}))


def sent() -> Got:
    """The second one fails at first."""
    return [
        (alert(0), WELL),
        (alert(1), FAILS),
        (alert(1, repeat=True), WELL),
        (alert(2), WELL),
    ]


def test_what_was_promised_is_no_difference() -> None:
    assert found(sent()) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda got: got.pop(), "alerts: 1 rows of matches were never accepted, the first ('a', 2)"),
        (lambda got: got[2][0].update(repeat=False), "alerts: 1 came again without repeat, the first a/1"),
        (
            lambda got: got.insert(0, got.pop()),
            "alerts: the first arrivals of a (read) are not in order",
        ),
        (lambda got: got.append((alert(3), WELL)), "alerts: 1 are no rows of matches, the first ('a', 3)"),
        (lambda got: got[3][0]["fields"].update(x=7), "is not its row"),
    ],
    ids=["lost", "unmarked", "disordered", "invented", "altered"],
)
def test_what_was_not_promised_is_told(spoil: Callable[[Got], object], said: str) -> None:
    got = sent()
    spoil(got)
    assert any(said in line for line in found(got))
