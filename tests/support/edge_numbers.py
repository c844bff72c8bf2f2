"""Whole numbers at which arithmetic goes wrong: near powers of 2 and 10, and near products of these."""

from __future__ import annotations

from random import Random


def edge_numbers(most: int, chance: Random, products: int = 300) -> list[int]:
    """Such numbers from -`most` to `most`, each with its opposite, in an order of chance."""
    powers = [base**power for base in (2, 10) for power in range(130)]
    found = {0, most, most - 1, most // 2, most // 2 + 1}
    found |= {power + step for power in powers for step in (-1, 0, 1)}
    found |= {power // 2 + step for power in powers for step in (-1, 0, 1)}
    found |= {
        chance.choice(powers) * chance.choice(powers) // chance.choice(powers) + chance.choice((-1, 0, 1))
        for _ in range(products)
    }
    found |= {chance.randrange(1, 10 ** chance.randrange(1, 40)) for _ in range(products // 3)}
    kept = sorted(number for number in found if 0 <= number <= most)
    return chance.sample([sign * number for number in kept for sign in (1, -1)], 2 * len(kept))
