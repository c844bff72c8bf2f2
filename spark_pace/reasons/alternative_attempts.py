"""Finds how far candidates of a disjunction of sequences come: each alternative is a pattern by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spark_pace.core.match.candidates import Ranges
from spark_pace.core.match.first import walk
from spark_pace.reasons.attempts import Attempt, Origin
from spark_pace.reasons.failure_reasons import Failure
from spark_pace.reasons.selections import Opened
from spark_pace.reasons.stretch import Stretch


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
