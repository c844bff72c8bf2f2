"""The positions of the Pairs benchmark: what a strategy holds, when that changes, and its orders.

Sources: Mendes 2013, section 7.3.3 (positioning, order placement, risk management) and procedure 4.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]
WANTED = {"above": "second", "below": "first"}  # by the crossing of a band, which security to hold
LOT = 10  # shares


def place(state: Fields | None, now: Fields) -> tuple[Fields, list[Fields]]:
    """What a strategy does at the end of a period: a fold over its indicators.

    Args:
        state: which security it `holds` (None: neither) and how many `shares`, the `cash`, and the ratio at
            which it `entered`; None: this is its first period.
        now: the indicators, `last1` and `last2`, the prices of the last trades, and the parameters.

    Returns:
        The state from now on, and the orders: what is sold, then what is bought.
    """
    state = state or {"holds": None, "shares": 0, "cash": now["funds"], "entered": None}
    wanted = WANTED.get(now["crossing"], state["holds"])
    if wanted == state["holds"] and _drifts_apart(state, now):
        wanted = None
    return (state, []) if wanted == state["holds"] else _moved(state, wanted, now)


def _drifts_apart(state: Fields, now: Fields) -> bool:
    """Tell whether the position must be left, to lose no more."""
    if state["holds"] == "second":
        return bool(now["ratio"] >= (1 + now["stop_loss"]) * state["entered"])
    return state["holds"] == "first" and bool(now["ratio"] <= (1 - now["stop_loss"]) * state["entered"])


def _moved(state: Fields, to: str | None, now: Fields) -> tuple[Fields, list[Fields]]:
    """Sell what is held and buy what is wanted, each at the price of its last trade."""
    securities = {"first": (now["symbol1"], now["last1"]), "second": (now["symbol2"], now["last2"])}
    cash, shares, orders = state["cash"], 0, []
    if state["holds"] is not None:
        symbol, price = securities[state["holds"]]
        orders.append({"type": "SELL", "symbol": symbol, "price": price, "size": state["shares"]})
        cash += state["shares"] * price
    if to is not None:
        symbol, price = securities[to]
        shares = cash // (LOT * price) * LOT
        orders.append({"type": "BUY", "symbol": symbol, "price": price, "size": shares})
        cash -= shares * price
    return {"holds": to, "shares": shares, "cash": cash, "entered": now["ratio"]}, orders
