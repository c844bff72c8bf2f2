"""A target of alerts that is down, hangs or answers 500 a third of the time, and what it must have got."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from tests.long.chaos.beside import beside
from tests.long.chaos.check import Tables
from tests.support.alerts import Answer, Server

WELL, DOWN, HANGS, FAILS = "well", "down", "hanging", "answering 500"
WELL_S, ILL_S = (4.0, 12.0), (2.0, 6.0)  # a third of the time it is ill
_KEYS = {
    "matches": ("rule", "out_seq"),
    "late": ("source", "offset"),
    "quarantine": ("kind", "source", "offset", "rule", "key", "selection_id"),
}
_SAME = ("key", "seq", "selection_id")  # of a match and its alert, beside its fields
Alert = dict[str, Any]


_ANSWERS: dict[str, Answer] = {WELL: (200, {}), DOWN: "drop", HANGS: "hang", FAILS: (500, {})}


@dataclass
class Target(Server):
    """A server that is often ill.

    Attributes:
        seed: of the chance.
        got: the alerts that were read, each with what the server was then.
    """

    seed: int = 0
    got: list[tuple[Alert, str]] = field(default_factory=list)
    mode: str = WELL
    _recovers: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)

    def recover(self) -> None:
        """Be well from now on."""
        self._recovers.set()

    def accepted(self) -> int:
        """How many rows it has accepted at least once."""
        with self._changed:
            return len({alert["id"] for alert, mode in self.got if mode == WELL})

    def answer_to(self, alerts: list[Alert]) -> Answer:
        """As it goes."""
        mode = self.mode
        self.got += [(alert, mode) for alert in alerts]
        return _ANSWERS[mode]

    def living(self) -> AbstractContextManager[None]:
        """Be there while a block runs."""
        return beside(self._live, self._end)

    def _end(self) -> None:
        self._over.set()
        self._recovers.set()

    def _live(self) -> None:
        chance = random.Random(self.seed)
        with ExitStack() as stack:
            stack.enter_context(self.running())
            while not self._recovers.wait(chance.uniform(*WELL_S)):
                self.mode = chance.choice((DOWN, HANGS, FAILS))
                if self.mode == DOWN:
                    stack.close()
                self._recovers.wait(chance.uniform(*ILL_S))
                if self.mode == DOWN:
                    stack.enter_context(self.running())
                self.mode = WELL
            self._over.wait()

    def summary(self) -> dict[str, Any]:
        """How many alerts came, and what became of them."""
        ids = [alert["id"] for alert, _ in self.got]
        marked = {alert["id"] for alert, _ in self.got if alert["repeat"]}
        return {
            "alerts_read": dict(Counter(mode for _, mode in self.got)),
            "rows": len(set(ids)),
            "came_again": len(ids) - len(set(ids)),
            "marked_though_first": len(marked - {one for one, count in Counter(ids).items() if count > 1}),
        }


def wrongly_sent(target: Target, tables: Tables) -> Iterator[str]:
    """What the target was not sent as it was promised."""
    # a message that was given up may be read behind its repeat: the order of arrivals says nothing
    first = Counter(alert["id"] for alert, _ in target.got if not alert["repeat"])
    if unmarked := [one for one, count in first.items() if count > 1]:
        yield f"alerts: {len(unmarked)} came again without repeat, the first {unmarked[0]}"
    for table, names in _KEYS.items():
        rows = {_key(row, names): row for row in tables[table].select(list(names)).to_pylist()}
        accepted = {_key(a, names) for a, mode in target.got if mode == WELL and a["table"] == table}
        if missing := sorted(map(str, rows.keys() - accepted)):
            yield f"alerts: {len(missing)} rows of {table} were never accepted, the first {missing[0]}"
        if others := sorted(map(str, accepted - rows.keys())):
            yield f"alerts: {len(others)} are no rows of {table}, the first {others[0]}"
    yield from _disordered("read", [alert for alert, _ in target.got])
    yield from _disordered("accepted", [alert for alert, mode in target.got if mode == WELL])
    yield from _altered(target, tables["matches"])


def _key(row: Alert, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _disordered(what: str, alerts: list[Alert]) -> Iterator[str]:
    """Rules of which the first arrivals are not in order."""
    numbers: dict[str, dict[int, None]] = {}
    for alert in alerts:
        if alert["table"] == "matches":
            numbers.setdefault(alert["rule"], {})[alert["out_seq"]] = None
    for rule, came in numbers.items():
        if list(came) != list(range(len(came))):
            yield f"alerts: the first arrivals of {rule} ({what}) are not in order"


def _altered(target: Target, matches: pa.Table) -> Iterator[str]:
    """The first alert that has other values than its row; times are text in alerts, and left out."""
    rows = {(row["rule"], row["out_seq"]): row for row in matches.drop_columns(["events"]).to_pylist()}
    for alert, _ in target.got:
        row = rows.get((alert["rule"], alert["out_seq"])) if alert["table"] == "matches" else None
        given = {} if row is None else {name: alert[name] for name in _SAME} | alert["fields"]
        if row is not None and any(_differs(row[name], value) for name, value in given.items()):
            yield f"alerts: {alert} is not its row {row}"
            return


def _differs(ours: Any, sent: Any) -> bool:
    return ours != sent and not isinstance(ours, datetime)
