"""What the lines of programs do."""

PUSH, HOLDS, NOT, IS_NULL, TO_DOUBLE, ABS, NEGATE = range(7)
AND, OR, COMPARE, ADD, SUBTRACT, MULTIPLY, DIVIDE = range(7, 14)  # of two values
OF_DOUBLES = 16  # added where the values are DOUBLEs
