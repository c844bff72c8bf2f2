"""Reads job files: returns the checked job, or raises every problem of its file and its rule files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeGuard

from spark_pace.core.match.contexts import context_of
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, Problem
from spark_pace.io.files.store_path import AnyPath
from spark_pace.job_file.admission import read_admission
from spark_pace.job_file.alerts import read_alerts
from spark_pace.job_file.checkpoint_place import checkpoint_at
from spark_pace.job_file.endpoints import read_metrics, read_page
from spark_pace.job_file.events import declared_schema, open_events, read_events
from spark_pace.job_file.paths import SINKS, mistaken, resolve
from spark_pace.job_file.rule_sources import EXAMPLE as EXAMPLE_OF_RULES
from spark_pace.job_file.rule_sources import RuleSources, read_sources
from spark_pace.job_file.source import EXAMPLE, check_source, names_iceberg, read_source, read_texts
from spark_pace.job_file.spec import JobSpec
from spark_pace.rules.document.addresses import check_address
from spark_pace.rules.document.document import Mapping, Scalar, read_document
from spark_pace.rules.document.report import Report, TooManyError, quote
from spark_pace.rules.document.section import Section, as_mapping
from spark_pace.rules.lengths import read_duration
from spark_pace.rules.rule_file import load_rules, read_rules, those_that_run

_REQUIRED = {
    "name": "name: my_job",
    "source": EXAMPLE,
    "rules": EXAMPLE_OF_RULES,
    "sink": "sink: {kind: delta, path: out}",
    "checkpoint": "checkpoint: out/_checkpoint",
}
_JOB_KEYS = (
    *_REQUIRED,
    *(
        "events",
        "trigger",
        "finish",
        "admission",
        "operators",
        "parallelism",
        "spark",
        "metrics",
        "page",
        "rules_refresh",
        "alerts",
    ),
)
_ONLY_IN_JOBS = set(_JOB_KEYS) - {"events", "rules"}
PARALLELISM_KEYS = ("slots", "buckets", "lanes", "latency_bound")
_MOST = 10_000
_MOST_PASSED_OVER = 10_000  # problems of a file of which what is right is wanted


def read_job(path: str | Path) -> JobSpec:
    """Read and check a job file together with its rule files.

    Raises:
        ConfigError: with every problem of all these files.
    """
    report = Report()
    spec = None
    with suppress(TooManyError):
        root = as_mapping(read_document(path, report), report, _REQUIRED["name"])
        spec = None if root is None else _read_job(Path(path), root, report)
    if spec is None or not spec.rules or not report.clean:
        raise ConfigError(report.problems)
    return spec


def known_of(path: str | Path) -> JobSpec | None:
    """What is right in a job file and its rule files, such as the rules without problems; it cannot be run.

    None if the job's name, source, sink or checkpoint is not to be found.
    """
    report = Report(_MOST_PASSED_OVER)
    with suppress(TooManyError):
        document = read_document(path, report)
        if isinstance(document, Mapping):
            return _read_job(Path(path), document, report)
    return None


def sources_of(path: str | Path) -> RuleSources:
    """Where the rules of a job file come from, whatever else is wrong with it."""
    report = Report()
    with suppress(TooManyError):
        document = read_document(path, report)
        if isinstance(document, Mapping):
            return read_sources(Section(document, report, _JOB_KEYS), Path(path))
    return RuleSources()


def places_of(path: str | Path) -> tuple[str | None, AnyPath | None]:
    """(the sink, the place of the checkpoint) of a job file, whatever else is wrong with it or its rules.

    Each is None if it is not to be found.
    """
    report = Report()
    with suppress(TooManyError):
        document = read_document(path, report)
        if isinstance(document, Mapping):
            fields, folder = Section(document, report, _JOB_KEYS), Path(path).parent
            sink, checkpoint = _read_sink(fields, folder), _read_checkpoint(fields, folder)
            place = None if checkpoint is None else checkpoint_at(checkpoint, _read_settings(fields))
            return sink, place
    return None, None


def check_files(paths: Iterable[str | Path]) -> list[Problem]:
    """Every problem of rule and job files, each file by itself; a job's rule files are checked with it."""
    return [problem for path in paths for problem in _check_file(path)]


def _check_file(path: str | Path) -> tuple[Problem, ...]:
    report = Report()
    with suppress(TooManyError):
        document = read_document(path, report)
        if _is_job(document):
            _read_job(Path(path), document, report)
        else:
            report = Report()
            read_rules([path], None, report)
    return report.problems


def rules_in(paths: Iterable[str | Path]) -> tuple[tuple[Rule, str | None], ...]:
    """The rules of rule and job files, each with the format of its job's source; None for a rule file.

    Raises:
        RuleError: a rule file is wrong.
        ConfigError: a job file is wrong.
    """
    rules = list[tuple[Rule, str | None]]()
    for path in paths:
        job = read_job(path) if is_job(path) else None
        own, source_format = (load_rules(path), None) if job is None else (job.rules, job.source.format)
        rules += [(rule, source_format) for rule in own]
    return tuple(rules)


def paused_in(path: str | Path) -> tuple[str, ...]:
    """The names of the rules of a rule or job file that are paused, whatever else is wrong with it."""
    if is_job(path):
        known = known_of(path)
        return () if known is None else known.paused
    with suppress(TooManyError):
        return tuple(rule.name for rule in read_rules([path], None, Report())[0] if not rule.enabled)
    return ()


def is_job(path: str | Path) -> bool:
    """True if the file has a key that only job files have."""
    with suppress(TooManyError):
        return _is_job(read_document(path, Report()))
    return False


def _is_job(document: object) -> TypeGuard[Mapping]:
    return isinstance(document, Mapping) and bool(set(document.entries) & _ONLY_IN_JOBS)


def _read_job(path: Path, root: Mapping, report: Report) -> JobSpec | None:
    fields = _fields(root, report)
    name = fields.text("name", _REQUIRED["name"])
    source = read_source(fields, path.parent)
    section = open_events(fields)
    declared = declared_schema(section)
    sources = read_sources(fields, path)
    rows = sources.nodes(section, fields)
    every, schema = read_rules(sources.files, declared, report, rows)
    rules = those_that_run(every, fields.key_place("rules"), report) if every else ()
    operators = _read_operators(fields, every)
    sink = _read_sink(fields, path.parent)
    checkpoint = _read_checkpoint(fields, path.parent)
    trigger = _read_trigger(fields)
    running = _read_running(fields, trigger)
    slots, buckets, lanes, bound = _read_parallelism(fields, every)
    alerts = read_alerts(fields, path.parent, every, sink)
    known = source is not None and source.names_sources
    events = read_events(section, schema, sources_known=known, goes_on=trigger != "available_now")
    check_source(fields, source, schema and schema.own, events if schema else None)
    if name is None or source is None or sink is None or checkpoint is None:
        return None
    return JobSpec(
        name=name.text,
        source=source,
        events=events,
        rules=rules,
        sink_path=sink,
        checkpoint_path=checkpoint,
        trigger_us=trigger,
        operators=operators,
        slots=slots,
        buckets=buckets,
        lanes=lanes,
        latency_bound_us=bound,
        path=str(path.absolute()),
        alerts=alerts,
        paused=tuple(rule.name for rule in every if not rule.enabled),
        **running,
    )


def _fields(root: Mapping, report: Report) -> Section:
    """The keys of a job file; reports those that are missing."""
    fields = Section(root, report, _JOB_KEYS)
    for key, example in _REQUIRED.items():
        fields.require(key, example)
    return fields


def _read_running(fields: Section, trigger: int | Literal["available_now"]) -> dict[str, Any]:
    """The fields of `JobSpec` that say how the job runs, and need nothing of its rules."""
    return {
        "finish": _read_finish(fields, trigger),
        "admission": read_admission(fields),
        "spark": _read_settings(fields),
        "metrics": read_metrics(fields),
        "page": read_page(fields),
        "rules_refresh_us": _read_refresh(fields, trigger),
    }


def _read_operators(fields: Section, rules: Iterable[Rule]) -> tuple[str, ...]:
    """The modules whose functions rules may name; a package allows all modules in it."""
    modules = tuple(item.text for item in fields.texts("operators", "operators: [my_rules]"))
    for rule in rules:
        module = (rule.function or "").partition(":")[0]
        if module and not any(module == allowed or module.startswith(f"{allowed}.") for allowed in modules):
            place = fields.key_place("operators") if fields.has("operators") else fields.place
            must = f"must name the modules of all operators, for the rule {quote(rule.name)} too"
            do = f"Add {module} to operators, if you trust its code."
            fields.report.add(place, must, quote(module), do)
    return modules


def _read_sink(fields: Section, folder: Path) -> str | None:
    mapping = fields.mapping("sink", _REQUIRED["sink"])
    if mapping is None or names_iceberg(mapping, fields.report, "delta", "Copy the tables from Delta"):
        return None
    sink = Section(mapping, fields.report, ("kind", "path"))
    for key, example in (("kind", "kind: delta"), ("path", "path: out")):
        sink.require(key, example)
    sink.choice("kind", ("delta",), "delta")
    path = sink.text("path", "path: out")
    if path is None:
        return None
    check_address(path, fields.report, SINKS)
    resolved = resolve(path.text, folder)
    if wrong := mistaken(resolved):
        fields.report.add(path.place, *wrong)
    return resolved


def _read_checkpoint(fields: Section, folder: Path) -> str | None:
    path = fields.text("checkpoint", _REQUIRED["checkpoint"])
    if path is not None:
        check_address(path, fields.report)
    return resolve(path.text, folder) if path else None


def _read_trigger(fields: Section) -> int | Literal["available_now"]:
    node = fields.node("trigger")
    if node is None or (isinstance(node, Scalar) and node.text == "available_now"):
        return "available_now"
    time_us = read_duration(node, fields.report, "available_now, or a duration such as 2 s")
    return "available_now" if time_us is None else time_us


def _read_finish(fields: Section, trigger: int | Literal["available_now"]) -> bool:
    finish = fields.flag("finish", False)
    if finish and trigger != "available_now":
        must, got = "must be false while the input goes on for ever", "true with a periodic trigger"
        do = "Set trigger: available_now, or finish: false."
        fields.report.add(fields.key_place("finish"), must, got, do)
    return finish


def _read_refresh(fields: Section, trigger: int | Literal["available_now"]) -> int | None:
    node = fields.node("rules_refresh")
    if node is not None and trigger == "available_now":
        must, do = (
            "must come with a periodic trigger",
            "Set a trigger such as 1 s, or leave out rules_refresh.",
        )
        fields.report.add(fields.key_place("rules_refresh"), must, "trigger: available_now", do)
    return None if node is None else read_duration(node, fields.report, "a duration such as 10 s", least=1)


def _read_parallelism(
    fields: Section, rules: Sequence[Rule]
) -> tuple[int | None, int | None, int | Literal["auto"], int | None]:
    """The numbers of slots and buckets, the most lanes, and the latency bound in microseconds."""
    mapping = fields.mapping("parallelism", "{slots: 4, buckets: 8, lanes: auto}")
    if mapping is None:
        return None, None, "auto", None
    keys = Section(mapping, fields.report, PARALLELISM_KEYS)
    node = keys.node("lanes")
    automatic = node is None or (isinstance(node, Scalar) and node.text == "auto")
    slots, buckets = keys.whole("slots", 1, _MOST), keys.whole("buckets", 1, _MOST)
    most = None if automatic else keys.whole("lanes", 1, _MOST)
    bound = _read_bound(keys, most, rules)
    return slots, buckets, "auto" if automatic else most or 1, bound


def _read_bound(keys: Section, most_lanes: int | None, rules: Sequence[Rule]) -> int | None:
    node = keys.node("latency_bound")
    if node is None:
        return None
    must, got = "must be left out where nothing can be cut", ""
    if most_lanes == 1:
        got = "lanes: 1"
    elif rules and all(_found_by_splitter(rule) for rule in rules):
        got = "rules whose matches the splitter finds"
    if got:
        keys.report.add(keys.key_place("latency_bound"), must, got, "Leave it out.")
    return read_duration(node, keys.report, "a duration such as 2 s", least=1)


def _found_by_splitter(rule: Rule) -> bool:
    """True if the splitter finds the rule's matches, so that operators only compute their fields."""
    pattern = rule.pattern
    return rule.span is None and pattern is not None and context_of(pattern).way.work == "matched"


def _read_settings(fields: Section) -> dict[str, str]:
    mapping = fields.mapping("spark", "{spark.driver.memory: 4g}")
    for key, (place, _) in (mapping.entries if mapping else {}).items():
        if not key.startswith("spark."):
            must = 'must be a setting that begins with "spark."'
            fields.report.add(place, must, quote(key), "Correct the name.")
    return read_texts(mapping, fields)
