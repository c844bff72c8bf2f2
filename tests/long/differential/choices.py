"""What every choice of `spark_pace.ways` says while a pair runs, and which ways were taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from spark_pace import ways

NEVER, ALWAYS, CHANGING = "never", "always", "changing"
# choices of tasks and readers, where there is no rule; tests/spark/test_stages.py,
# tests/unit/spark/stages/test_handover.py, tests/property/test_plain_json.py and
# tests/unit/core/test_frames.py force both ways. Whether machine code is made is forced by
# tests/unit/machine_code/test_machine_code.py and tests/property/test_source_of_kernels.py
ELSEWHERE = {
    *("is_handed_over", "is_compressed", "is_read_by_columns", "is_loaded", "is_worth_compiling"),
    "is_made_now",
}
CHOICES = tuple(
    name
    for name, made in vars(ways).items()
    if inspect.isfunction(made) and name.startswith("is_") and name not in ELSEWHERE
)
# for each size, what has the shortest streams go round the loop more than once
SIZES: dict[str, tuple[int, ...]] = {
    "PIECE_ROWS": (3, 7),
    "USING_UP_ROWS": (1, 4),
    "PART_ROWS": (1, 5),
    "FIRST_OPENINGS": (1,),
    "FIRST_UNRESOLVED": (2, 100),
    "FIRST_ROWS": (1,),
    "FIRST_HORIZON_ROWS": (1, 3),
    "BLOCK_BITS": (0, 1),
}
WAYS = (*(f"{name}: {answer}" for name in CHOICES for answer in ("no", "yes")), *SIZES)

# choices that others are asked behind
OFTEN = {
    "is_much_carried": (None, NEVER, ALWAYS, ALWAYS, ALWAYS, CHANGING),
}

Settings = dict[str, str | int]  # what is not named keeps its own answer, or size


def drawn(random: Random) -> Settings:
    """Every choice and every size for itself; now and then all keep their own."""
    if random.random() < 0.05:
        return {}
    settings: Settings = {}
    for name in CHOICES:
        answer = random.choice(OFTEN.get(name, (None, NEVER, ALWAYS, CHANGING)))
        if answer is not None:
            settings[name] = answer
    for name, sizes in SIZES.items():
        if random.random() < 0.6:
            settings[name] = random.choice(sizes)
    return settings


@contextmanager
def taken_with(settings: Settings, seed: int = 0) -> Iterator[set[str]]:
    """With these settings; gives the set of the ways that are taken, which grows until the end."""
    taken: set[str] = set()
    random = Random(seed)
    sizes = {name: settings[name] for name in SIZES if name in settings}

    def size_of(name: str) -> Any:
        """It is looked for here only where the module has no such name."""
        if name not in sizes:
            raise AttributeError(name)
        taken.add(name)
        return sizes[name]

    with pytest.MonkeyPatch.context() as patch:
        for name in CHOICES:
            made = getattr(ways, name)
            patch.setattr(ways, name, _told(name, made, settings.get(name), random, taken))
        for name in sizes:
            patch.delattr(ways, name)
        patch.setattr(ways, "__getattr__", size_of, raising=False)
        yield taken


def _told(
    name: str, own: Callable[..., bool], setting: str | int | None, random: Random, taken: set[str]
) -> Callable[..., bool]:
    """The choice as it is set; it notes what it says."""
    answers: Mapping[str | int | None, Callable[..., bool]] = {
        None: own,
        NEVER: lambda *_: False,
        ALWAYS: lambda *_: True,
        CHANGING: lambda *_: random.random() < 0.5,
    }
    said = answers[setting]

    def choice(*sizes: Any) -> bool:
        answer = bool(said(*sizes))
        taken.add(f"{name}: {'yes' if answer else 'no'}")
        return answer

    return choice
