"""Well-known examples of MATCH_RECOGNIZE, with the rows that their documents show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Example:
    """A query over one table, in a dialect, and the rows of its result."""

    name: str
    dialect: str
    table: pa.Table
    query: str
    rows: list[dict[str, Any]]


def days(first: date, prices: list[int]) -> list[date]:
    return [first + timedelta(days=number) for number in range(len(prices))]


ACME = [12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22]
APRIL = date(2011, 4, 1)
TICKER = pa.table({"SYMBOL": ["ACME"] * 20, "tstamp": days(APRIL, ACME), "price": pa.array(ACME, pa.int32())})
V_SHAPE = """
SELECT * FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY tstamp
  MEASURES STRT.tstamp AS start_tstamp,
           LAST(DOWN.tstamp) AS bottom_tstamp,
           LAST(UP.tstamp) AS end_tstamp
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO LAST UP
  PATTERN (STRT DOWN+ UP+)
  DEFINE DOWN AS DOWN.price < PREV(DOWN.price),
         UP AS UP.price > PREV(UP.price)
) MR
ORDER BY symbol, start_tstamp
"""
V_SHAPE_OF_ALL = """
SELECT symbol, tstamp, start_tstamp, final_bottom, running_end, match_num, var_match, price
FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY tstamp
  MEASURES STRT.tstamp AS start_tstamp,
           FINAL LAST(DOWN.tstamp) AS final_bottom,
           LAST(UP.tstamp) AS running_end,
           MATCH_NUMBER() AS match_num,
           CLASSIFIER() AS var_match
  ALL ROWS PER MATCH
  AFTER MATCH SKIP TO LAST UP
  PATTERN (STRT DOWN+ UP+)
  DEFINE DOWN AS DOWN.price < PREV(DOWN.price),
         UP AS UP.price > PREV(UP.price)
) MR
ORDER BY symbol, match_num, tstamp
LIMIT 6
"""


def april(day: int) -> date:
    return date(2011, 4, day)


def _of_all(day: int, end: int | None, variable: str, price: int) -> dict[str, Any]:
    return {
        "symbol": "ACME", "tstamp": april(day), "start_tstamp": april(5), "final_bottom": april(6),
        "running_end": end and april(end), "match_num": 1, "var_match": variable, "price": price,
    }  # fmt: skip


ORDERS = [
    ("cust_1", 11, 100), ("cust_1", 12, 200), ("cust_2", 13, 8), ("cust_1", 14, 100), ("cust_2", 15, 4),
    ("cust_1", 16, 50), ("cust_1", 17, 100), ("cust_2", 18, 6),
]  # fmt: skip
FALL_AND_RISE = """
SELECT "customer_id", starting_price, bottom_price, final_price
FROM orders MATCH_RECOGNIZE (
  PARTITION BY "customer_id"
  ORDER BY order_date
  MEASURES
    START.price AS starting_price,
    LAST(DOWN.price) AS bottom_price,
    LAST(UP.price) AS final_price
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (START DOWN+ UP+)
  DEFINE
    DOWN AS price < PREV(price),
    UP AS price > PREV(price)
) ORDER BY "customer_id"
"""

RISES = [120, 100, 90, 95, 120, 130, 125]
# C looks at another variable, and U is a union
PAST_THE_START = """
SELECT * FROM orders MATCH_RECOGNIZE(
     ORDER BY order_date
     MEASURES
              A.price AS starting_price,
              LAST(B.price) AS bottom_price,
              LAST(U.price) AS top_price
     ONE ROW PER MATCH
     AFTER MATCH SKIP PAST LAST ROW
     PATTERN (A B+ C+ D+)
     SUBSET U = (C, D)
     DEFINE
              B AS price < PREV(price),
              C AS price > PREV(price) AND price <= A.price,
              D AS price > PREV(price)
     )
"""

ABCD = [50, 36, 39, 42, 30, 47, 71, 80, 75, 63]
XYZ = [89, 24, 37, 63, 65, 56, 50, 54, 30, 32]
HISTORY = pa.table(
    {
        "company": ["ABCD"] * 10 + ["XYZ"] * 10,
        "price_date": 2 * days(date(2020, 10, 1), ABCD),
        "price": pa.array(ABCD + XYZ, pa.int32()),
    }
)
STOCKS = """
SELECT * FROM stock_price_history
  MATCH_RECOGNIZE(
    PARTITION BY company
    ORDER BY price_date
    MEASURES
      MATCH_NUMBER() AS match_number,
      FIRST(price_date) AS start_date,
      LAST(price_date) AS end_date,
      COUNT(*) AS rows_in_sequence,
      COUNT(row_with_price_decrease.*) AS num_decreases,
      COUNT(row_with_price_increase.*) AS num_increases
    ONE ROW PER MATCH
    AFTER MATCH SKIP TO LAST row_with_price_increase
    PATTERN(row_before_decrease row_with_price_decrease+ row_with_price_increase+)
    DEFINE
      row_with_price_decrease AS price < LAG(price),
      row_with_price_increase AS price > LAG(price)
  )
ORDER BY company, match_number
"""


def _stock(company: str, number: int, days_: tuple[int, int], rows: int, counts: tuple[int, int]) -> Any:
    first, last = (date(2020, 10, day) for day in days_)
    return {
        "company": company, "match_number": number, "start_date": first, "end_date": last,
        "rows_in_sequence": rows, "num_decreases": counts[0], "num_increases": counts[1],
    }  # fmt: skip


TEN = datetime(2011, 4, 1, 10)


def ticks(prices: list[int]) -> pa.Table:
    times = [TEN + timedelta(seconds=number) for number in range(len(prices))]
    return pa.table(
        {
            "symbol": ["ACME"] * len(prices),
            "rowtime": pa.array(times, pa.timestamp("us", "UTC")),
            "price": pa.array(prices, pa.int64()),
        }
    )


PRICE_DROP = """
SELECT *
FROM Ticker
    MATCH_RECOGNIZE (
        PARTITION BY symbol
        ORDER BY rowtime
        MEASURES
            START_ROW.rowtime AS start_tstamp,
            LAST(PRICE_DOWN.rowtime) AS bottom_tstamp,
            LAST(PRICE_UP.rowtime) AS end_tstamp
        ONE ROW PER MATCH
        AFTER MATCH SKIP TO LAST PRICE_UP
        PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
        DEFINE
            PRICE_DOWN AS
                (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
                    PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
            PRICE_UP AS
                PRICE_UP.price > LAST(PRICE_DOWN.price, 1)
    ) MR
"""
AVERAGE = """
SELECT *
FROM Ticker
    MATCH_RECOGNIZE (
        PARTITION BY symbol
        ORDER BY rowtime
        MEASURES
            FIRST(A.rowtime) AS start_tstamp,
            LAST(A.rowtime) AS end_tstamp,
            AVG(A.price) AS avgPrice
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A+ B)
        DEFINE
            A AS AVG(A.price) < 15
    ) MR
ORDER BY start_tstamp
"""
WITHIN = """
SELECT *
FROM Ticker
    MATCH_RECOGNIZE(
        PARTITION BY symbol
        ORDER BY rowtime
        MEASURES
            C.rowtime AS dropTime,
            A.price - C.price AS dropDiff
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A B* C) WITHIN INTERVAL '1' HOUR
        DEFINE
            B AS B.price > A.price - 10,
            C AS C.price < A.price - 10
    )
"""


def _at(second: int) -> datetime:
    return (TEN + timedelta(seconds=second)).replace(
        tzinfo=datetime.fromisoformat("2011-01-01T00:00+00:00").tzinfo
    )


def _hours() -> pa.Table:
    """A drop by more than ten within the hour, and the same again with two hours between."""
    minutes, prices = [0, 20, 40, 300, 320, 440], [20, 17, 9, 20, 17, 9]
    times = [TEN + timedelta(minutes=minute) for minute in minutes]
    table = ticks(prices)
    return table.set_column(1, "rowtime", pa.array(times, pa.timestamp("us", "UTC")))


EXAMPLES = [
    Example(
        "V shapes (Oracle)",
        "oracle",
        TICKER,
        V_SHAPE,
        [
            {"SYMBOL": "ACME", "start_tstamp": april(a), "bottom_tstamp": april(b), "end_tstamp": april(c)}
            for a, b, c in ((5, 6, 10), (10, 12, 13), (14, 16, 18))
        ],
    ),
    Example(
        "the first V shape, all rows (Oracle)",
        "oracle",
        TICKER,
        V_SHAPE_OF_ALL,
        [
            _of_all(5, None, "STRT", 25),
            _of_all(6, None, "DOWN", 12),
            _of_all(7, 7, "UP", 15),
            _of_all(8, 8, "UP", 20),
            _of_all(9, 9, "UP", 24),
            _of_all(10, 10, "UP", 25),
        ],
    ),
    Example(
        "orders that fall and rise (Trino)",
        "trino",
        pa.table(
            {
                "customer_id": [one for one, _, _ in ORDERS],
                "order_date": [date(2020, 5, day) for _, day, _ in ORDERS],
                "price": pa.array([price for _, _, price in ORDERS], pa.int64()),
            }
        ),
        FALL_AND_RISE,
        [
            {"customer_id": "cust_1", "starting_price": 200, "bottom_price": 50, "final_price": 100},
            {"customer_id": "cust_2", "starting_price": 8, "bottom_price": 4, "final_price": 6},
        ],
    ),
    Example(
        "a fall, and a rise past its start (Trino, over other rows)",
        "trino",
        pa.table({"order_date": days(date(2020, 5, 1), RISES), "price": pa.array(RISES, pa.int64())}),
        PAST_THE_START,
        [{"starting_price": 120, "bottom_price": 90, "top_price": 130}],
    ),
    Example(
        "stocks with counts (Snowflake)",
        "snowflake",
        HISTORY,
        STOCKS,
        [
            _stock("ABCD", 1, (1, 4), 4, (1, 2)),
            _stock("ABCD", 2, (4, 8), 5, (1, 3)),
            _stock("XYZ", 1, (1, 5), 5, (1, 3)),
            _stock("XYZ", 2, (5, 8), 4, (2, 1)),
            _stock("XYZ", 3, (8, 10), 3, (1, 1)),
        ],
    ),
    Example(
        "a drop of the price (Flink)",
        "flink",
        ticks([12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19]),
        PRICE_DROP,
        [{"symbol": "ACME", "start_tstamp": _at(4), "bottom_tstamp": _at(7), "end_tstamp": _at(8)}],
    ),
    Example(
        "as long as the average is low (Flink)",
        "flink",
        ticks([12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30]),
        AVERAGE,
        [
            {"symbol": "ACME", "start_tstamp": _at(0), "end_tstamp": _at(3), "avgPrice": 14.5},
            {"symbol": "ACME", "start_tstamp": _at(5), "end_tstamp": _at(10), "avgPrice": 13.5},
        ],
    ),
    Example(
        "a drop within an hour (Flink)",
        "flink",
        _hours(),
        WITHIN,
        [{"symbol": "ACME", "dropTime": _at(40 * 60), "dropDiff": 11}],
    ),
]
