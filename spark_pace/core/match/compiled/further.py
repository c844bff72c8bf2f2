"""Groups as they grow: whether the next event joins one, by what it has so far."""

from __future__ import annotations

from spark_pace.core.match.compiled.aggregates import begun, ended, grown
from spark_pace.core.match.compiled.arguments import Further, Placement
from spark_pace.core.match.compiled.interpreter import first_that_holds
from spark_pace.machine_code.kernel import part


@part
def group_begun(further: Further, gap: int, row: int) -> None:
    """Begin the group of a gap with the event of a row."""
    bounds, number = further.programs.aggregate_bounds, further.numbers[gap]
    for one in range(bounds[number], bounds[number + 1]):
        begun(further.programs, one, 0)
    further.taken[len(further.numbers)] = row
    _add(further, gap, row)


@part
def joins(further: Further, gap: int, row: int) -> bool:
    """Tell whether the event of a row may join the group that was begun last; if so, it does."""
    further.programs.rows[0] = row
    if first_that_holds(further.programs, Placement(gap, 0, further.taken, 0), 1) != 0:
        return False
    _add(further, gap, row)
    return True


@part
def _add(further: Further, gap: int, row: int) -> None:
    """Add an event to the group."""
    programs, number = further.programs, further.numbers[gap]
    for one in range(programs.aggregate_bounds[number], programs.aggregate_bounds[number + 1]):
        grown(programs, one, 0, row)
        ended(programs, one, 0)
    further.taken[len(further.numbers) + 1] = row
