"""Rules in the core, in this process: their plans, and what batches cost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.rows import processor, require
from spark_pace.core.local_run import LocalRun, LocalStep, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import load_rules


def rules_of(schema: str, event_time: str, rules: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of texts such as ``{name: r, pattern: …}``."""
    events = f'events: {{schema: "{schema}", {event_time}}}'
    lines = "".join(f"  - {rule}\n" for rule in rules)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.yaml"
        path.write_text(f"{events}\nrules:\n{lines}", encoding="utf-8")
        return load_rules(path)


def plan_of(schema: str, event_time: str, rules: Iterable[str]) -> Plan:
    """The plan of rules of such texts."""
    return build_plan(rules_of(schema, event_time, rules), order=OrderSpec())


def records(time_us: np.ndarray[tuple[int], np.dtype[np.int64]], first: int, **columns: object) -> pa.Table:
    """Records of one source, from offset `first`, with these event times in `time` and these attributes."""
    time = pa.array(time_us)
    return pa.table({
        "@time": time,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(len(time), np.int32), ["events"]),
        "@offset": np.arange(first, first + len(time)),
        "time": time.view(pa.timestamp("us")),
        **columns,
    })  # fmt: skip


def timed_batches(
    plan: Plan, batches: Iterable[pa.Table], clock: Callable[[Callable[[], object]], float] = processor
) -> tuple[list[float], LocalStep]:
    """What each batch costs, from its records to its numbered matches, and the last batch's output.

    Raises:
        SystemExit: the matches of all batches are not those of one batch of all events.
    """
    local, steps, seconds = LocalRun(plan), [], []
    kept = list(batches)
    for batch in kept:
        seconds.append(clock(lambda batch=batch: steps.append(local.step(batch))))  # type: ignore[misc]
    last = steps[-1]
    steps.append(local.step(None, finish=True))
    found = pa.concat_tables([step.matches for step in steps])
    expected = run(plan, [pa.concat_tables(kept).unify_dictionaries().combine_chunks()]).matches
    if len(plan.rules) > 1:
        found = found.sort_by([("rule", "ascending"), ("out_seq", "ascending")])
    require(
        found.combine_chunks().equals(expected.combine_chunks()),
        f"{plan.rules[0].rule.name} — batches must give the matches of one batch; gave others",
    )
    return seconds, last
