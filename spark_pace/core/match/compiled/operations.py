"""What the lines of programs do, the aggregates that they read, and which orders comparisons accept."""

PUSH, HOLDS, NOT, IS_NULL, TO_DOUBLE, ABS, NEGATE = range(7)
AND, OR, COMPARE, ADD, SUBTRACT, MULTIPLY, DIVIDE = range(7, 14)  # of two values
COUNT, FIRST, LAST, SUM, AVG, MIN, MAX = range(7)  # of the events of a group
OF_DOUBLES = 16  # added where the values are DOUBLEs
LESS, EQUAL, GREATER = 1, 2, 4  # of the first number to the second one; a comparison accepts a sum of them
