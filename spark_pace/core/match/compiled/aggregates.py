"""Aggregates over groups, event by event, into the columns from which programs read them.

They are what `spark_pace.core.match.search.groups` makes of whole columns.
"""

from __future__ import annotations

from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.machine_code.kernel import part


@part
def begun(programs: Programs, one: int, cell: int) -> None:
    """Begin aggregate `one`: write what it is of no events, 0 or null, to the row `cell` of its column."""
    operation, column = programs.aggregates[one, 1] & (do.OF_DOUBLES - 1), programs.aggregates[one, 3]
    programs.ints[column, cell], programs.nulls[column, cell] = 0, operation != do.COUNT


@part
def grown(programs: Programs, one: int, cell: int, row: int, count: int) -> int:
    """Add the event of a row to the aggregate; return how many events have counted, `count` before it."""
    code, values, column = (
        programs.aggregates[one, 1],
        programs.aggregates[one, 2],
        programs.aggregates[one, 3],
    )
    operation, of_doubles = code & (do.OF_DOUBLES - 1), code >= do.OF_DOUBLES
    if operation == do.COUNT:
        programs.ints[column, cell] = count + 1
        return count + 1
    null = programs.nulls[values, row]
    if operation == do.FIRST or operation == do.LAST:
        if count == 0 or operation == do.LAST:
            programs.ints[column, cell], programs.nulls[column, cell] = programs.ints[values, row], null
        return count + 1
    if null:
        return count
    programs.nulls[column, cell] = False
    if operation == do.SUM or operation == do.AVG:
        if of_doubles:
            programs.doubles[column, cell] += programs.doubles[values, row]
        else:
            programs.ints[column, cell] += programs.ints[values, row]
    elif of_doubles:
        value, other = programs.doubles[values, row], programs.doubles[column, cell]
        if count == 0 or _is_beyond(operation, value, other):
            programs.doubles[column, cell] = value
    elif count == 0 or (programs.ints[values, row] < programs.ints[column, cell]) == (operation == do.MIN):
        programs.ints[column, cell] = programs.ints[values, row]
    return count + 1


@part
def _is_beyond(operation: int, value: float, other: float) -> bool:
    """Tell whether a number is less (or greater) than another one. NaN is greater than every number."""
    if operation == do.MIN:
        return bool(value < other or (value == value and other != other))
    return bool(value > other or (value != value and other == other))


@part
def ended(programs: Programs, one: int, cell: int, count: int) -> None:
    """End the aggregate: if it is a mean, divide the sum by the number of values, `count`."""
    column = programs.aggregates[one, 3]
    if count == 0 or programs.aggregates[one, 1] & (do.OF_DOUBLES - 1) != do.AVG:
        return
    if programs.aggregates[one, 1] >= do.OF_DOUBLES:
        programs.doubles[column, cell] /= count
    else:
        programs.doubles[column, cell] = programs.ints[column, cell] / count
