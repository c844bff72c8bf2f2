"""A rule that matches more combinations of events than fit into memory ends its job, and nothing else.

The job bounds the memory of its workers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import RULES, make_job, matches
from tests.support.commands import called, environment, message_of

pytestmark = [pytest.mark.integration, pytest.mark.long]

EVENTS = 30_000  # ten a second, all within the hour
CHEAP = RULES[: RULES.index("  - name: keyed")]
COSTLY = """  - name: costly
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    within: 1 h
    close: window
"""


@pytest.mark.usefixtures("spark")
def test_a_rule_that_needs_too_much_memory_ends_its_job_in_one_line_which_goes_on_without_it(
    tmp_path: Path,
) -> None:
    job = make_job(tmp_path, rules=CHEAP + COSTLY)
    with job.open("a") as file:
        file.write("spark: {spark.executor.pyspark.memory: 2g}\n")
    times = (
        f"2024-01-01T00:{tenth // 600:02d}:{tenth // 10 % 60:02d}.{tenth % 10}" for tenth in range(EVENTS)
    )
    events = [
        {"t": time, "k": "u", "kind": "ab"[number % 2], "x": number % 7} for number, time in enumerate(times)
    ]
    (tmp_path / "in" / "1.json").write_text("\n".join(map(json.dumps, events)))
    answer = called(sys.executable, "jobs/run.py", job, env=environment())
    assert answer.returncode == 1
    line = message_of(answer.stderr.splitlines()[-1])
    assert line.startswith("the query — must run; got ") and "emory" in line
    (tmp_path / "rules.yaml").write_text(CHEAP)
    run_job(read_job(job))
    assert {row["rule"] for row in matches(read_job(job))} == {"pairs"}
