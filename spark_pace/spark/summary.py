"""What one run of a job did: the sums over its batches."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from spark_pace.spark.stages.merger import BatchReport


@dataclass
class Summary:
    """What one run of a job did; an earlier run on the same checkpoint is not counted.

    Attributes:
        records: all that was read: events, late events, bad records, heartbeats and repeats.
        events: those on time and new, wanted by a rule or not.
        late: events below the frontier.
        bad_records: records that are no events.
        heartbeats: records that only tell how far their source is.
        repeats: events equal to one before them.
        quarantined: bad records and failed selections.
        matches: of each rule; 0 where it found none.
        batches: how many were written.
        seconds: from the call to the end.
        still_open: selections open at the end.
        finished: the end of the input was reached and everything decided.
        stopped_by: the signal that stopped the job, if one did.
    """

    matches: dict[str, int]
    records: int = 0
    events: int = 0
    late: int = 0
    bad_records: int = 0
    heartbeats: int = 0
    repeats: int = 0
    quarantined: int = 0
    batches: int = 0
    seconds: float = 0.0
    still_open: int = 0
    finished: bool = False
    stopped_by: signal.Signals | None = None

    def add(self, report: BatchReport) -> None:
        """Count a batch."""
        self.records += report.records
        self.events += report.events
        self.late += report.late
        self.bad_records += report.bad_records
        self.heartbeats += report.heartbeats
        self.repeats += report.repeats
        self.quarantined += report.quarantined
        for rule, count in report.matches.items():
            self.matches[rule] += count
        self.batches += 1
        self.still_open = report.open
        self.finished = report.finished
