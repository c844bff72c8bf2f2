"""The values of an attribute, drawn by chance or counted, as texts of JSON."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["uniform", "normal", "exponential", "choice", "constant", "counter"]
# which generators an attribute may have, by its type
KINDS: dict[str, tuple[Kind, ...]] = {
    "BIGINT": ("uniform", "choice", "constant", "counter"),
    "DOUBLE": ("uniform", "normal", "exponential", "choice", "constant", "counter"),
    "STRING": ("uniform", "choice", "constant", "counter"),
    "BOOLEAN": ("choice", "constant"),
}
_DIGITS = 6  # behind the point


@dataclass(frozen=True)
class Generator:
    """Draws the values of one attribute.

    Attributes:
        attribute: its name; values depend on it and on the seed alone.
        type: its type.
        kind: how values are drawn.
        numbers: least and greatest value (uniform; whole numbers, both possible, but for DOUBLE), mean and
            deviation (normal), mean (exponential), first value and step (counter).
        values: what is chosen from, or the one constant.
        weights: of each of `values`.
    """

    attribute: str
    type: str
    kind: Kind
    numbers: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()
    weights: tuple[float, ...] = ()

    def texts(self, count: int, seed: int) -> list[str]:
        """Draw `count` values, each as JSON has it."""
        random = np.random.default_rng([seed, zlib.crc32(self.attribute.encode())])
        if self.values:
            shares = np.array(self.weights or [1.0] * len(self.values))
            texts = [json.dumps(value, ensure_ascii=False) for value in self.values]
            return [texts[pick] for pick in random.choice(len(texts), count, p=shares / shares.sum())]
        numbers = self._numbers(count, random)
        if self.type == "DOUBLE":
            return [repr(value) for value in np.round(numbers, _DIGITS).tolist()]
        quote = '"' if self.type == "STRING" else ""
        return [f"{quote}{value}{quote}" for value in numbers.tolist()]

    def _numbers(self, count: int, random: np.random.Generator) -> npt.NDArray[Any]:
        if self.kind == "counter":
            first, step = self.numbers
            counts: npt.NDArray[Any] = first + step * np.arange(count)
            return counts if self.type == "DOUBLE" else counts.astype(np.int64)
        if self.kind == "normal":
            mean, deviation = self.numbers
            return random.normal(mean, deviation, count)
        if self.kind == "exponential":
            return random.exponential(self.numbers[0], count)
        least, greatest = self.numbers
        if self.type == "DOUBLE":
            return random.uniform(least, greatest, count)
        return random.integers(int(least), int(greatest), count, endpoint=True)
