"""Jobs of random graphs of rules whose events join a table that changes, and the oracle's rows for them.

A file is a batch. The table is changed behind a batch, so what the events of a batch join follows from the
batch's number, whatever stops the job meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from spark_pace import read_table
from spark_pace.core.expr import Aggregate, Column, Previous
from spark_pace.core.plan.lower_rules import handing_on, over_input
from spark_pace.core.plan.plan import panes_of
from spark_pace.core.plan.rule import Rule
from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec
from tests.oracle.levels import evaluate_levels
from tests.oracle.stream import Event
from tests.support.both_places import Kept
from tests.support.graph_strategies import graphs
from tests.support.loaded_rules import ATTRIBUTES
from tests.support.results import Row, difference, from_core, from_oracle
from tests.support.streams import SECOND, dense

AT_ONCE = 45  # graphs that are drawn from one seed
DELAY_S = 2
KEYS = ("u", "v", "w")
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in ATTRIBUTES.items())
RULES = f"""
events:
  schema: "{SCHEMA}"
  event_time: time
  tie_break: [id]
  lookup: {{t: {{path: t.csv, on: k, schema: "y BIGINT", refresh: 1 us}}}}
rules:
  - {{name: all, pattern: {{sequence: [a: "true"]}}}}
"""
JOB = f"""
name: graphs
source: {{kind: files, format: json, path: in, max_files_per_trigger: 1}}
events: {{delay: {DELAY_S} s}}
rules: [rules.yaml]
sink: {{kind: delta, path: out}}
checkpoint: checkpoint
trigger: available_now
finish: true
operators: [tests.support.operators, tests.support.folds]
parallelism: {{slots: SLOTS, buckets: 4}}
spark: {{spark.master: "local[2]"}}
"""

Graph = list[Rule]
Batches = tuple[tuple[Event, ...], ...]
Joined = tuple[dict[str, int | None], ...]


@dataclass(frozen=True)
class GraphJob:
    """A job of several graphs.

    Attributes:
        spec: of the job. It finishes its input.
        joined: for each batch what the table holds, y by k.
        expected: the oracle's rows of each rule.
    """

    spec: JobSpec
    joined: Joined
    expected: dict[str, list[Row]]

    def change(self, batch: BatchReport | None = None) -> None:
        """Let the table hold what the batch behind this one joins; None: the first."""
        place = 0 if batch is None else min(batch.batch_id + 1, len(self.joined) - 1)
        (side,) = self.spec.events.schema.side_tables
        hidden = Path(f"{side.path}.tmp")
        rows = [f"{key},{'' if y is None else y}" for key, y in self.joined[place].items()]
        hidden.write_text("\n".join(["k,y", *rows]) + "\n")
        os.replace(hidden, side.path)

    def differences(self) -> Iterator[str]:
        """What is not as the oracle says, in the tables of the job when it has ended."""
        matches = read_table(self.spec.sink_path, "matches").sort_by("out_seq")
        for rule in self.spec.rules:
            apart = difference(self.expected[rule.name], from_core(rule, matches))
            if apart:
                yield f"{rule.name}:\n{apart}"
        for name in ("late", "quarantine"):
            if rows := read_table(self.spec.sink_path, name).to_pylist():
                yield f"{name}: {rows}"
        yield from self._joined_otherwise()

    def _joined_otherwise(self) -> Iterator[str]:
        """Batches whose versions of the table are not alike where what it held is, or the other way round."""
        told = read_table(self.spec.sink_path, "metrics").sort_by("batch_id")["lookups"].to_pylist()
        held = [*self.joined, self.joined[-1]]  # the end of the input may be a batch of its own
        by_content: dict[tuple[Any, ...], set[str]] = {}
        for content, versions in zip(held, told, strict=False):
            by_content.setdefault(tuple(content.items()), set()).add(dict(versions)["t"])
        alike = all(len(versions) == 1 for versions in by_content.values())
        apart = len(set[str]().union(*by_content.values())) == len(by_content)
        if not alike or not apart or not len(self.joined) <= len(told) <= len(held):
            yield f"metrics: {told} for {held}"


def drawn_graphs(start: int) -> Iterator[Graph]:
    """Graphs without end; the same seed, the same graphs.

    What a seed draws depends on the modules that are loaded too, for Hypothesis takes constants from them. Of
    those that it draws from one seed some are equal, and those that follow each other are often alike.
    """
    for further in count(start * 1_000):
        drawn = drawn_at_once(further)
        Random(further).shuffle(drawn)
        yield from drawn


def drawn_at_once(start: int) -> list[Graph]:
    drawn: list[Graph] = []

    @seed(start)
    @settings(
        max_examples=AT_ONCE,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs())
    def draw(graph: Graph) -> None:
        if graph not in drawn:
            drawn.append(graph)

    draw()
    return drawn


def make_graph_job(
    folder: Path, drawn: Iterator[Graph], chance: Random, sizes: tuple[int, int], kept: Kept | None = None
) -> GraphJob:
    """A job of some of the graphs, which it takes from those drawn, with all its files.

    Rules over rules find something in each graph, rules that keep panes and rules that fold do in one.

    Args:
        folder: a new one for the job.
        drawn: graphs.
        chance: decides what the files and the table hold.
        sizes: how many files there are, and how many events.
        kept: where it keeps its tables and its checkpoint; None: in its folder.
    """
    (folder / "in").mkdir(parents=True)
    (folder / "rules.yaml").write_text(RULES)
    (folder / "job.yaml").write_text(JOB.replace("SLOTS", str(chance.choice([1, 2, 3]))))
    batches, joined = arriving(chance, *sizes), changing(chance, sizes[0])
    spec = (kept or Kept(folder)).for_job(folder / "job.yaml")
    events = [
        replace(event, row=event.row | looked_up(event, held))
        for batch, held in zip(batches, joined, strict=True)
        for event in batch
    ]
    rules, expected = chosen(drawn, spec, events)
    for number, batch in enumerate(batches):
        (folder / "in" / file_name(number)).write_text("".join(map(line_of, batch)))
    job = GraphJob(replace(spec, rules=rules), joined, expected)
    job.change()
    return job


def arriving(chance: Random, files: int, size: int) -> Batches:
    """The events of each file: near each other, out of order by no more than the delay."""
    events = sorted(dense(chance, size), key=lambda event: event.time + chance.randint(0, DELAY_S) * SECOND)
    cuts = [0, *sorted(chance.sample(range(1, size), files - 1)), size]
    return tuple(
        tuple(
            replace(event, source=file_name(number), offset=row)
            for row, event in enumerate(events[first:last])
        )
        for number, (first, last) in enumerate(pairwise(cuts))
    )


def changing(chance: Random, files: int) -> Joined:
    """What the table holds for each batch: mostly something else than for the one before."""
    held: list[dict[str, int | None]] = []
    for _ in range(files):
        rows = {key: chance.choice([0, 1, 2, None]) for key in chance.sample(KEYS, chance.randint(1, 3))}
        held.append(rows if not held or chance.random() < 0.7 else held[-1])
    return tuple(held)


def looked_up(event: Event, held: dict[str, int | None]) -> dict[str, Any]:
    key = event.row["k"]
    return {"t": True if key in held else None, "t.y": held.get(key)}


def chosen(
    drawn: Iterator[Graph], spec: JobSpec, events: Sequence[Event]
) -> tuple[tuple[Rule, ...], dict[str, list[Row]]]:
    """The rules of some graphs, with what they find."""
    rules: tuple[Rule, ...] = ()
    expected: dict[str, list[Row]] = {}
    lacking: list[Callable[[Rule], object]] = [panes_of, lambda rule: rule.fold]
    number = 0
    while lacking:
        graph = with_lookup(named(next(drawn), f"g{number}_".__add__))
        of_graph = over_input(graph, spec.events.schema)
        found = evaluate_levels(of_graph, events)
        finding = [rule for rule in of_graph if found[rule.name]]
        here = [kind for kind in lacking if any(map(kind, finding))]
        if here and any(rule.reads for rule in finding):
            lacking = [kind for kind in lacking if kind not in here]
            number += 1
            rules += of_graph
            expected |= {rule.name: from_oracle(rule, found[rule.name]) for rule in of_graph}
    return rules, expected


def named(rules: Graph, rename: Callable[[str], str]) -> Graph:
    """The rules under other names, which none of them mentions but in `from`."""

    def of(rule: Rule, reader: str) -> Rule:
        return replace(
            rule, name=handing_on(reader, rule.schema).name if rule.hands_on else rename(rule.name)
        )

    return rebuilt(rules, of)


def rebuilt(rules: Iterable[Rule], changed: Callable[[Rule, str], Rule]) -> Graph:
    """The rules with those that they read, each as `changed` makes it, which is told who reads it."""
    known: dict[str, Rule] = {}

    def of(rule: Rule, reader: str) -> Rule:
        if rule.name not in known:
            new = changed(rule, reader)
            known[rule.name] = replace(new, reads=tuple(of(one, new.name) for one in rule.reads))
        return known[rule.name]

    return [of(rule, "") for rule in rules]


def with_lookup(rules: Iterable[Rule]) -> Graph:
    """The rules with `t.y` in place of `y` where they alone read events of the input, but for their keys."""
    return rebuilt(rules, lambda rule, reader: rule if rule.reads or rule.hands_on else joined_y(rule))


def joined_y(part: Any) -> Any:
    """A part of a rule with `t.y` in place of `y`."""
    if isinstance(part, tuple):
        return tuple(map(joined_y, part))
    if isinstance(part, Column | Previous | Aggregate):
        return replace(part, attribute="t.y") if part.attribute == "y" else part
    if not is_dataclass(part) or isinstance(part, type):
        return part
    kept = ("schema", "reads") if isinstance(part, Rule) else ()
    parts = {field.name: getattr(part, field.name) for field in fields(part) if field.name not in kept}
    return replace(part, **{name: joined_y(value) for name, value in parts.items()})


def file_name(number: int) -> str:
    return f"{number:03d}.json"


def line_of(event: Event) -> str:
    time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=event.time)
    return json.dumps(event.row | {"time": time.isoformat()}) + "\n"
