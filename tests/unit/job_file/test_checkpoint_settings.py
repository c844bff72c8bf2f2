"""The settings of a batch's plan: all that a result rests on, and exactly as they were."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from spark_pace.core.expr.canonical_text import from_stored, to_stored
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.rule import EventSchema
from spark_pace.job_file import (
    DeltaSource,
    Events,
    FilesSource,
    JobSpec,
    KafkaSource,
    Parallelism,
    as_planned,
    planned_settings,
    read_job,
)
from tests.support.expression_cases import compiled
from tests.support.expression_texts import texts

RULES = """
rules:
  - {name: pairs, pattern: {sequence: [{a: x > 0}, {b: x > 1}]}, within: 1 min}
"""
EVENTS = (
    'schema: "t TIMESTAMP, k STRING, x BIGINT", event_time: t, delay: 8 s, ordering: sources, '
    "source_column: k, idle_after: 1 min, expected_sources: [north], "
    "heartbeat: k = 'beat' and x > 1.5, tie_break: [x], "
    "text: {regex: ['(?P<t>.*)', '(?P<t>.*) x'], unmatched: ignore}, timestamp_format: ['%b %d'], year: 2024"
)
OTHER_EVENTS = (
    'schema: "t TIMESTAMP, k STRING, x BIGINT, y DOUBLE", event_time: t, delay: 20 s, '
    "ordering: sources, source_column: k, expected_sources: [south], tie_break: [k]"
)
KAFKA = "kind: kafka, servers: here:9092, topics: [events], format: json"
JOB = """
name: job
source: {SOURCE}
events: {EVENTS}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
"""
FILES = "kind: files, path: in, format:"
SOURCES = {
    "files": (f"{FILES} json", f"{FILES} csv"),
    "lines": (f"{FILES} text", f"{FILES} json"),
    "kafka": (f"{KAFKA}, columns: {{k: key}}", f"{KAFKA}, columns: {{k: headers.k}}"),
    "aborted transactions": (f"{KAFKA}, options: {{kafka.isolation.level: read_uncommitted}}", KAFKA),
}


def read(folder: Path, source: str, events: str) -> JobSpec:
    (folder / "rules.yaml").write_text(RULES)
    (folder / "job.yaml").write_text(JOB.replace("SOURCE", source).replace("EVENTS", events))
    return read_job(folder / "job.yaml")


@pytest.mark.parametrize("kind", SOURCES)
def test_a_job_with_the_settings_of_a_plan_is_the_job_that_planned(tmp_path: Path, kind: str) -> None:
    planned = read(tmp_path, SOURCES[kind][0], EVENTS)
    now = read(tmp_path, SOURCES[kind][1], OTHER_EVENTS)
    kept = json.loads(json.dumps(planned_settings(planned)))
    assert as_planned(now, kept) == planned
    assert planned_settings(planned) == kept != planned_settings(now)


def test_whatever_a_job_file_says_is_part_of_a_plan_or_known_not_to_be() -> None:
    """A new setting must be put into one of these: a batch's result rests on it, or it does not."""
    known = [
        *("fields", "tie_break", "delay_us", "idle_after_us"),  # of the plan
        *("expected_sources", "heartbeat", "format", "columns", "side_tables", "form"),
        *("event_time", "time_unit", "by_source", "before", "deduplicate_on"),  # fixed by the checkpoint
        *("source_column", "slots", "buckets", "topics"),
        *("rules", "paused", "sink_path", "checkpoint_path", "path", "servers"),  # of rules and places
        *("max_files_per_trigger", "max_offsets_per_trigger", "admission"),  # of the offsets
        *("starting_offsets", "from_version", "trigger_us", "finish", "clock"),
        *("name", "lanes", "latency_bound_us", "spark", "options", "operators"),  # of the work
        *("on_bad_record", "max_bad_records_per_file", "on_operator_error", "operator_timeout_us"),
        *("path", "rules_refresh_us"),  # of the job file
        *("source", "events", "schema", "order", "metrics", "page", "alerts", "parallelism"),  # parts
    ]
    kinds = (JobSpec, Parallelism, Events, OrderSpec, EventSchema, FilesSource, KafkaSource, DeltaSource)
    assert {field.name for kind in kinds for field in fields(kind)} == set(known)


def test_a_batch_planned_before_the_level_was_kept_reads_what_it_read(tmp_path: Path) -> None:
    spec = read(tmp_path, KAFKA, EVENTS)
    kept = {key: value for key, value in planned_settings(spec).items() if key != "isolation"}
    again = as_planned(spec, kept)
    assert isinstance(again.source, KafkaSource) and isinstance(spec.source, KafkaSource)
    assert again.source.options == {"kafka.isolation.level": "read_uncommitted"}
    assert spec.source.options == {"kafka.isolation.level": "read_committed"}


@pytest.mark.parametrize("text", texts())
def test_an_expression_is_kept_exactly(text: str) -> None:
    expr = compiled(text)
    assert from_stored(json.loads(json.dumps(to_stored(expr)))) == expr


def test_a_change_that_no_result_rests_on_is_no_other_plan(tmp_path: Path) -> None:
    spec = read(tmp_path, SOURCES["files"][0], EVENTS)
    events = replace(spec.events, on_bad_record="fail", operator_timeout_us=1)
    others = replace(spec, name="other", parallelism=Parallelism(lanes=7), finish=True, events=events)
    assert planned_settings(others) == planned_settings(spec)
