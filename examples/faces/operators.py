"""The operator of the example: compares each face in a span with the picture of the query that opened it.

A picture is a number: a person, and how this picture of him differs from others. `features` makes of it what
a network would make of pixels; what a comparison costs is how often it is done.

Sources: Mayer, Tariq, Rothermel 2017, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spark_pace.core.operate.python_operator import Span

VARIANTS = 1_000  # pictures of one person
SLOW_ROUNDS = 2_000
_FEATURES = 128
_ALIKE = 0.8  # pictures of one person are above, of two persons below

Floats = npt.NDArray[np.float64]


def recognize(span: Span) -> Iterator[dict[str, object]]:
    """How often, and when, the person of the query was seen."""
    return compared(span, rounds=1)


def recognize_slowly(span: Span) -> Iterator[dict[str, object]]:
    """The same with comparisons that cost two thousand times as much."""
    return compared(span, rounds=SLOW_ROUNDS)


def compared(span: Span, rounds: int) -> Iterator[dict[str, object]]:
    """The row for a span in which the person was seen; `rounds` is what a comparison costs."""
    query = span.opening
    model = features(query["picture"])
    shown = [event for event in span.events.to_pylist() if event["kind"] == "face"]
    faces = [face for face in shown if face["time"] < query["until"]]  # the one that closed the span is not
    seen = [face["time"] for face in faces if matches(model, face["picture"], rounds)]
    if seen:
        yield {"query": query["id"], "faces": len(seen), "first_seen": seen[0], "last_seen": seen[-1]}


def matches(model: Floats, picture: int, rounds: int) -> bool:
    """Whether the picture shows the person of the model."""
    face = features(picture)
    return all(float(model @ face) > _ALIKE for _ in range(rounds))


def features(picture: int) -> Floats:
    """float64[128], of length 1: near to each other for pictures of one person."""
    person, variant = divmod(picture, VARIANTS)
    own = np.random.default_rng(person).normal(size=_FEATURES)
    shown = own + 0.3 * np.random.default_rng(VARIANTS * person + variant).normal(size=_FEATURES)
    return np.asarray(shown / np.linalg.norm(shown))
