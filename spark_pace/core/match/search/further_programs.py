"""Conditions of groups on what they have so far, as programs for compiled searches."""

from __future__ import annotations

import numpy as np

from spark_pace.core.match.compiled.arguments import Further
from spark_pace.core.match.search.programs import FIRST, LAST, Condition, of_ends, programs_of
from spark_pace.core.match.search.search import Search


def further_of(search: Search) -> Further:
    """The programs of a sequence, by the gap in which each group stands."""
    gaps, components = search.between.shape.gaps, search.pattern.components
    numbers, conditions = np.full(len(gaps), -1), list[Condition]()
    for place, gap in enumerate(gaps):
        component = None if gap.group is None else components[gap.group]
        if component is not None and component.further is not None:
            numbers[place] = len(conditions)
            places: dict[str | None, int] = {component.name: place, FIRST: len(gaps), LAST: len(gaps) + 1}
            cell: dict[str | None, int] = {component.name: len(gaps) + 1}
            conditions.append(Condition(of_ends(component.further), 1 << place, places, cell))
    programs = programs_of(conditions, search.stream)
    return Further(programs, numbers, np.zeros(len(gaps) + 3, np.int64))
