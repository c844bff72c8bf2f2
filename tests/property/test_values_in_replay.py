"""Random values of every type in a replay: matches, late and bad records are those of the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.io.replay import replay_files
from tests.support.random_values import case_of


@pytest.mark.parametrize("cases", [10, pytest.param(30, marks=pytest.mark.long)])
@pytest.mark.parametrize("format", ["json", "parquet"])
def test_a_replay_gives_what_the_oracle_says_of_random_values(
    tmp_path: Path, format: str, cases: int
) -> None:
    for seed in range(cases):
        (tmp_path / str(seed)).mkdir()
        case = case_of(tmp_path / str(seed), format, seed)
        replayed = replay_files(case.spec.rules, Path(case.spec.files.path), **case.spec.events.stream)
        case.check(replayed.result.matches, replayed.result.late, replayed.bad)
