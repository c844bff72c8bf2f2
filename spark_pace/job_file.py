"""Job files: where events come from, where matches go, and how the job runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeGuard, cast

from spark_pace.core.rule import EventSchema, Rule
from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document import Mapping, Scalar, describe, read_document
from spark_pace.rules.durations import read_duration
from spark_pace.rules.fields import Fields, as_mapping
from spark_pace.rules.report import Report, quote
from spark_pace.rules.rule_file import load_rules, read_rules
from spark_pace.rules.schema import SCHEMA_KEYS, read_schema

OnBad = Literal["quarantine", "fail"]
Format = Literal["json", "csv", "parquet"]

_REQUIRED = {
    "name": "name: my_job",
    "source": "source: {kind: files, format: json, path: events}",
    "rules": "rules: [rules.yaml]",
    "sink": "sink: {kind: delta, path: out}",
    "checkpoint": "checkpoint: out/_checkpoint",
}
_JOB_KEYS = (*_REQUIRED, "events", "trigger", "finish", "operators", "parallelism", "spark")
_ONLY_IN_JOBS = set(_JOB_KEYS) - {"events", "rules"}
_EVENT_KEYS = ("delay", "ordering", "on_bad_record", "on_operator_error")
_EVENT_KEYS_LATER = ("source_column", "expected_sources", "idle_after", "heartbeat", "deduplicate_on")
_MOST = 10_000


@dataclass(frozen=True)
class FilesSource:
    """Files in a directory, read in the order of their names."""

    format: Format
    path: str
    max_files_per_trigger: int | None


@dataclass(frozen=True)
class Events:
    """What events look like (as the rules see them too) and how the job treats them."""

    schema: EventSchema
    delay_us: int
    on_bad_record: OnBad
    on_operator_error: OnBad


@dataclass(frozen=True)
class JobSpec:
    """A checked job file. Its paths are absolute."""

    name: str
    source: FilesSource
    events: Events
    rules: tuple[Rule, ...]
    sink_path: str
    checkpoint_path: str
    trigger_us: int | Literal["available_now"]
    finish: bool
    operators: tuple[str, ...]  # modules whose functions `operator:` may name
    slots: int | None  # None: as many as Spark has cores
    buckets: int | None
    lanes: int | Literal["auto"]
    spark: dict[str, str]


def read_job(path: str | Path) -> JobSpec:
    """Read and check a job file together with its rule files.

    Raises:
        ConfigError: with every problem of all these files.
    """
    report = Report()
    root = as_mapping(read_document(path, report), report, _REQUIRED["name"])
    spec = None if root is None else _read_job(Path(path), root, report)
    if spec is None or not report.clean:
        raise ConfigError(report.problems)
    return spec


def check_files(paths: Iterable[str | Path]) -> list[Problem]:
    """Every problem of rule and job files, each file by itself; a job's rule files are checked with it."""
    report = Report()
    for path in paths:
        found = Report()
        document = read_document(path, found)
        if _is_job(document):
            _read_job(Path(path), document, found)
            report.extend(found)
        else:
            read_rules([path], None, report)
    return list(report.problems)


def rules_in(paths: Iterable[str | Path]) -> tuple[Rule, ...]:
    """The rules of rule and job files.

    Raises:
        RuleError: a rule file is wrong.
        ConfigError: a job file is wrong.
    """
    rules: list[Rule] = []
    for path in paths:
        rules += read_job(path).rules if _is_job(read_document(path, Report())) else load_rules(path)
    return tuple(rules)


def _is_job(document: object) -> TypeGuard[Mapping]:
    return isinstance(document, Mapping) and bool(set(document.entries) & _ONLY_IN_JOBS)


def _read_job(path: Path, root: Mapping, report: Report) -> JobSpec | None:
    fields = Fields(root, report, _JOB_KEYS)
    for key, example in _REQUIRED.items():
        fields.require(key, example)
    name = fields.text("name", _REQUIRED["name"])
    source = _read_source(fields, path.parent)
    schema, treatment = _read_events(fields)
    rules = read_rules(_rule_paths(fields, path), schema, report)
    operators = _read_operators(fields, rules)
    sink = _read_sink(fields, path.parent)
    checkpoint = fields.text("checkpoint", _REQUIRED["checkpoint"])
    trigger = _read_trigger(fields)
    finish = _read_finish(fields, trigger)
    slots, buckets, lanes = _read_parallelism(fields)
    settings = _read_settings(fields)
    if not rules or name is None or source is None or sink is None or checkpoint is None:
        return None
    return JobSpec(
        name=name.text,
        source=source,
        events=Events(rules[0].schema, *treatment),
        rules=rules,
        sink_path=sink,
        checkpoint_path=_resolve(checkpoint.text, path.parent),
        trigger_us=trigger,
        finish=finish,
        operators=operators,
        slots=slots,
        buckets=buckets,
        lanes=lanes,
        spark=settings,
    )


def _resolve(text: str, folder: Path) -> str:
    """A path relative to the job file as an absolute one; addresses such as ``s3://…`` are left alone."""
    return text if "://" in text else str((folder / text).resolve())


def _read_source(fields: Fields, folder: Path) -> FilesSource | None:
    mapping = fields.mapping("source", _REQUIRED["source"])
    if mapping is None:
        return None
    source = Fields(mapping, fields.report, ("kind", "format", "path", "max_files_per_trigger"))
    for key, example in (("kind", "kind: files"), ("format", "format: json"), ("path", "path: events")):
        source.require(key, example)
    source.choice("kind", ("files",), "files")
    form = source.choice("format", ("json", "csv", "parquet"), "json")
    path = source.text("path", "path: events")
    most = source.whole("max_files_per_trigger", 1, 1_000_000)
    return FilesSource(cast(Format, form), _resolve(path.text, folder), most) if path else None


def _read_events(fields: Fields) -> tuple[EventSchema | None, tuple[int, OnBad, OnBad]]:
    """The schema, if the job declares it, and the delay and treatment of bad records and operator errors."""
    mapping = fields.mapping("events", "{delay: 10 min}")
    if mapping is None:
        return None, (0, "quarantine", "quarantine")
    keys = Fields(mapping, fields.report, (*SCHEMA_KEYS, *_EVENT_KEYS), _EVENT_KEYS_LATER)
    if keys.choice("ordering", ("watermark", "sources"), "watermark") == "sources":
        fields.report.add(keys.key_place("ordering"), "must be watermark", quote("sources"), "The other ordering is not supported yet.")
    node = keys.node("delay")
    delay_us = None if node is None else read_duration(node, fields.report)
    on_bad_record, on_operator_error = (cast(OnBad, keys.choice(key, ("quarantine", "fail"), "quarantine")) for key in _EVENT_KEYS[2:])
    schema = read_schema(keys) if any(keys.has(key) for key in SCHEMA_KEYS) else None
    return schema, (delay_us or 0, on_bad_record, on_operator_error)


def _rule_paths(fields: Fields, path: Path) -> list[str]:
    found: list[str] = []
    for item in fields.texts("rules", _REQUIRED["rules"]):
        resolved = str(path.parent / item.text)
        if Path(resolved).resolve() == path.resolve():
            fields.report.add(item.place, "must name a rule file", "the job file itself", "Put the rules into a file of their own.")
        elif resolved in found:
            fields.report.add(item.place, "must name a file once", quote(item.text), "Remove one.")
        else:
            found.append(resolved)
    return found


def _read_operators(fields: Fields, rules: Iterable[Rule]) -> tuple[str, ...]:
    """The modules that rules may name; a module stands for what is inside it too."""
    modules = tuple(item.text for item in fields.texts("operators", "operators: [my_rules]"))
    for rule in rules:
        module = (rule.operator or "").partition(":")[0]
        if module and not any(module == allowed or module.startswith(f"{allowed}.") for allowed in modules):
            place = fields.key_place("operators") if fields.has("operators") else fields.place
            do = f"Add {module} to operators, if you trust its code."
            fields.report.add(place, f"must name the modules of all operators, for the rule {quote(rule.name)} too", quote(module), do)
    return modules


def _read_sink(fields: Fields, folder: Path) -> str | None:
    mapping = fields.mapping("sink", _REQUIRED["sink"])
    if mapping is None:
        return None
    sink = Fields(mapping, fields.report, ("kind", "path"))
    for key, example in (("kind", "kind: delta"), ("path", "path: out")):
        sink.require(key, example)
    sink.choice("kind", ("delta",), "delta")
    path = sink.text("path", "path: out")
    return _resolve(path.text, folder) if path else None


def _read_trigger(fields: Fields) -> int | Literal["available_now"]:
    node = fields.node("trigger")
    if node is None or (isinstance(node, Scalar) and node.text == "available_now"):
        return "available_now"
    return read_duration(node, fields.report, "available_now, or a duration such as 2 s") or 0


def _read_finish(fields: Fields, trigger: int | Literal["available_now"]) -> bool:
    finish = fields.flag("finish", False)
    if finish and trigger != "available_now":
        do = "Set trigger: available_now, or finish: false."
        fields.report.add(fields.key_place("finish"), "must be false while the input goes on for ever", "true with a periodic trigger", do)
    return finish


def _read_parallelism(fields: Fields) -> tuple[int | None, int | None, int | Literal["auto"]]:
    mapping = fields.mapping("parallelism", "{slots: 4, buckets: 8, lanes: auto}")
    if mapping is None:
        return None, None, "auto"
    keys = Fields(mapping, fields.report, ("slots", "buckets", "lanes"))
    lanes = keys.node("lanes")
    automatic = lanes is None or (isinstance(lanes, Scalar) and lanes.text == "auto")
    return keys.whole("slots", 1, _MOST), keys.whole("buckets", 1, _MOST), "auto" if automatic else keys.whole("lanes", 1, _MOST) or 1


def _read_settings(fields: Fields) -> dict[str, str]:
    mapping = fields.mapping("spark", "{spark.driver.memory: 4g}")
    settings: dict[str, str] = {}
    for key, (place, node) in (mapping.entries if mapping else {}).items():
        if not key.startswith("spark."):
            fields.report.add(place, 'must be a setting that begins with "spark."', quote(key), "Correct the name.")
        elif isinstance(node, Scalar) and node.value is not None:
            settings[key] = node.text
        else:
            fields.report.add(node.place, "must be a single value", describe(node), "Write text, a number, true or false.")
    return settings
