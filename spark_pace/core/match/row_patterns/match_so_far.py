"""The match so far as machine code: the rows taken, aggregates that go with them, conditions that read them.

Sources: `spark_pace.core.summaries.sums` adds by the same digits, and rounds in the same way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spark_pace.core.match.compiled.between import BITS, EXACT, HALF, LOW, write_whole
from spark_pace.core.match.compiled.interpreter import holds
from spark_pace.core.match.row_patterns.compiled import (
    FAILED,
    FULL,
    LABELS,
    NUMBER,
    OPEN,
    SEARCHING,
    TEST,
    WAITING,
    Input,
    Output,
    SoFar,
    is_known,
)
from spark_pace.core.tables import GREATEST, Ints
from spark_pace.machine_code.kernel import part

# what a slot reads: a row near the row at hand, or near one of a set; the name of a row's variable; the row
# of an extreme value; a constant; the number of the match; and aggregates of the numbers of a set
HERE, ROW, NAME, EXTREME, CONSTANT, MATCH, COUNT, SUM, SUM_OF_DOUBLES, MEAN = range(10)
# the columns of `SoFar.slots`: one of these kinds; the set; how many rows are counted off, and whether from
# the first one; how many rows behind that one the row lies; the cell that is written; the first column of
# numbers, and the column that counts them (-1: all rows count); how many digits a sum has, and the place of
# the lowest one; whether columns of infinities, negative ones, and NaNs follow
KIND, SET, BACK, FIRST, SHIFT, CELL, NUMBERS, KNOWN, DIGITS, LOWEST, ODD = range(11)
FARTHEST = 30  # place of a digit: 2 ** 32 to the power of it is far from the ends of what a DOUBLE holds
MOST_DIGITS = 12  # of a sum
NULL_CELL, FIRST_NAME = 0, 1


@part
def begin(so_far: SoFar) -> None:
    """Forget all rows."""
    for one in range(len(so_far.sets)):
        so_far.counts[one] = 0


@part
def joins(
    given: Input, output: Output, so_far: SoFar, partition: int, base: int, row: int, variable: int
) -> int:
    """Add a row to the match so far; `FAILED` if a condition does not hold then, and the row is not added.

    `OPEN` if that is not known, `FULL` if there is no room; else see `hold`.
    """
    if base + row - output.progress[LABELS] == so_far.rows.shape[1]:
        return FULL
    _add(so_far, row, variable)
    return hold(given, output, so_far, partition, base, row, variable, so_far.tests[variable])


@part
def hold(
    given: Input,
    output: Output,
    so_far: SoFar,
    partition: int,
    base: int,
    row: int,
    variable: int,
    first: int,
) -> int:
    """Test the conditions of a row that was added, from one of them on; see `joins`.

    `WAITING`: the next one is computed outside.
    """
    for test in range(first, so_far.tests[variable + 1]):
        for slot in range(so_far.slot_bounds[test], so_far.slot_bounds[test + 1]):
            if not _read(given, output, so_far, partition, base, row, slot):
                return OPEN
        if so_far.outside[test]:
            output.progress[TEST] = test
            return WAITING
        if not holds(so_far.programs, test, so_far.places):
            remove(so_far, variable)
            return FAILED
    return SEARCHING


@part
def give_back(output: Output, so_far: SoFar, first: int, last: int) -> None:
    """Take rows out of the match so far, those with the labels from the first place to the last one."""
    for place in range(first, last):
        remove(so_far, output.labels[place] >> 1)


@part
def remove(so_far: SoFar, variable: int) -> None:
    """Take the last row, one of a variable, out of the match so far."""
    for one in range(len(so_far.sets)):
        so_far.counts[one] -= (so_far.sets[one] >> variable) & 1


@part
def _add(so_far: SoFar, row: int, variable: int) -> None:
    for one in range(len(so_far.sets)):
        if (so_far.sets[one] >> variable) & 1:
            so_far.rows[one, so_far.counts[one]] = row
            so_far.counts[one] += 1
    for one in range(len(so_far.adding)):
        of, kept = so_far.adding[one, 0], so_far.adding[one, 1]
        if (so_far.sets[of] >> variable) & 1:
            count, number = so_far.counts[of], so_far.numbers[one, row]
            before = so_far.running[one, count - 1]
            if not kept:
                so_far.running[one, count] = before + number
            elif number != GREATEST and (before < 0 or number < so_far.numbers[one, before]):
                so_far.running[one, count] = row
            else:
                so_far.running[one, count] = before


@part
def _read(
    given: Input, output: Output, so_far: SoFar, partition: int, base: int, row: int, slot: int
) -> bool:
    """Write where a condition finds the value of a slot; False if a row must be known that may still come."""
    kind, cell = so_far.slots[slot, KIND], so_far.slots[slot, CELL]
    if kind <= NAME:
        found = row if kind == HERE else _row_of(so_far, slot)
        if found < 0:
            so_far.places[slot] = NULL_CELL
        elif kind == NAME:
            so_far.places[slot] = FIRST_NAME + (output.labels[base + found] >> 1)
        else:
            found += so_far.slots[slot, SHIFT]
            if not is_known(given, output, partition, found):
                return False
            inside = given.bounds[partition] <= found < given.bounds[partition + 1]
            so_far.places[slot] = so_far.cells + found if inside else NULL_CELL
    elif kind == EXTREME:
        count = so_far.counts[so_far.slots[slot, SET]]
        found = so_far.running[so_far.slots[slot, NUMBERS], count]
        so_far.places[slot] = so_far.cells + found if found >= 0 else NULL_CELL
    elif kind == MATCH:
        so_far.programs.ints[0, cell] = so_far.matches[partition] + output.progress[NUMBER] + 1
    elif kind >= COUNT:
        _write_aggregate(so_far, slot, kind, cell)
    return True


@part
def _row_of(so_far: SoFar, slot: int) -> int:
    """The row of the match that a slot counts off; -1 if there is none."""
    of, back = so_far.slots[slot, SET], so_far.slots[slot, BACK]
    place = back if so_far.slots[slot, FIRST] else so_far.counts[of] - 1 - back
    return so_far.rows[of, place] if 0 <= place < so_far.counts[of] else -1


@part
def _write_aggregate(so_far: SoFar, slot: int, kind: int, cell: int) -> None:
    """Write what the numbers of a set come to into the cell of a slot."""
    programs, rows, known = so_far.programs, so_far.counts[so_far.slots[slot, SET]], so_far.slots[slot, KNOWN]
    count = so_far.running[known, rows] if known >= 0 else rows
    programs.nulls[0, cell] = kind != COUNT and count == 0
    if kind == COUNT:
        programs.ints[0, cell] = count
    elif count > 0 and kind == SUM:
        first = so_far.slots[slot, NUMBERS]
        high = so_far.running[first + 1, rows] if so_far.slots[slot, DIGITS] > 1 else 0
        write_whole(programs, 0, cell, so_far.running[first, rows], high)
    elif count > 0:
        total = _sum_of_doubles(so_far, slot, rows)
        programs.doubles[0, cell] = total / count if kind == MEAN else total


@part
def _sum_of_doubles(so_far: SoFar, slot: int, rows: int) -> float:
    """A sum as the nearest DOUBLE."""
    first, count = so_far.slots[slot, NUMBERS], so_far.slots[slot, DIGITS]
    if so_far.slots[slot, ODD]:
        positive, negative = (
            so_far.running[first + count, rows] > 0,
            so_far.running[first + count + 1, rows] > 0,
        )
        if so_far.running[first + count + 2, rows] > 0 or (positive and negative):
            return np.nan
        if positive or negative:
            return np.inf if positive else -np.inf
    low = so_far.running[first, rows]
    high = so_far.running[first + 1, rows] if count > 1 else 0
    lowest = so_far.slots[slot, LOWEST]
    if count < 3 and -EXACT <= low <= EXACT and -EXACT <= high <= EXACT:  # it is rounded once, here
        scale, next_scale = so_far.scales[FARTHEST + lowest], so_far.scales[FARTHEST + lowest + 1]
        return low * scale + high * next_scale  # type: ignore[no-any-return]
    negative = _settle(so_far, first, count, rows)
    size = _rounded(so_far.digits, count + 2, lowest, so_far.scales)
    return -size if negative else size


@part
def _settle(so_far: SoFar, first: int, count: int, rows: int) -> bool:
    """Write the digits of a sum without its sign, each from 0 to 2 ** 32 - 1, behind two zeros.

    Returns:
        True if the sum is negative. There is a digit more, for what is carried.
    """
    digits, carry = so_far.digits, 0
    digits[0], digits[1] = 0, 0
    for place in range(count):
        total = so_far.running[first + place, rows] + carry
        digits[2 + place], carry = total & LOW, total >> BITS
    digits[2 + count], negative = carry & LOW, carry < 0
    if negative:
        carry = 1
        for place in range(2, count + 3):
            total = (digits[place] ^ LOW) + carry
            digits[place], carry = total & LOW, total >> BITS
    return negative


@part
def _rounded(digits: Ints, top: int, lowest: int, scales: npt.NDArray[np.float64]) -> float:
    """The number with these digits as the nearest DOUBLE.

    Args:
        digits: int64[], two zeros and the digits, the lowest one first.
        top: where the highest one stands.
        lowest: the place of the lowest one.
        scales: see `SoFar`.
    """
    while top > 2 and digits[top] == 0:
        top -= 1
    first, second, third = digits[top], digits[top - 1], digits[top - 2]
    if first == 0:
        return 0.0
    shift = 0
    while first << shift < HALF:
        shift += 1
    behind = ((second & 1) << BITS) | third  # 33 bits, the highest ones of which belong to the word
    word = (((first << (BITS - 1)) | (second >> 1)) << shift) | (behind >> (BITS + 1 - shift))
    rest = behind & ((1 << (BITS + 1 - shift)) - 1)
    for place in range(2, top - 2):
        rest |= digits[place]
    if rest:
        word |= 1  # so that it is no tie
    return word * scales[FARTHEST + lowest + top - 3] * 2.0 / (1 << shift)  # type: ignore[no-any-return]
