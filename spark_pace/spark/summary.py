"""What one run of a job did: the sums over its batches."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

from spark_pace.io.metrics import BatchReport, Counts


@dataclass
class Summary(Counts):
    """What one run of a job did; an earlier run on the same checkpoint is not counted.

    Attributes:
        matches: of each rule; 0 where it found none.
        batches: how many were written.
        has_all_batches: no earlier run wrote a batch.
        seconds: from the call to the end.
        still_open: selections open at the end.
        pending: events that wait at the end until the frontier has passed them.
        finished: the end of the input was reached and everything decided.
        stopped_by: the signal that stopped the job, if one did.
        over_bound: in how many batches no cut of lanes could keep `latency_bound`.
        why_over_bound: why, in the last of them.
        lacking: of attributes that the header of a CSV file lacks: what there is to tell.
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
    lacking: dict[str, str] = field(default_factory=dict)

    def add(self, report: BatchReport) -> None:
        """Count a batch, and take from its report what earlier ones have told of headers."""
        self.add_counts(report)
        for rule, count in report.matches.items():
            self.matches[rule] += count
        self.batches += 1
        self.has_all_batches = report.batch_id < self.batches
        self.still_open = report.open
        self.pending = report.pending
        self.finished = report.finished
        self.over_bound += report.over_bound is not None
        self.why_over_bound = report.over_bound or self.why_over_bound
        report.lacking = {name: told for name, told in report.lacking.items() if name not in self.lacking}
        self.lacking |= report.lacking
