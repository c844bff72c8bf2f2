"""The rules of the Pairs benchmark give the answers of its oracle, wherever ticks are cut into batches."""

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from examples.pairs.validation import produced, validate
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.replay import read_all
from spark_pace.job_file import read_job
from tests.support.pairs import SMALL, expected_answers, stop_losses, write_small


@pytest.mark.parametrize("seed", [1, 2])
def test_the_rules_give_the_answers_of_the_oracle(tmp_path: Path, seed: int) -> None:
    rules = read_job(write_small(tmp_path, 1)).rules
    events = read_all(tmp_path / "events", input_schema(rules)).events
    chance = random.Random(seed)
    cuts = sorted({0, events.num_rows, *chance.choices(range(events.num_rows), k=9)})
    run = LocalRun(build_plan(rules, order=OrderSpec()))
    matches = [run.step(events.slice(begin, end - begin)).matches for begin, end in pairwise(cuts)]
    expected = expected_answers()
    found = validate(expected, produced(pa.concat_tables(matches)))
    assert all(one.passed for one in found.values()), found
    assert found["Indicator"].correct > 25 * SMALL.minutes[2]
    assert len(list(stop_losses(expected))) > 3
    assert found["MarketOrder"].correct > 30
