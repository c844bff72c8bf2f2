"""Examples of MATCH_RECOGNIZE in Snowflake's words, which other engines read otherwise or not at all."""

from __future__ import annotations

from datetime import date
from typing import Any

from tests.support.row_pattern_examples import HISTORY, XYZ, Example

# LAG and LEAD end at the edges of the match, CLASSIFIER has no parentheses
EDGES = """
SELECT company, price_date, lagged, led, number, place, symbol
    FROM stock_price_history
        MATCH_RECOGNIZE (
            PARTITION BY company
            ORDER BY price_date
            MEASURES
                LAG(price_date) AS lagged,
                LEAD(price_date) AS led,
                MATCH_NUMBER() AS number,
                MATCH_SEQUENCE_NUMBER() AS place,
                CLASSIFIER AS symbol
            ALL ROWS PER MATCH
            AFTER MATCH SKIP TO NEXT ROW
            PATTERN (CURRENT_ROW T2 T3)
            DEFINE
                CURRENT_ROW AS TRUE,
                T2 AS TRUE,
                T3 AS TRUE
            )
    ORDER BY company, number, place
    ;
"""
# in DEFINE, LAG sees the row before the match; a measure may stand without AS
SPIKES = """
select * from stock_price_history match_recognize(
    partition by company
    order by price_date
    measures
        match_number() as "MATCH_NUMBER",
        match_sequence_number() rows_in_match,
        last(classifier()) = 'DOWN' up_spike
    after match skip to next row
    pattern(PERMUTE(UP{2}, DOWN+))
    define
        UP as price > lag(price),
        DOWN as price < lag(price)
)
order by company, match_number;
"""


def _day(number: int) -> date:
    return date(2020, 10, number)


def _edges(company: str) -> list[dict[str, Any]]:
    return [
        {
            "company": company, "price_date": _day(first + at),
            "lagged": _day(first + at - 1) if at else None,
            "led": _day(first + at + 1) if at < 2 else None, "number": first, "place": at + 1,
            "symbol": symbol,
        }
        for first in range(1, len(XYZ) - 1)
        for at, symbol in enumerate(["CURRENT_ROW", "T2", "T3"])
    ]  # fmt: skip


def _spikes(company: str, found: list[tuple[int, bool]]) -> list[dict[str, Any]]:
    return [
        {"company": company, "match_number": number, "rows_in_match": rows, "up_spike": spike}
        for number, (rows, spike) in enumerate(found, 1)
    ]


SNOWFLAKE = [
    Example("edges (Snowflake)", "snowflake", HISTORY, EDGES, [*_edges("ABCD"), *_edges("XYZ")]),
    Example(
        "spikes (Snowflake)",
        "snowflake",
        HISTORY,
        SPIKES,
        [
            *_spikes("ABCD", [(3, False), (3, True), (3, False), (4, True)]),
            *_spikes("XYZ", [(3, False), (4, True)]),
        ],
    ),
]
