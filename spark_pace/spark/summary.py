"""The result of one run of a job, sums over its batches, and who else hears of a run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_pace.io.metrics import (
    ENOUGH_RECORDS,
    AlertCounts,
    BatchReport,
    Counts,
    none_in_time,
    null_in_all,
    null_in_every_record,
)

if TYPE_CHECKING:  # what only adds up batches does not load readers of job files
    from spark_pace.job_file import JobSpec

_MANY_LOST = 10  # records; a single late one is no news


@dataclass(frozen=True)
class Listener:
    """Who hears of a run while it runs.

    Attributes:
        batch: called with the report of each batch that is written.
        differ: with True while the job's files have other rules than those that run.
        ready: with the job, which may have taken over other rules, when it begins to wait for events.
        empty: where a new job starts and there is no file to read yet.
        works: each second, with True while a batch is under way.
    """

    batch: Callable[[BatchReport], None] = lambda _: None
    differ: Callable[[bool], None] = lambda _: None
    ready: Callable[[JobSpec], None] = lambda _: None
    empty: Callable[[], None] = lambda: None
    works: Callable[[bool], None] = lambda _: None

    @staticmethod
    def of(listeners: Sequence[Listener]) -> Listener:
        """All of some listeners, each told in their order."""

        def tell(name: str, *of: Any) -> None:
            for listener in listeners:
                getattr(listener, name)(*of)

        return Listener(*(partial(tell, field.name) for field in fields(Listener)))


@dataclass
class Summary(Counts):
    """The result of one run of a job, without earlier runs on the same checkpoint.

    Attributes:
        matches: the number of matches of each rule.
        batches: the number of batches that were written.
        has_all_batches: True if no earlier run wrote a batch.
        seconds: the time from the call to the end.
        still_open: selections that are open at the end.
        pending: events that still wait for the frontier at the end.
        finished: True if the input has ended and everything is decided.
        stopped_by: the signal that stopped the job, or None.
        over_bound: the number of batches in which no cut into lanes could keep `latency_bound`.
        why_over_bound: the reason in the last of them.
        alerts: how the alerts of each target stand at the end.
        lacking: for each attribute that the header of a CSV file lacks, the message about it; for the event
            time, that a log goes over New Year.
        absent: the attributes that are null in every record; None before the first.
        newest_us: the greatest event time, in microseconds since 1970; None before the first event.
        lost: the counts of the last batches in which no record was an event in time.
        has_told_of_lost: True if a batch has warned of them.
    """

    matches: dict[str, int]
    batches: int = 0
    has_all_batches: bool = False
    seconds: float = 0.0
    still_open: int = 0
    pending: int = 0
    finished: bool = False
    stopped_by: signal.Signals | None = None
    over_bound: int = 0
    why_over_bound: str | None = None
    alerts: list[AlertCounts] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    absent: set[str] | None = None
    newest_us: int | None = None
    lost: Counts = field(default_factory=Counts)
    has_told_of_lost: bool = False

    def add(self, report: BatchReport) -> None:
        """Add a batch, and put into its report the newest event and which warnings it is the first to give.

        The one about attributes that no record has comes once there are enough records; the one about records
        of which none is an event in time comes again after a batch that had one.
        """
        self.add_counts(report)
        for rule, count in report.matches.items():
            self.matches[rule] = self.matches.get(rule, 0) + count
        self.batches += 1
        self.has_all_batches = report.batch_id < self.batches
        self.still_open = report.open
        self.pending = report.pending
        self.finished = report.finished
        self.over_bound += report.over_bound is not None
        self.why_over_bound = report.over_bound or self.why_over_bound
        self.newest_us = report.newest_us = max(
            (time for time in (self.newest_us, report.max_time_us) if time is not None), default=None
        )
        self.absent = null_in_all([self.absent, report.absent])
        report.warnings = [told for name, told in report.lacking.items() if name not in self.lacking]
        self.lacking = report.lacking | self.lacking
        is_time = self.records - report.records < ENOUGH_RECORDS <= self.records
        if is_time and (told := self.told_of_absent):
            report.warnings.append(told)
        self._look_for_events(report)

    def _look_for_events(self, report: BatchReport) -> None:
        """Warn, once, if no record is an event in time: none of the run, or none of the last ten or more."""
        if report.late + report.bad_records < report.records:
            self.lost, self.has_told_of_lost = Counts(), False
            return
        self.lost.add_counts(report)
        is_time = self.lost.records >= (_MANY_LOST if self.events else 1)
        if is_time and not self.has_told_of_lost:
            self.has_told_of_lost = True
            report.warnings.append(none_in_time(self.lost))

    @property
    def told_of_absent(self) -> str | None:
        """The message about attributes that no record has, but those of `lacking`; None if there are none."""
        names = sorted((self.absent or set()) - {*self.lacking})
        return null_in_every_record(", ".join(names)) if names else None
