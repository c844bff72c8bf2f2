"""What is watched: a folder of tables, its job file if it is known, and how targets of alerts stand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spark_pace.alerts.queue import Cursor, Failure, TableRows, read_cursor, short
from spark_pace.errors import ConfigError, Problem, one_line
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.query import tables_in
from spark_pace.job_file import JobFile, JobSpec
from spark_pace.job_file.alerts import AlertTarget
from spark_pace.job_file.reader import MANY_PROBLEMS
from spark_pace.spark.running import checkpoint_of_tables, cursors

_MOST_PROBLEMS = 50  # that are told: `check` tells all


@dataclass(frozen=True)
class Subject:
    """What is watched.

    Attributes:
        sink: the folder, or the address, of the tables.
        job_file: the path of the job file; None: the tables alone are known.
        spec: the job; where its files are wrong, what is right in them. None if it is not known.
        checkpoint: the folder of its checkpoint; None if it is not known.
        problems: what is wrong in the job file or its rules, the first of it.
    """

    sink: str
    job_file: str | None = None
    spec: JobSpec | None = None
    checkpoint: AnyPath | None = None
    problems: tuple[Problem, ...] = ()

    @staticmethod
    def of(spec: JobSpec) -> Subject:
        """A job that was read already."""
        return Subject(spec.sink_path, spec.path, spec, spec.checkpoint_folder)

    @property
    def tables(self) -> AnyPath:
        """Where the tables lie.

        Raises:
            SetupError: a variable is missing by which their store is reached.
        """
        return tables_in(self.sink) if self.spec is None else tables_of(self.spec)

    @property
    def wrong(self) -> str | None:
        """What is wrong in the job file, a line for each problem; None if nothing is."""
        return "\n".join(one_line(str(one)) for one in self.problems) or None

    def require_right(self) -> None:
        """Refuse a job file that is wrong, or whose rules are.

        Raises:
            ConfigError: it is.
        """
        if self.problems:
            raise ConfigError(self.problems)


def tables_of(spec: JobSpec) -> AnyPath:
    """Where the tables of a job lie; a store is reached by the job's settings, or by the environment.

    Raises:
        SetupError: a variable of the environment is missing to which the settings refer.
    """
    return tables_in(spec.sink_path, spec.access(spec.sink_path))


def tables_at(text: str) -> AnyPath:
    """Where the tables lie of a sink, or of a job file; what reaches a store is read only where one is."""
    sink = JobFile(text, whole=False).sink if _is_file(text) else text
    return tables_in(sink) if sink is not None and "://" not in sink else subject_of(text).tables


def subject_of(text: str) -> Subject:
    """What is to be watched: a sink, or a job file that names one, whatever else is wrong with it.

    Raises:
        ConfigError: the job file names no sink.
    """
    if not _is_file(text):
        sink = text if "://" in text else str(Path(text))
        return Subject(sink, checkpoint=checkpoint_of_tables(sink))
    read = JobFile(text, MANY_PROBLEMS, must_be_job=True)
    problems = read.problems[:_MOST_PROBLEMS]
    if read.sink is None:
        raise ConfigError(problems)
    return Subject(read.sink, text, read.spec, read.checkpoint, problems)


def _is_file(text: str) -> bool:
    return "://" not in text and Path(text).is_file()


@dataclass(frozen=True)
class WaitingAlerts:
    """What waits for a target, None if it has not started yet, and its last failure, None if it had none."""

    target: str
    waiting: int | None
    failure: Failure | None

    @property
    def said(self) -> str:
        """All of it, but the target's name, in one line."""
        if self.waiting is None:
            return "not started yet"
        waiting, failure = f"{self.waiting:,} wait", self.failure
        if failure is None:
            return waiting
        since = "the last failure, now over, began at" if failure.over else "failing since"
        return f"{waiting}; {since} {failure.at}: {one_line(failure.text)}"

    @property
    def fails(self) -> bool:
        """True if the last failure is not over."""
        return self.failure is not None and not self.failure.over

    @property
    def trouble(self) -> str | None:
        """A sentence, if the target fails while something waits for it."""
        return f"Alerts for {self.target}: {self.said}." if self.waiting and self.fails else None


def waiting_alerts(subject: Subject, done: int | None) -> list[WaitingAlerts]:
    """How the targets of a job stand; none are known without the job.

    `done`: the last batch that was written; None if none was.

    Raises:
        StateError: a cursor is damaged, or a table cannot be read.
    """
    spec = subject.spec
    if spec is None or not spec.alerts:
        return []
    own_id, paths = cursors(spec.checkpoint_folder, [target.name for target in spec.alerts])
    found = []
    for target, path in zip(spec.alerts, paths, strict=True):
        cursor = read_cursor(path, short(own_id))
        if cursor is None:
            found.append(WaitingAlerts(target.name, None, None))
        else:
            waiting = 0 if done is None else _waiting(subject.tables, target, cursor, done)
            found.append(WaitingAlerts(target.name, waiting, cursor.failure))
    return found


def _waiting(tables: AnyPath, target: AlertTarget, cursor: Cursor, done: int) -> int:
    there = [table for table in target.tables if table in cursor.places]
    return sum(TableRows(tables, name, target.rules).waiting(cursor.places[name], done) for name in there)
