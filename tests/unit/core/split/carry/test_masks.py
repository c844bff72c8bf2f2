"""The bits of a rule's events, taken from the bits of the plan."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.plan.plan import bits_column
from spark_pace.core.split.carry.key_streams import mask_of


@pytest.mark.parametrize("seed", range(30))
def test_each_bit_is_that_of_its_predicate(seed: int) -> None:
    """Predicates beside each other or apart, in one word of 64 bits or on both sides of its end."""
    generator = np.random.default_rng(seed)
    count, rows = int(generator.integers(1, 17)), 50
    words = generator.integers(0, 1 << 64, (3, rows), np.uint64)
    first = int(generator.choice([0, 3, 60, 63, 120]))
    predicates = first + np.arange(count)
    if seed % 2:
        predicates = generator.choice(192, count)
    chosen = generator.random(rows) < (1.0 if seed % 3 else 0.5)
    table = pa.table({bits_column(64 * place)[0]: word for place, word in enumerate(words)})
    bits = list(enumerate(predicates.tolist()))
    expected = [
        sum(
            int(words[predicate // 64, row] >> np.uint64(predicate % 64)) % 2 << place
            for place, predicate in bits
        )
        for row in np.flatnonzero(chosen)
    ]
    assert mask_of(bits, table, chosen).tolist() == expected
