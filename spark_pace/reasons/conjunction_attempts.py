"""Finds how far candidates of conjunctions and of disjunctions of sequences come.

The events of a conjunction may follow the initiator in any order; each alternative is a pattern by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spark_pace.core.columns import Ints, has_bit
from spark_pace.core.match.candidates import Ranges
from spark_pace.core.match.first import walk
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.search import Search
from spark_pace.reasons.attempts import MOST_STEPS, Attempt, Origin, Seeking
from spark_pace.reasons.failure_reasons import Failure
from spark_pace.reasons.selections import Opened
from spark_pace.reasons.stretch import Stretch

FEWEST_STEPS = 20  # steps of each search, however many there are: more than a pattern has components


@dataclass
class SeekingAnyOrder(Seeking):
    """A search that takes the components in a given order, wherever their events are in the stream.

    Attributes:
        order: the components' numbers in the pattern, in that order.
        given: the rows of the first of them: the initiator, the event, and `last` if that is set.
    """

    order: tuple[int, ...] = ()
    given: tuple[int, ...] = ()

    def _range(self, rows: list[int]) -> tuple[int, int]:
        """The range of rows for the next event: behind the initiator, or the given row alone."""
        if len(rows) < len(self.given):
            return self.given[len(rows)], self.given[len(rows)] + 1
        return rows[0] + 1, self.stretch.stream.rows if self.last is None else self.last + 1

    def _within_reach(self, search: Search, rows: list[int]) -> Ints:
        members = super()._within_reach(search, rows)
        return members[[row not in rows for row in members.tolist()]]

    def _everything(self) -> Search:
        return _arranged(self.stretch.search, self.order)

    def _none_came(self, rows: list[int], names: list[str], unused: str) -> Failure:
        stretch, component, name = self.stretch, self.order[len(rows)], names[-1]
        first = stretch.member(rows[0])
        other = "other " if has_bit(stretch.stream.mask[rows], component).any() else ""
        if self.last is not None:
            last = stretch.member(self.last)
            text = f"no {other}event{unused} from {first} to {last} can be {name}"
            return Failure("missing", text, name, by=(first, last))
        text = f"no {other}{name}{unused} came after {first}{' in the span' if stretch.span else ''}"
        if self.origin.waits:
            text = f"waits for {'another ' if other else ''}{name}"
        return Failure("missing", text, name, by=(first,), waits=self.origin.waits)


def in_any_order(
    stretch: Stretch, search: Search, origin: Origin, last: int | None = None
) -> Iterator[SeekingAnyOrder]:
    """Yield a search for each way to assign components to the initiator, the event and the row `last`.

    Args:
        stretch: the events that candidates are made of.
        search: the search of the stretch, or a search without the events that are used up.
        origin: the initiator and the event.
        last: the row at which candidates must end; None: any.
    """
    assert isinstance(search, AnyOrder)
    rows = tuple(dict.fromkeys([origin.start, origin.event, *(() if last is None else (last,))]))
    ways = _ways(search, rows)
    for roles in ways:
        order = search.order_from(roles)
        steps = max(FEWEST_STEPS, MOST_STEPS // len(ways))
        yield SeekingAnyOrder(
            stretch, _arranged(search, order), origin, roles[-1], last, steps, order=order, given=rows
        )


def _ways(search: AnyOrder, rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Each way to assign different components to the rows, as components in the order of the rows."""
    ways: list[tuple[int, ...]] = [()]
    for row in rows:
        own = [role for role in range(search.steps) if has_bit(search.stream.mask[row], role)]
        ways = [(*roles, role) for roles in ways for role in own if role not in roles]
    return ways


def _arranged(search: Search, order: tuple[int, ...]) -> Search:
    assert isinstance(search, AnyOrder)
    return search.arranged(order)


def parts_with(stretch: Stretch, event: int) -> list[Stretch]:
    """The alternatives of which the event can be; of another pattern the stretch itself."""
    parts = [part for part in stretch.alternatives if part.stream.mask[event]]
    return parts if stretch.alternatives else [stretch]


def without_first(stretch: Stretch, opened: Opened, event: int) -> Iterator[tuple[int, Attempt]]:
    """That no event of the last selection begins an alternative of the event; with the selection's index."""
    here = opened.at(event)
    at = here if len(here) else opened.before(event)
    for index in at[-1:].tolist():
        for part in parts_with(stretch, event) if stretch.alternatives else ():
            name = part.pattern.components[0].name
            text = f"no {name} before it begins its alternative in the selection"
            yield index, Attempt(part.search, [], event, Failure("order", text, name))


def beaten(stretch: Stretch, origin: Origin) -> Attempt | None:
    """The whole walk of an alternative, of which another one may have been complete first; else None."""
    if not stretch.is_alternative:
        return None
    ranges = Ranges(
        *(np.array([row]) for row in (origin.start, origin.start, stretch.window_end(origin.start)))
    )
    whole = [rows for rows in walk(stretch.search, ranges)[1].tolist() if origin.event in rows]
    return Attempt(stretch.search, whole[0], None, None) if whole else None
