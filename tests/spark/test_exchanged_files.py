"""Each file of a checkpoint in the place of another: refused in one line, or without any consequence.

The other is that of an earlier batch, of the other slot, of the checkpoint as it was two batches earlier, or
of another job. What Hadoop keeps a checksum of loses it, or has a fitting one.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_pace.errors import SparkPaceError
from tests.support.exchanged_files import (
    BEGUN,
    DONE,
    EARLIER,
    WRITTEN,
    Exchange,
    Played,
    crc_of,
    exchanges,
)

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Played]:
    """A job, and another one of the same rules."""
    one, other = (
        Played(tmp_path_factory.mktemp("one"), 11, 0),
        Played(tmp_path_factory.mktemp("two"), 12, 100),
    )
    return one.play(), other.play()


@pytest.fixture(scope="module")
def expected(played: tuple[Played, Played], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the job finds that nobody disturbs."""
    one, _ = played
    here = tmp_path_factory.mktemp("undisturbed") / "job"
    shutil.copytree(one.folder / DONE, here)
    return one.ended(here, DONE)


OFFSETS = r"offsets/\d — must be as Spark wrote it; got another content"
STATE = r"state of slot \d — must be that of slot \d behind batch \d of checkpoint \S+; got that of slot \d"
OTHER = r"got another content than its checksum is of, or the file of another batch or job"
NAMES = r"manifest\.jsonl:1 — must be the name of a file with the checksum of the names up to it"
LEVELS = r"levels/\d — must be as this program wrote it; got no file, or another content than \d\.json has"
COPY = r"lookup/owners-\w+\.arrow — must be as this program wrote it; got another content"
CHUNK = r"waiting/\w+ — must be as this program wrote it; got another content than its checksum is of"
ANY = ("earlier", "batch", "job", "slot", "batch, both slots")
OF_3, OF_4 = (DONE, BEGUN, WRITTEN), (BEGUN, WRITTEN)  # stages in which these batches have begun


@dataclass(frozen=True)
class Refusal:
    """What is refused, and how. Whatever no `Refusal` is for has no consequence."""

    name: str
    number: int | None
    message: str
    by: tuple[str, ...] = ANY
    stages: tuple[str, ...] = OF_3


REFUSED = (
    Refusal(
        "layout.json", None, r"layout\.json — must be as old as its batches; got number 1, and", ("earlier",)
    ),
    Refusal("layout.json", None, NAMES, ("job",)),
    Refusal("manifest.jsonl", None, r"manifest\.jsonl — must know of [45] files read; got 2", ("earlier",)),
    Refusal("manifest.jsonl", None, NAMES, ("job",)),
    Refusal("waiting/*", None, CHUNK),
    Refusal("offsets/N", 3, OFFSETS),
    Refusal("levels/N", 4, LEVELS),
    Refusal("sequence/N.json", 3, OTHER, ("batch",)),
    Refusal("sequence/N.json", 4, OTHER, ("batch",)),
    Refusal("sequence/N.json", 4, OFFSETS, ("job",)),
    Refusal("state/0/0/N.changelog", 4, STATE),
    Refusal("state/0/1/N.changelog", 4, STATE),
    Refusal("lookup/N.json", 3, OTHER, ("batch",)),
    Refusal("offsets/N", 4, OFFSETS, stages=OF_4),
    Refusal("claims/N", 4, OFFSETS, stages=OF_4),
    Refusal("lookup/N.json", 4, OTHER, ("batch",), OF_4),
    Refusal("lookup/N.json", 4, COPY.replace("another content", "no such file"), ("job",), OF_4),
    Refusal("lookup/*.arrow", 4, COPY, stages=OF_4),
    Refusal("levels/N", 5, LEVELS, stages=(WRITTEN,)),
    Refusal("sequence/N.json", 5, OTHER, ("batch",), (WRITTEN,)),
    Refusal("sequence/N.json", 5, OFFSETS, ("job",), (WRITTEN,)),
    Refusal("state/0/0/N.changelog", 5, STATE, stages=(WRITTEN,)),
    Refusal("state/0/1/N.changelog", 5, STATE, stages=(WRITTEN,)),
)
NUMBERED = ("claims/N", "levels/N", "lookup/N.json", "lookup/*.arrow", "offsets/N", "sequence/N.json")
STATES = ("state/0/0/N.changelog", "state/0/1/N.changelog")


@pytest.mark.parametrize("stage", OF_3)
@pytest.mark.parametrize(
    "names", [*((name,) for name in NUMBERED), STATES, ("others",)], ids=lambda names: names[0]
)
def test_each_file_is_taken_for_no_other(
    played: tuple[Played, Played],
    expected: dict[str, list[str]],
    tmp_path: Path,
    names: tuple[str, ...],
    stage: str,
) -> None:
    one, other = played
    checkpoint = one.folder / stage / "checkpoint"
    found = exchanges(checkpoint, one.folder / EARLIER / "checkpoint", other.folder / stage / "checkpoint")
    listed = (*NUMBERED, *STATES)
    chosen = [one for one in found if (one.name in names if names != ("others",) else one.name not in listed)]
    wrong = []
    for exchange in chosen:
        for fitting in (False, True):
            if fitting and not crc_of(exchange.files[0][0]).is_file():
                continue
            here = tmp_path / "job"
            shutil.copytree(one.folder / stage, here)
            exchange.make(checkpoint, here / "checkpoint", fitting=fitting)
            outcome = outcome_of(one, here, stage, expected)
            if not re.search(expected_outcome(exchange, stage), outcome):
                wrong.append(f"{exchange.name} {exchange.number} by {exchange.by}: {outcome}")
            shutil.rmtree(here)
    assert wrong == []
    assert chosen


def outcome_of(played: Played, here: Path, stage: str, expected: dict[str, list[str]]) -> str:
    try:
        return "no consequence" if played.ended(here, stage) == expected else "other rows"
    except SparkPaceError as error:
        return str(error)


def expected_outcome(exchange: Exchange, stage: str) -> str:
    """A pattern: of the one line by which an exchange is refused, or of what has no consequence."""
    for one in REFUSED:
        if (
            (one.name, one.number) == (exchange.name, exchange.number)
            and exchange.by in one.by
            and stage in one.stages
        ):
            return one.message + r".*\. Restore the whole checkpoint[^\n]*$"
    return "^no consequence$"
