"""Aggregates over groups, event by event, into the columns from which programs read them.

They are what `spark_pace.core.match.search.groups` makes of whole columns.
"""

from __future__ import annotations

from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.machine_code.kernel import part

# of the digits of sums
BITS = 32
LOW, HALF = (1 << 32) - 1, 1 << 31
WHOLE = 1 << 53  # a DOUBLE holds each whole number up to it


@part
def begun(programs: Programs, one: int, cell: int) -> None:
    """Begin aggregate `one`: write what it is of no events, 0 or null, to the row `cell` of its column."""
    operation, column = programs.aggregates[one, 1] & (do.OF_DOUBLES - 1), programs.aggregates[one, 3]
    programs.ints[column, cell], programs.nulls[column, cell] = 0, operation != do.COUNT
    programs.counts[one], programs.lows[one], programs.highs[one], programs.sums[one] = 0, 0, 0, 0.0


@part
def grown(programs: Programs, one: int, cell: int, row: int) -> None:
    """Add the event of a row to the aggregate."""
    code, values, column = (
        programs.aggregates[one, 1],
        programs.aggregates[one, 2],
        programs.aggregates[one, 3],
    )
    operation, of_doubles = code & (do.OF_DOUBLES - 1), code >= do.OF_DOUBLES
    is_first, null = programs.counts[one] == 0, operation != do.COUNT and programs.nulls[values, row]
    if operation == do.FIRST or operation == do.LAST:
        programs.counts[one] += 1
        if is_first or operation == do.LAST:
            programs.ints[column, cell], programs.nulls[column, cell] = programs.ints[values, row], null
        return
    if null:
        return
    programs.counts[one] += 1
    if operation == do.COUNT:
        programs.ints[column, cell] = programs.counts[one]
        return
    programs.nulls[column, cell] = False
    if operation == do.SUM or operation == do.AVG:
        if of_doubles:
            programs.sums[one] += programs.doubles[values, row]
        else:
            programs.lows[one] += programs.ints[values, row] & LOW
            programs.highs[one] += programs.ints[values, row] >> BITS
    elif of_doubles:
        value, other = programs.doubles[values, row], programs.doubles[column, cell]
        if is_first or _is_beyond(operation, value, other):
            programs.doubles[column, cell] = value
    elif is_first or (programs.ints[values, row] < programs.ints[column, cell]) == (operation == do.MIN):
        programs.ints[column, cell] = programs.ints[values, row]


@part
def _is_beyond(operation: int, value: float, other: float) -> bool:
    """Tell whether a number is less (or greater) than another one. NaN is greater than every number."""
    if operation == do.MIN:
        return bool(value < other or (value == value and other != other))
    return bool(value > other or (value != value and other == other))


@part
def ended(programs: Programs, one: int, cell: int) -> None:
    """End the aggregate: write the sum, or the mean, of the values so far."""
    code, column, count = programs.aggregates[one, 1], programs.aggregates[one, 3], programs.counts[one]
    operation = code & (do.OF_DOUBLES - 1)
    if count == 0 or not (operation == do.SUM or operation == do.AVG):
        return
    if code == do.SUM:
        write_whole(programs, column, cell, programs.lows[one], programs.highs[one])
        return
    total = programs.sums[one]
    if code == do.AVG:
        total = nearest_double(programs.lows[one], programs.highs[one])
    programs.doubles[column, cell] = total / count if operation == do.AVG else total


@part
def write_whole(programs: Programs, column: int, cell: int, low: int, high: int) -> None:
    """Write low + high * 2 ** 32 as a BIGINT; null if it is none."""
    high += low >> BITS
    programs.ints[column, cell] = (high << BITS) | (low & LOW)
    programs.nulls[column, cell] = not -HALF <= high < HALF


@part
def nearest_double(low: int, high: int) -> float:
    """The DOUBLE that is nearest to low + high * 2 ** 32."""
    high, low = high + (low >> BITS), low & LOW
    if -WHOLE <= high <= WHOLE:
        return high * float(1 << BITS) + low  # rounded once, here
    return ((high << 1) | (low != 0)) * float(HALF)  # the last bit says that there is more below
