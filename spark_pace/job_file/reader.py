"""Reads job files, and rule files in their place; and again while a job runs, to go on with their rules."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_pace.core.match.contexts import context_of
from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, Problem, SparkPaceError
from spark_pace.io.files.addresses import AnyPath
from spark_pace.job_file.alerts import read_alerts
from spark_pace.job_file.events import declared_schema, open_events, read_events
from spark_pace.job_file.keys import checkpoint_at, known, names, read_keys
from spark_pace.job_file.rule_sources import RuleSources, read_sources
from spark_pace.job_file.source import (
    DeltaSource,
    FilesSource,
    KafkaSource,
    Source,
    check_source,
    read_source,
)
from spark_pace.job_file.spec import JobSpec
from spark_pace.rules.document import (
    MOST_PROBLEMS,
    Mapping,
    Report,
    Section,
    TooManyError,
    as_mapping,
    quote,
    read_document,
)
from spark_pace.rules.rule_file import load_rules, read_rules, those_that_run

_KEYS = known(JobSpec)
JOB_KEYS = names(_KEYS)
_ONLY_IN_JOBS = {*JOB_KEYS} - {"events", "rules"}
MANY_PROBLEMS = 10_000  # of a file of which what is right is wanted


class JobFile:
    """A job file, or a rule file in its place, and all that is right in it, whatever else is wrong.

    Attributes:
        is_job: True if it has a key that only job files have.
        sources: where the rules of the job come from.
        rules: every rule without problems, paused ones too.
        spec: the job; None if it has no name, source, sink or checkpoint. With problems it cannot be run.
    """

    def __init__(
        self, path: str | Path, most: int = MOST_PROBLEMS, *, whole: bool = True, must_be_job: bool = False
    ) -> None:
        """Read a file, and with `whole` its rules, until `most` problems are found."""
        self.is_job = False
        self.sources = RuleSources()
        self.rules: tuple[Rule, ...] = ()
        self.spec: JobSpec | None = None
        self._said: dict[str, Any] = {}  # what keys say that need nothing but themselves
        self._report = Report(most)
        with suppress(TooManyError):
            root = read_document(path, self._report)
            self.is_job = isinstance(root, Mapping) and bool({*root.entries} & _ONLY_IN_JOBS)
            if isinstance(root, Mapping) and must_be_job and not self.is_job and "rules" in root.entries:
                do = "Name the job file that has it under rules."
                self._report.add(root.place, "must be a job file", "a rule file", do)
            elif must_be_job or self.is_job:
                if (mapping := as_mapping(root, self._report, "name: my_job")) is not None:
                    self._read(Section(mapping, self._report, JOB_KEYS), path, whole)
            elif whole:
                self._report = Report(most)
                self.rules, _ = read_rules([path], None, self._report)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong with the file, and with the rule files of a job."""
        return self._report.problems

    @property
    def paused(self) -> tuple[str, ...]:
        """The names of the rules that do not run."""
        return tuple(rule.name for rule in self.rules if not rule.enabled)

    @property
    def sink(self) -> str | None:
        """The sink of the job."""
        return self._said.get("sink_path")

    @property
    def checkpoint(self) -> AnyPath | None:
        """The place of the job's checkpoint.

        Raises:
            SetupError: a variable of the environment that the job's settings name is missing.
        """
        path = self._said.get("checkpoint_path")
        return None if path is None else checkpoint_at(path, self._said.get("spark", {}))

    def _read(self, fields: Section, path: str | Path, whole: bool) -> None:
        self._said = said = read_keys(fields, _KEYS)
        self.sources = read_sources(fields)
        if not whole:
            return
        source, of_source = read_source(fields)
        section = open_events(fields)
        rows = self.sources.nodes(section, fields)
        self.rules, schema = read_rules(self.sources.files, declared_schema(section), fields.report, rows)
        place = fields.key_place("rules") if self.rules else fields.place
        running = those_that_run(self.rules, place, fields.report)
        goes_on = said.get("trigger_us", "available_now") != "available_now"
        _check_trigger(fields, said, goes_on)
        _check_operators(fields, said.get("operators", ()), self.rules)
        _check_latency_bound(fields, said, self.rules)
        alerts = read_alerts(fields, self.rules, self.sink)
        events = read_events(section, schema, sources_known=isinstance(source, KafkaSource), goes_on=goes_on)
        if source is not None and of_source is not None and schema is not None:
            check_source(fields, of_source, source, schema.own, events.order)
        _check_apart(fields, source, said)
        if source is not None and all(name in said for name in ("name", "sink_path", "checkpoint_path")):
            self.spec = JobSpec(
                **said,
                source=source,
                rules=running,
                events=events,
                alerts=alerts,
                path=str(Path(path).absolute()),
                paused=self.paused,
            )


def read_job(path: str | Path) -> JobSpec:
    """Read and check a job file together with its rule files.

    Raises:
        ConfigError: with every problem of all these files.
    """
    found = JobFile(path, must_be_job=True)
    if found.problems or found.spec is None:
        raise ConfigError(found.problems)
    return found.spec


def rules_of(path: str | Path) -> tuple[tuple[Rule, ...], JobSpec | None]:
    """The rules of a file that run, and the job if it is a job file, else None.

    Raises:
        RuleError: the rule file is wrong.
        ConfigError: the job file is wrong.
    """
    if not JobFile(path, whole=False).is_job:
        return load_rules(path), None
    job = read_job(path)
    return job.rules, job


def check_files(paths: Iterable[str | Path]) -> list[Problem]:
    """Every problem of rule and job files, each file by itself; a job's rule files are checked with it."""
    return [problem for path in paths for problem in JobFile(path).problems]


def rules_in(paths: Iterable[str | Path]) -> tuple[tuple[Rule, str | None], ...]:
    """The rules of rule and job files, each with the format of its job's source; raises as `rules_of`."""
    found = map(rules_of, paths)
    return tuple((rule, None if job is None else job.source.format) for rules, job in found for rule in rules)


def _check_trigger(fields: Section, said: dict[str, Any], goes_on: bool) -> None:
    """Report keys that do not fit the trigger."""
    if goes_on and said.get("finish"):
        must, got = "must be false while the input goes on for ever", "true with a periodic trigger"
        do = "Set trigger: available_now, or finish: false."
        fields.report.add(fields.key_place("finish"), must, got, do)
    if not goes_on and fields.has("rules_refresh"):
        do = "Set a trigger such as 1 s, or leave out rules_refresh."
        place, got = fields.key_place("rules_refresh"), "trigger: available_now"
        fields.report.add(place, "must come with a periodic trigger", got, do)


def _check_apart(fields: Section, source: Source | None, said: dict[str, Any]) -> None:
    """Report tables and a checkpoint that lie where the events do: the job would read its own files."""
    if not isinstance(source, FilesSource | DeltaSource):
        return
    for key, name in (("sink", "sink_path"), ("checkpoint", "checkpoint_path")):
        if f"{said.get(name)}/".startswith(f"{source.path.rstrip('/')}/"):
            must, do = "must not lie in the folder of the source", "Name a folder beside it."
            fields.report.add(fields.key_place(key), must, quote(said[name]), do)


def _check_operators(fields: Section, modules: Sequence[str], rules: Iterable[Rule]) -> None:
    """Report rules whose function is in none of the modules; a package allows all modules in it."""
    for rule in rules:
        module = (rule.function or "").partition(":")[0]
        if module and not any(module == allowed or module.startswith(f"{allowed}.") for allowed in modules):
            place = fields.key_place("operators") if fields.has("operators") else fields.place
            must = f"must name the modules of all operators, for the rule {quote(rule.name)} too"
            do = f"Add {module} to operators, if you trust its code."
            fields.report.add(place, must, quote(module), do)


def _check_latency_bound(fields: Section, said: dict[str, Any], rules: Sequence[Rule]) -> None:
    """Report a bound where no cut of lanes can keep it."""
    node, parallelism = fields.node("parallelism"), said.get("parallelism")
    if not isinstance(node, Mapping) or parallelism is None or parallelism.latency_bound_us is None:
        return
    got = "lanes: 1" if parallelism.lanes == 1 else ""
    if rules and all(_found_by_splitter(rule) for rule in rules):
        got = got or "rules whose matches the splitter finds"
    if got:
        place = node.entries.get("latency_bound", (node.place,))[0]
        fields.report.add(place, "must be left out where nothing can be cut", got, "Leave it out.")


def _found_by_splitter(rule: Rule) -> bool:
    """True if the splitter finds the rule's matches, so that operators only compute their fields."""
    pattern = rule.pattern
    return rule.span is None and pattern is not None and context_of(pattern).way.work == "matched"


_LOG = logging.getLogger(__name__)
_LOOK_US = 10_000_000  # how often, where the job only tells that they have changed
_OF_RULES = ("rules", "operators")  # keys

Stamps = dict[str, tuple[int, ...]]  # of each file: its inode, when it was written (ns), its size


@dataclass
class RulesOnDisk:
    """The job file and the rule files of a job, looked at from time to time while it runs.

    Attributes:
        spec: the job with the rules that it runs with.
        started: the job as its file was at the start.
        require_accepted: raises `SparkPaceError` unless the running job can go on as another, which differs
            in its rules only.
        tell: called when that changes in which the files differ from what runs, with why their rules are
            not those that run (empty if they are), and with the other keys of the job file that changed.
    """

    spec: JobSpec
    started: JobSpec
    require_accepted: Callable[[JobSpec], None]
    tell: Callable[[str, tuple[str, ...]], None] = lambda rules, keys: None
    _found: JobSpec | None = None  # the job with other rules
    _read: Stamps = field(default_factory=dict)  # of the files when they were read last, after the start
    _seen: Stamps = field(default_factory=dict)  # of the files at the last look
    _next: float = 0.0
    _look: threading.Thread | None = None  # the last one
    _failure: BaseException | None = None  # of a look
    _rules: str = ""  # why the rules of the files are not those that run
    _keys: tuple[str, ...] = ()  # that changed beside the rules

    def changed(self) -> bool:
        """Let the files be looked at if it is time to; True if the job can go on with other rules.

        Files are read once they stay as they are from one look to the next, so that none is half written.
        What cannot be taken over is told in the log, once. A look has a thread of its own, so nobody waits
        for a place that does not answer; the next call raises what it raises.
        """
        if self._failure is not None:
            raise self._failure
        due = self.spec.trigger_us != "available_now" and time.monotonic() >= self._next
        looks = self._look is not None and self._look.is_alive()
        if self._found is None and due and not looks:
            self._next = time.monotonic() + (self.spec.rules_refresh_us or _LOOK_US) / 1e6
            self._look = threading.Thread(target=self._looked, name="rules", daemon=True)
            self._look.start()
        return self._found is not None

    def take(self) -> bool:
        """Let `spec` be the job with the other rules; False if there are none."""
        if self._found is None:
            return False
        self.spec, self._found = self._found, None
        return True

    def _looked(self) -> None:
        try:
            before, self._seen = self._seen, self._stamps()
            if self._seen == before != self._read:
                self._read = self._seen
                self._found = self._look_into()
        except BaseException as error:
            self._failure = error

    def _stamps(self) -> Stamps:
        sources = JobFile(self.spec.path, whole=False).sources
        stamps: Stamps = {} if sources.table is None else {sources.table: sources.stamp()}
        for path in (self.spec.path, *sources.files):
            try:
                status = os.stat(path)
                stamps[path] = (status.st_ino, status.st_mtime_ns, status.st_size)
            except OSError:
                stamps[path] = ()
        return stamps

    def _look_into(self) -> JobSpec | None:
        """Read the files, and tell what differs; the job with their rules if it can go on with them."""
        found, rules, keys = None, "", self._keys
        try:
            job = read_job(self.spec.path)
            keys = _changed_keys(self.started, job)
            told = _told(self.spec, job)
            if told and self.spec.rules_refresh_us is None:
                rules = f"rules — {told}. To take them over, start the job again or set rules_refresh."
            elif told:
                found = self._accepted(job)
                _LOG.warning("rules — %s. They are taken over with the next batch.", told)
        except SparkPaceError as error:
            rules = f"rules — are not taken over, and the job goes on with those it has: {error}"
        self._tell(rules, keys, taken=found is not None)
        return found

    def _tell(self, rules: str, keys: tuple[str, ...], taken: bool) -> None:
        """Say in the log what is new in it, and hand it on."""
        if rules:
            _LOG.warning("%s", rules)
        elif self._rules and not taken:
            _LOG.warning("rules — the files have again the rules that the job runs with.")
        if keys != self._keys:
            _LOG.warning("%s", keys_told(keys))
        if (rules, keys) != (self._rules, self._keys):
            self._rules, self._keys = rules, keys
            self.tell(rules, keys)

    def _accepted(self, job: JobSpec) -> JobSpec:
        if job.events.schema != self.spec.events.schema:
            must, do = "must have the attributes that the job was started with", "Start the job again."
            raise ConfigError.of("events", must, "others", do)
        with_rules = replace(self.spec, rules=job.rules, paused=job.paused)
        self.require_accepted(with_rules)
        return with_rules


def keys_told(keys: tuple[str, ...]) -> str:
    """A line about the keys of the job file that changed since the start; there may be none any more."""
    if not keys:
        return "job file — says again what the job was started with."
    return f"job file — changed since the start: {', '.join(keys)}. That counts at the next start."


def _changed_keys(started: JobSpec, now: JobSpec) -> tuple[str, ...]:
    """The keys of the job file, but those about rules, whose values differ in two jobs."""
    changed = [key.name for field, key in _KEYS.items() if getattr(started, field) != getattr(now, field)]
    return tuple(name for name in changed if name not in _OF_RULES)


def _told(now: JobSpec, then: JobSpec) -> str:
    """What differs in the meaning of the rules of two jobs, in words; empty if nothing does."""
    before, after = ({one.name: rule_parts(one) for one in every_rule(job.rules)} for job in (now, then))
    added = [name for name in after if name not in before]
    gone = [name for name in before if name not in after]
    changed = {
        "added": [name for name in added if name not in now.paused],
        "resumed": [name for name in added if name in now.paused],
        "removed": [name for name in gone if name not in then.paused],
        "paused": [name for name in gone if name in then.paused],
        "changed": [name for name in after if name in before and before[name] != after[name]],
    }
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in changed.items() if names)
