"""Folds in the streaming query: the core's matches, whatever stops it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.errors import OperatorError, StateError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.spark.jobs import (
    EVENTS,
    FOLDS,
    failing,
    in_core,
    job,
    matches,
    random_events,
    stop_at,
    table,
    write_files,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

OVER_MATCHES = """  - name: doors
    from: [door, whole]
    fold:
      initial: quiet
      moves: [{from: any, when: "x > prev(x, 2)", to: loud}, {from: loud, when: rule = 'whole', to: quiet}]
    emit: {was: state.from, now: state.to, x: x}
  - name: upper
    from: [events, door]
    partition_by: [k]
    fold: tests.spark.jobs:streak
    emit: {label: STRING, number: BIGINT}
"""
CONDITIONS = ("kind = 'a'", "kind = 'b'", "x > 4", "x < prev(x)", "x = prev(x, 2)", "kind <> 'c' and x > 1")
NAMES = ("p", "q", "r", "s")


def stopped_and_resumed(folder: Path, spec: JobSpec, seed: int) -> None:
    """Run the job; its second batch fails first, and later files come when it has ended once."""
    events = random_events(seed, 300)
    write_files(folder, events[:200], 2)
    with pytest.MonkeyPatch.context() as failing, pytest.raises(Exception, match="disk is full"):
        stop_at(failing, "matches", batch_id=1)
        run_job(spec)
    run_job(spec)
    write_files(folder, events[200:], 1, first=2)
    run_job(replace(spec, finish=True))


@pytest.mark.in_parts
def test_a_query_that_fails_and_stops_between_batches_gives_the_cores_matches(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=FOLDS + OVER_MATCHES)
    stopped_and_resumed(tmp_path, spec, 5)
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert found == in_core(spec, whole=True).matches.to_pylist()
    number = Counter(row["rule"] for row in found)
    assert {rule.name: number[rule.name] > 20 for rule in spec.rules} == dict.fromkeys(number, True)
    assert not any(row["carry"] for row in table(spec, "metrics").to_pylist())


def random_folds(seed: int, count: int = 10) -> str:
    """Rules with folds of up to four states."""
    chance = random.Random(seed)
    rules = []
    for number in range(count):
        states = NAMES[: chance.randint(2, 4)]
        targets = [*states[1:], *chance.choices(states, k=chance.randint(1, 3))]
        chance.shuffle(targets)
        moves = []
        for target in targets:
            source = chance.choice(["any", "any", f"[{', '.join(chance.sample(states, 2))}]"])
            when = f', when: "{chance.choice(CONDITIONS)}"' if chance.random() < 0.8 else ""
            emit = ", emit: false" if chance.random() < 0.2 else ""
            moves.append(f"        - {{from: {source}{when}, to: {target}{emit}}}")
        keyed = chance.choice(["", "    partition_by: [k]\n", "    partition_by: [k, x]\n"])
        keyed += "    forget_key_after: 4 s\n" if keyed and chance.random() < 0.4 else ""
        moves.append(f"        - {{from: {states[0]}, when: kind = 'a', to: {states[1]}}}")
        fold = "    fold:\n      initial: p\n      moves:\n" + "\n".join(moves)
        emit = "    emit: {was: state.from, now: state.to, since: state.since, last: x}"
        rules.append(f"  - name: fold{number}\n{keyed}{fold}\n{emit}\n")
    return EVENTS + "".join(rules)


@pytest.mark.long
@pytest.mark.in_parts
def test_random_folds_give_the_cores_matches(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=random_folds(2), slots=3, buckets=4)
    stopped_and_resumed(tmp_path, replace(spec, latency_bound_us=1), 2)  # as long as nothing takes
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert len({row["rule"] for row in found}) > 8 and len(found) > 1_000


def test_a_fold_that_has_changed_is_another_rule(tmp_path: Path) -> None:
    write = random_events(5, 20)
    spec = job(tmp_path, finish=False, rules=FOLDS)
    write_files(tmp_path, write, 1)
    run_job(spec)
    changed = FOLDS.replace("kind = 'a', to: open", "kind = 'c', to: open")
    with pytest.raises(
        StateError, match=r"rule door — must be as the checkpoint knows it; got a changed fold"
    ):
        run_job(job(tmp_path, finish=False, rules=changed))
    newer = FOLDS.replace("jobs:streak_of_table}", "jobs:streak_of_table, version: 2}")
    newer = job(tmp_path, finish=True, rules=newer)
    with pytest.raises(StateError) as caught:
        run_job(newer)
    assert "a changed fold: tests.spark.jobs:streak_of_table version 2, was tests" in str(caught.value)
    run_job(newer, reset_rules=["streaks_of_tables"])
    assert matches(newer)


@pytest.mark.parametrize("name", [pytest.param("streaks", marks=pytest.mark.long), "upper"])
def test_a_function_that_ends_its_process_stops_the_job_which_goes_on_once_it_is_mended(
    tmp_path: Path, name: str
) -> None:
    before, mark, behind = (FOLDS + OVER_MATCHES).partition(f"  - name: {name}\n")
    rules = before + mark + behind.replace("jobs:streak\n", "jobs:deadly_streak\n", 1)
    spec = failing(job(tmp_path, rules=rules), operator_timeout_us=2_000_000)
    bad = tmp_path / "bad"
    bad.touch()
    events = random_events(6, 60)
    events[40]["k"] = str(bad)
    write_files(tmp_path, events, 2)
    with pytest.raises(OperatorError) as caught:
        run_job(spec)
    message = str(caught.value)
    assert message.startswith(
        f'rule {name} key {{"k":"{bad}"}} seq 0 — its fold tests.spark.jobs:deadly_streak'
    )
    assert "the operator's process ended with signal 9 (SIGKILL). No state has changed: mend" in message
    bad.unlink()
    run_job(read_job(tmp_path / "job.yaml"))
    assert matches(spec) == in_core(spec).matches.to_pylist()
