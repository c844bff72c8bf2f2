"""Golden cases: a rule as a user writes it, events as `a1 b3@2.5 c4=7,1`, and the matches they must give.

A file of `tests/golden` holds `about`, `rule` (a rule file's rule) and `cases`. A case has

- `events`: in the order of the input. `a1` is an event of type ``a`` with the id ``a1``, one second after the
  event before it; ``@2.5`` puts it 2.5 s after 1970, ``=7,1`` gives it ``x = 7`` and ``y = 1`` (``-`` is
  null).
- `matches`: in the order of the output. ``(a1,b1)`` is a production set, ``2:(a1,b1)`` also gives the
  selection's id, ``2:()`` is a row of a Python operator. Several contexts are a mapping from context to
  matches; ``close window`` stands for *each, zero* with ``close: window``.
- `rule`: what differs from the file's rule in this case (null takes a key away).
- `note`: why the result is what it is.
- `fields`, `opened_at`, `matched_at`, `seq`, `key`: lists beside the matches, where the case is about them.
  Times are in seconds.

In `tests/golden/why` a case has in place of the matches

- `asked`: what `why` says of events, by their ids: texts with which lines of the answer end (`says`; alone
  without that key), texts that stand nowhere in it (`not`), and all its `candidates`.
- `contexts`: those in which it says so, if these are not the rule's alone.

in `tests/golden/explain`

- `explained`: texts that stand in the lines of `explain`, by the first word of these, perhaps with the key
  behind it (with ``=`` the text is the whole line); `not`: texts that stand nowhere there.

in `tests/golden/out` and `tests/golden/out_above`

- `out`: for each event that lets matches out, where each is a batch, these or their rules;

and in `tests/golden/meaning`

- `means`: what is read of the rule, part by part, as checkpoints compare it; null for one that it has not.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from spark_pace.core.plan.rule import Rule
from spark_pace.rules import load_rules
from tests.oracle.contexts import Event
from tests.support.results import EPOCH, Row

DIRECTORY = Path(__file__).parents[1] / "golden"
SCHEMA = {"schema": "time TIMESTAMP, id STRING, type STRING, x BIGINT, y BIGINT", "event_time": "time"}
SOURCE = "events.jsonl"
EVENT = re.compile(r"(?P<id>(?P<type>[a-z]+)\d+)(@(?P<at>-?[\d.]+))?(=(?P<values>[-\d,]+))?")
MATCH = re.compile(r"(?:(?P<selection>\d+):)?\((?P<ids>[^)]*)\)")
BESIDE = ("fields", "opened_at", "matched_at", "seq", "key")
TOLD = ("asked", "explained", "not", "means", "out")


@dataclass(frozen=True)
class GoldenCase:
    """One rule, one stream, one result."""

    name: str
    rule: dict[str, Any]
    events: tuple[Event, ...]
    matches: tuple[tuple[int | None, tuple[str, ...]], ...]
    beside: dict[str, list[Any]]
    told: dict[str, Any]

    def write_rules(self, directory: Path) -> Path:
        """The rule as a rule file."""
        path = directory / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump({"events": SCHEMA, "rules": [self.rule]}, sort_keys=False))
        return path

    def write_events(self, directory: Path) -> Path:
        """The events as a file of JSON lines."""
        path = directory / f"{self.name}.jsonl"
        lines = [json.dumps({**event.row, "time": iso(event.time)}) for event in self.events]
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def load_rule(self) -> Rule:
        (rule,) = load_rules({"events": SCHEMA, "rules": [self.rule]})
        return rule

    def expected(self) -> list[dict[str, Any]]:
        """What the case says about each match."""
        rows: list[dict[str, Any]] = []
        for number, (selection, ids) in enumerate(self.matches):
            row: dict[str, Any] = (
                {"events": ids} if selection is None else {"selection_id": selection, "events": ids}
            )
            rows.append(row | {name: values[number] for name, values in self.beside.items()})
        return rows

    def said_of(self, rows: list[Row]) -> list[dict[str, Any]]:
        """The same of a result: only what the case says something about."""
        ids = {event.offset: event.row["id"] for event in self.events}
        told = []
        for row, (selection, _) in zip(rows, [*self.matches, *[(None, ())] * len(rows)], strict=False):
            said: dict[str, Any] = {} if selection is None else {"selection_id": row["selection_id"]}
            said["events"] = tuple(ids[offset] for *_, offset in row["events"])
            told.append(said | {name: beside(row, name) for name in self.beside})
        return told


def beside(row: Row, name: str) -> Any:
    return row[name] / 1e6 if name in ("opened_at", "matched_at") else row[name]


def iso(time: int) -> str:
    return (EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rule_of(keys: str) -> Rule:
    """A rule over the events of golden cases, by its keys as they stand in a rule file between braces."""
    (rule,) = load_rules(yaml.safe_dump({"events": SCHEMA}) + f"rules:\n  - {{name: r, {keys}}}\n")
    return rule


def parse_events(text: str) -> tuple[Event, ...]:
    events: list[Event] = []
    for offset, word in enumerate(text.split()):
        found = EVENT.fullmatch(word)
        assert found, f"{word!r} is no event such as a1, a1@2.5 or a1@2.5=7,1"
        before = events[-1].time + 1_000_000 if events else 0
        time = before if found["at"] is None else round(float(found["at"]) * 1e6)
        values = (
            [None if value == "-" else int(value) for value in found["values"].split(",")]
            if found["values"]
            else []
        )
        x, y = [*values, None, None][:2]
        events.append(
            Event(
                time, SOURCE, offset, {"time": time, "id": found["id"], "type": found["type"], "x": x, "y": y}
            )
        )
    return tuple(events)


def parse_matches(text: str) -> tuple[tuple[int | None, tuple[str, ...]], ...]:
    assert not MATCH.sub("", text).strip(), f"{text!r} is no list of matches such as (a1,b1) 2:(a2,b1)"
    return tuple(
        (
            None if found["selection"] is None else int(found["selection"]),
            tuple(found["ids"].split(",")) if found["ids"] else (),
        )
        for found in MATCH.finditer(text)
    )


def listed(told: str | list[str]) -> list[str]:
    """The texts of which a case has one or several."""
    return [told] if isinstance(told, str) else told


def with_context(rule: dict[str, Any], context: str) -> dict[str, Any]:
    if context == "close window":
        return rule | {"context": "each, zero", "close": "window"}
    return rule | {"context": context}


def cases_of(directory: Path) -> Iterator[GoldenCase]:
    for path in sorted(directory.glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        for number, case in enumerate(content["cases"], 1):
            name = f"{path.stem}-{number}"
            changed = {"name": path.stem} | content["rule"] | case.get("rule", {})
            rule = {key: value for key, value in changed.items() if value is not None}
            events = parse_events(case.get("events", ""))
            extra = {key: case[key] for key in BESIDE if key in case}
            told, matches = {key: case[key] for key in TOLD if key in case}, case.get("matches", "")
            if isinstance(matches, str) and "contexts" not in case:
                yield GoldenCase(name, rule, events, parse_matches(matches), extra, told)
                continue
            for context, found in (matches or dict.fromkeys(case["contexts"])).items():
                full_name = f"{name}-{context.replace(', ', '-').replace(' ', '-')}"
                in_context = with_context(rule, context)
                yield GoldenCase(full_name, in_context, events, parse_matches(found or ""), extra, told)


@functools.cache
def golden_cases(directory: Path = DIRECTORY) -> tuple[GoldenCase, ...]:
    """Every case of every file."""
    return tuple(cases_of(directory))
