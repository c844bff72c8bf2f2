"""Runs programs on rows of one level, some at a time; `spark_pace.core.match.search.programs` writes them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Placement, Programs
from spark_pace.core.tables import LEAST, Bools, Ints
from spark_pace.machine_code.kernel import part

Doubles = npt.NDArray[np.float64]


@part
def _calculate(code: int, values: tuple[Ints, Ints], nulls: tuple[Bools, Bools], count: int) -> None:
    """Put sums, differences or products of BIGINTs in place of the first ones."""
    one, other = values
    null, other_null = nulls
    for place in range(count):
        left, right = one[place], other[place]
        of_left, of_right = (
            np.uint64(left),
            np.uint64(right),
        )  # these wrap around; signed ones need not
        if code == do.ADD:
            result = np.int64(of_left + of_right)
            overflows = ((left ^ result) & (right ^ result)) < 0
        elif code == do.SUBTRACT:
            result = np.int64(of_left - of_right)
            overflows = ((left ^ right) & (left ^ result)) < 0
        else:
            result, overflows = np.int64(of_left * of_right), False
            if left == -1:
                overflows = right == LEAST
            elif not (-(1 << 31) <= left < 1 << 31 and -(1 << 31) <= right < 1 << 31):
                overflows = left != 0 and result // left != right
        one[place] = result
        null[place] = null[place] or other_null[place] or overflows


@part
def _calculate_doubles(
    code: int, values: tuple[Doubles, Doubles], nulls: tuple[Bools, Bools], count: int
) -> None:
    """Put sums, differences, products or quotients of DOUBLEs in place of the first ones."""
    one, other = values
    null, other_null = nulls
    for place in range(count):
        null[place] = null[place] or other_null[place]
    if code == do.ADD:
        for place in range(count):
            one[place] += other[place]
    elif code == do.SUBTRACT:
        for place in range(count):
            one[place] -= other[place]
    elif code == do.MULTIPLY:
        for place in range(count):
            one[place] *= other[place]
    else:
        for place in range(count):
            if other[place] == 0.0:
                null[place] = True
            else:
                one[place] /= other[place]


@part
def _compare(accepts: int, values: tuple[Ints, Ints], nulls: tuple[Bools, Bools], count: int) -> None:
    """Put what a comparison says of whole numbers in place of the first ones."""
    one, other = values
    null, other_null = nulls
    for place in range(count):
        order = 1 + (one[place] > other[place]) - (one[place] < other[place])
        one[place] = (accepts >> order) & 1
        null[place] = null[place] or other_null[place]


@part
def _compare_doubles(
    accepts: int, values: tuple[Doubles, Doubles], nulls: tuple[Bools, Bools], results: Ints, count: int
) -> None:
    """Write what a comparison says of DOUBLEs. NaN equals NaN and is greater than every number."""
    one, other = values
    null, other_null = nulls
    for place in range(count):
        left, right = one[place], other[place]
        greater = left > right or (left != left and right == right)
        less = left < right or (right != right and left == left)
        results[place] = (accepts >> (1 + greater - less)) & 1
        null[place] = null[place] or other_null[place]


@part
def _connect(code: int, values: tuple[Ints, Ints], nulls: tuple[Bools, Bools], count: int) -> None:
    """Put what ``and`` or ``or`` makes of conditions in place of the first ones."""
    one, other = values
    null, other_null = nulls
    decides = 1 if code == do.OR else 0  # one value decides, whatever the other one is
    for place in range(count):
        by_one, by_other = one[place] == decides, other[place] == decides
        decided = (not null[place] and by_one) or (not other_null[place] and by_other)
        one[place] = decides if decided else 1 - decides
        null[place] = not decided and (null[place] or other_null[place])


@part
def _turn(code: int, ints: Ints, doubles: Doubles, nulls: Bools, count: int) -> None:
    """Put what an operation of one value makes of values in their place."""
    for place in range(count):
        if code == do.NOT:
            ints[place] = 1 - ints[place]
        elif code == do.IS_NULL:
            ints[place], nulls[place] = nulls[place], False
        elif code == do.TO_DOUBLE:
            doubles[place] = ints[place]
        elif code == do.ABS + do.OF_DOUBLES:
            doubles[place] = abs(doubles[place])
        elif code == do.NEGATE + do.OF_DOUBLES:
            doubles[place] = -doubles[place]
        else:
            nulls[place] = nulls[place] or ints[place] == LEAST
            if not nulls[place] and (code == do.NEGATE or ints[place] < 0):
                ints[place] = -ints[place]


@part
def _push(programs: Programs, line: int, row: int, top: int, count: int) -> None:
    """Put the values of a column on the stack: of one row, or of each of the rows at hand if it is -1."""
    column, of_doubles = programs.lines[line, 2], programs.lines[line, 0] >= do.OF_DOUBLES
    if row >= 0:
        for place in range(count):
            programs.null_stack[top, place] = programs.nulls[column, row]
            if of_doubles:
                programs.double_stack[top, place] = programs.doubles[column, row]
            else:
                programs.int_stack[top, place] = programs.ints[column, row]
        return
    for place in range(count):
        programs.null_stack[top, place] = programs.nulls[column, programs.rows[place]]
        if of_doubles:
            programs.double_stack[top, place] = programs.doubles[column, programs.rows[place]]
        else:
            programs.int_stack[top, place] = programs.ints[column, programs.rows[place]]


@part
def _operate(programs: Programs, line: int, at: int, count: int) -> None:
    """Do what a line says with the values on the stack, which begin at `at`."""
    code, accepts = programs.lines[line, 0], programs.lines[line, 3]
    operation, ints, doubles = code & (do.OF_DOUBLES - 1), programs.int_stack, programs.double_stack
    nulls = programs.null_stack
    if operation < do.AND:
        _turn(code, ints[at], doubles[at], nulls[at], count)
        return
    both_nulls = (nulls[at], nulls[at + 1])
    if code == do.COMPARE:
        _compare(accepts, (ints[at], ints[at + 1]), both_nulls, count)
    elif operation == do.COMPARE:
        _compare_doubles(accepts, (doubles[at], doubles[at + 1]), both_nulls, ints[at], count)
    elif operation < do.COMPARE:
        _connect(code, (ints[at], ints[at + 1]), both_nulls, count)
    elif code < do.OF_DOUBLES:
        _calculate(code, (ints[at], ints[at + 1]), both_nulls, count)
    else:
        _calculate_doubles(operation, (doubles[at], doubles[at + 1]), both_nulls, count)


@part
def is_active(programs: Programs, condition: int, own: int, mask: int) -> bool:
    """Tell whether a condition is tested where `own` is placed: it names it, and others that are placed."""
    names = programs.names[condition]
    return bool((names >> own) & 1 and not names & ~(mask | 1 << own))


@part
def is_tested(programs: Programs, own: int, mask: int) -> bool:
    """Tell whether some condition is tested where `own` is placed."""
    tested = False
    for condition in range(len(programs.names)):
        tested |= is_active(programs, condition, own, mask)
    return tested


@part
def first_that_holds(programs: Programs, placement: Placement, count: int) -> int:
    """The place of the first one among rows of an anchor for which its conditions hold; `count` for none.

    Args:
        programs: the programs, and the rows: the first `count` ones of `Programs.rows`.
        placement: the anchor, or set, and what is placed.
        count: how many rows there are.
    """
    held = programs.held
    for place in range(count):
        held[place] = True
    for condition in range(len(programs.names)):
        if is_active(programs, condition, placement.own, placement.mask):
            _test(programs, condition, placement, count)
    for place in range(count):
        if held[place]:
            return place
    return count


@part
def holds(programs: Programs, condition: int, taken: Ints) -> bool:
    """Tell whether a condition holds where the row of each thing that it names is taken."""
    programs.held[0] = True
    _test(programs, condition, Placement(-1, 0, taken, 0), 1)
    return programs.held[0]  # type: ignore[no-any-return]


@part
def _test(programs: Programs, condition: int, placement: Placement, count: int) -> None:
    """Take back what is said of the rows for which a condition does not hold."""
    top, held = -1, programs.held
    for line in range(programs.bounds[condition], programs.bounds[condition + 1]):
        code, pushed = programs.lines[line, 0], programs.lines[line, 1]
        if pushed >= 0:
            top += 1
            row = -1 if pushed == placement.own else placement.taken[pushed]
            _push(programs, line, row, top, count)
        operation = code & (do.OF_DOUBLES - 1)
        if operation == do.HOLDS:
            for place in range(count):
                held[place] &= programs.int_stack[top, place] != 0 and not programs.null_stack[top, place]
        elif operation != do.PUSH:
            top -= operation >= do.AND
            _operate(programs, line, top, count)
