"""Finds out whether the files of a running job have changed, and whether it may go on with their rules."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.errors import ConfigError, SparkPaceError
from spark_pace.job_file.keys import known
from spark_pace.job_file.reader import JobFile, read_job
from spark_pace.job_file.spec import PARALLELISM, JobSpec

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 10.0  # where the job only tells that they have changed
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
            self._next = time.monotonic() + self._seconds
            self._look = threading.Thread(target=self._looked, name="rules", daemon=True)
            self._look.start()
        return self._found is not None

    def take(self) -> bool:
        """Let `spec` be the job with the other rules; False if there are none."""
        if self._found is None:
            return False
        self.spec, self._found = self._found, None
        return True

    @property
    def _seconds(self) -> float:
        refresh_us = self.spec.rules_refresh_us
        return _LOOK_SECONDS if refresh_us is None else refresh_us / 1e6

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
    fields = [*known(JobSpec).items(), *known(JobSpec, PARALLELISM).items()]
    changed = [
        key.under or key.name for field, key in fields if getattr(started, field) != getattr(now, field)
    ]
    return tuple(name for name in dict.fromkeys(changed) if name not in _OF_RULES)


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
