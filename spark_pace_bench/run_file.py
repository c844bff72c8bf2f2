"""Reads run files: gives the runs, one for each variant, or every problem of the file and of its job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_pace.errors import ConfigError
from spark_pace.job_file import JobSpec, KafkaSource, read_job
from spark_pace.rules import document as nodes
from spark_pace.rules.document import Report, Section, TooManyError, as_mapping, nearest, quote
from spark_pace.rules.lengths import read_duration
from spark_pace_bench.event_section import read_events
from spark_pace_bench.phases import read_phases
from spark_pace_bench.spec import Phase, RunSpec

KEYS = ("name", "job", "rules", "copies", "phases", "seed", "events", "files_every", "limit", "variants")
VARIANT_KEYS = ("name", "job", "rules", "copies", "phases", "events")
_REQUIRED = {
    "name": "name: my_run",
    "job": "job: job.yaml",
    "phases": "phases: [{name: steady, seconds: 20, rate: 1000}]",
    "events": "events: {generate: {card: {uniform: [1, 1000]}}}",
}
_FILES_EVERY, _LIMIT = 0.2, 60.0  # seconds
_MOST_COPIES = 1_000
_NAME = re.compile(r"\w[\w %.-]{0,60}")  # a folder is named so
_MOST_EVENTS = 20_000_000


@dataclass(frozen=True)
class _Job:
    """A job and where its file is."""

    path: Path
    spec: JobSpec


def read_run_file(path: str | Path) -> tuple[RunSpec, ...]:
    """The runs of a run file.

    Raises:
        ConfigError: with every problem of the file, or of a job file that it names.
    """
    report = Report()
    runs: list[RunSpec] = []
    with suppress(TooManyError):
        root = as_mapping(nodes.read_document(path, report), report, _REQUIRED["name"])
        if root is not None:
            runs = list(_runs(Path(path), root, report))
    if not report.clean:
        raise ConfigError(report.problems)
    return tuple(runs)


def _runs(path: Path, root: nodes.Mapping, report: Report) -> Iterator[RunSpec]:
    fields = Section(root, report, KEYS)
    variants = list(_variants(fields))
    for key, example in _REQUIRED.items():
        if not (variants and all(key in entries for _, entries in variants)):
            fields.require(key, example)
    name = fields.text("name", _REQUIRED["name"])
    if report.problems or name is None:
        return
    for variant, entries in variants or [("", {})]:
        merged = nodes.Mapping(root.place, {**root.entries, **entries})
        run = _run(path, Section(merged, report, KEYS), (name.text, variant))
        if run is not None:
            yield run
        if report.problems:
            return


def _variants(fields: Section) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name of each variant, and what it says in the place of the file."""
    node, report, example = fields.node("variants"), fields.report, "{name: slow, phases: [...]}"
    if not isinstance(node, nodes.Listing) or not node.items:
        if node is not None:
            must, do = "must be a list of variants", f"Write for example variants: [{example}]."
            report.add(node.place, must, nodes.describe(node), do)
        return
    names: list[str] = []
    for item in node.items:
        variant = as_mapping(item, report, example)
        if variant is None:
            continue
        section = Section(variant, report, VARIANT_KEYS)
        section.require("name", "name: slow")
        name = section.text("name", "name: slow")
        if name is None:
            continue
        if name.text in names or not _NAME.fullmatch(name.text):
            must = "must be a name of its own, of letters, digits, blanks, %, _, . and -"
            report.add(name.place, must, quote(name.text), "Correct the name.")
        names.append(name.text)
        yield name.text, {key: entry for key, entry in variant.entries.items() if key != "name"}


def _run(path: Path, fields: Section, names: tuple[str, str]) -> RunSpec | None:
    """A run; `names` are those of the file and the variant."""
    job = _job(fields, path.parent)
    phases = read_phases(fields)
    seed = fields.whole("seed", 0, 1 << 31)
    if job is None or not phases:
        return None
    rules = _rules(fields, job.spec)
    copies = fields.whole("copies", 1, _MOST_COPIES) or 1
    events = read_events(fields, job.spec, path.parent)
    _require_few(fields, phases)
    every, limit = _seconds(fields, "files_every", _FILES_EVERY), _seconds(fields, "limit", _LIMIT)
    if fields.has("files_every") and isinstance(job.spec.source, KafkaSource):
        fields.refuse(["files_every"], "The job reads a topic, to which records go one by one.")
    if events is None:
        return None
    return RunSpec(
        name=names[0],
        variant=names[1],
        job_file=job.path,
        job=job.spec,
        rules=rules,
        copies=copies,
        phases=phases,
        seed=seed or 0,
        events=events,
        file_seconds=every,
        limit_seconds=limit,
    )


def _seconds(fields: Section, key: str, default: float) -> float:
    node = fields.node(key)
    if node is None:
        return default
    found = read_duration(node, fields.report, "a duration such as 200 ms")
    if found is not None and found < 10_000:
        fields.report.add(node.place, "must be 10 ms or more", nodes.describe(node), "Correct the duration.")
    return (found or 0) / 1e6


def _job(fields: Section, folder: Path) -> _Job | None:
    """The job; what is wrong in its files ends the reading at once."""
    named = fields.text("job", _REQUIRED["job"])
    if named is None:
        return None
    path = folder / named.text
    if not path.is_file():
        do = "Correct the path; it is relative to the run file."
        fields.report.add(named.place, "must name a job file", f"none at {quote(str(path))}", do)
        return None
    spec = read_job(path)
    for must, got, do in _hindrances(spec):
        fields.report.add(named.place, f"must name a job that {must}", got, do)
    return _Job(path, spec)


def _hindrances(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    """Why a job cannot be driven: what must hold, what was found, what to do."""
    source = spec.source
    if spec.events.schema.side_tables:
        yield "joins no tables", "one with events.lookup", "Leave lookup out for the driver."
    if spec.trigger_us == "available_now":
        yield "goes on", "one with trigger: available_now", "Give it a trigger such as 1 s."
    if spec.events.schema.form.time_formats:
        yield "reads times by ISO 8601", "one with timestamp_format", "Leave it out for the driver."
    if source.format not in ("json", "csv"):
        yield "reads JSON or CSV", f"one that reads {source.format}", "Choose another format for the driver."
    if not isinstance(source, KafkaSource):
        return
    if len(source.topics) != 1:
        yield "reads one topic", f"one that reads {len(source.topics)}", "Name one in its source.topics."
    if source.columns:
        got, do = "one that reads columns of the record", "Leave source.columns out for the driver."
        yield "takes all attributes from the value", got, do
    guards = ("kafka.sasl", "kafka.ssl", "kafka.security")
    closed = [key for key in source.options if key.lower().startswith(guards)]
    if closed:
        yield "reads an open broker", f"one with {closed[0]}", "Drive it through a broker without protection."


def _rules(fields: Section, job: JobSpec) -> tuple[str, ...] | None:
    """The names of the rules that run; None: all."""
    if not fields.has("rules"):
        return None
    names = [rule.name for rule in job.rules]
    node = fields.node("rules")
    if isinstance(node, nodes.Scalar):
        count = fields.whole("rules", 1, len(names))
        return tuple(names[:count])
    chosen = fields.texts("rules", "rules: [my_rule]")
    for item in chosen:
        if item.text not in names:
            place, got = item.place, quote(item.text)
            fields.report.add(place, "must be a rule of the job", got, nearest(item.text, names))
    return tuple(item.text for item in chosen)


def _require_few(fields: Section, phases: tuple[Phase, ...]) -> None:
    count = sum(phase.seconds * sum(phase.rate) / 2 for phase in phases)
    if count > _MOST_EVENTS:
        must, do = f"must send at most {_MOST_EVENTS:,} events", "Shorten the phases, or lower their rates."
        fields.report.add(fields.key_place("phases"), must, f"{count:,.0f}", do)
