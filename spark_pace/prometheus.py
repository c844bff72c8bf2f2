"""Offers the counters of a running job to Prometheus, at ``http://host:port/metrics``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from spark_pace.io.metrics import AlertCounts, BatchReport, Counts

_COUNTERS = {
    "batches": "Batches written.",
    "records": "Records read.",
    "events": "Events that were not late; repeats are counted too.",
    "late": "Events behind the frontier, which are in the table late.",
    "bad_records": "Records that were no events.",
    "heartbeats": "Heartbeats.",
    "repeats": "Events equal to an earlier one.",
    "quarantined": "Rows of the table quarantine.",
    "operator_seconds": "Seconds of operators, added over all lanes.",
    "stage_seconds": "Seconds of batches: until all is found, it is in order, and tables are written.",
    "matches": "Matches of each rule.",
    "alerts_sent": "Alerts that the target has accepted.",
    "alerts_refused": "Alerts that the target will never accept.",
    "alerts_failures": "Messages that the target has not accepted.",
}
# of the last batch: the field of its report, and what it is
_OF_BATCH = {
    "pending_events": ("pending", "Events that wait for the frontier."),
    "carried_events": ("carry", "Events kept for open selections."),
    "open_selections": ("open", "Selections that are open."),
    "state_bytes": ("state_bytes", "Bytes of the state, without its files of events."),
    "idle_sources": ("idle_sources", "Sources that are left out because they lag too far behind."),
    "batch_seconds": ("batch_seconds", "Seconds that the last batch took, without the wait for it."),
    "batch_records": ("records", "Records of the last batch."),
    "batch_store_requests": ("store_requests", "Counted requests of the last batch to object stores."),
}
_GAUGES = {
    **{name: told for name, (_, told) in _OF_BATCH.items()},
    "alerts_waiting": "Rows that are not sent yet.",
    "rules_differ": "1 while the files have other rules than those that run, else 0.",
    "last_batch_timestamp_seconds": "When the last batch was written.",
    "newest_event_timestamp_seconds": "The greatest event time.",
    "frontier_timestamp_seconds": "The time before which everything is decided.",
}
# the label that some have beside that of the job
_LABELS = {
    **dict.fromkeys(("alerts_sent", "alerts_refused", "alerts_failures", "alerts_waiting"), ("target",)),
    "stage_seconds": ("stage",),
    "matches": ("rule",),
}


class Offered:
    """The counters since the job was started, and the values of its last batch, as Prometheus reads them.

    Each has the label `job_name`. What is not known yet has no value.
    """

    def __init__(
        self, job: str, rules: Iterable[str], alerts: Callable[[], Sequence[AlertCounts]] = list
    ) -> None:
        """Begin without a batch; every rule has no match yet. `alerts` gives how each target stands."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        self._job, self._alerts = job, alerts
        self._reading = threading.Lock()
        self._metrics: dict[str, Any] = {
            name: kind(f"spark_pace_{name}", told, ("job_name", *_LABELS.get(name, ())), registry=registry)
            for kind, metrics in ((Counter, _COUNTERS), (Gauge, _GAUGES))
            for name, told in metrics.items()
        }
        for name in {*_COUNTERS} - {*_LABELS}:
            self._of(name)
        self.run(rules)
        self.rules_differ(False)

    def after(self, batch: BatchReport, now: float) -> None:
        """Add a batch that was written at `now`, in seconds since 1970."""
        with self._reading:  # who asks is told of a whole batch
            self._after(batch, now)

    def _after(self, batch: BatchReport, now: float) -> None:
        added = {counter.name: getattr(batch, counter.name) for counter in fields(Counts)}
        added["events"] += batch.repeats  # which a batch has subtracted: a counter never falls
        for name, value in (added | {"batches": 1, "operator_seconds": batch.operator_seconds}).items():
            self._of(name).inc(value)
        for name, parts in (("matches", batch.matches), ("stage_seconds", batch.stage_seconds)):
            for of, value in parts.items():
                self._of(name, of).inc(value)
        for name, (field, _) in _OF_BATCH.items():
            self._of(name).set(getattr(batch, field))
        self._of("last_batch_timestamp_seconds").set(now)
        self._metrics["frontier_timestamp_seconds"].clear()  # it is not known behind the end
        for name, us in (("frontier", batch.frontier_us), ("newest_event", batch.newest_us)):
            if us is not None:
                self._of(f"{name}_timestamp_seconds").set(us / 1e6)

    def run(self, rules: Iterable[str]) -> None:
        """Note which rules run: one that was taken over has no match yet."""
        for rule in rules:
            self._of("matches", rule)

    def rules_differ(self, differ: bool) -> None:
        """Note whether the files of the job have other rules than those that run."""
        self._of("rules_differ").set(differ)

    def answer(self, _path: str, accepted: str) -> tuple[int, str, str, bytes]:
        """All metrics, whatever the path, as `spark_pace.watching.page.Answers` has answers."""
        written, kind = choose_encoder(accepted)
        with self._reading:
            for counts in self._alerts():
                self._of("alerts_waiting", counts.target).set(counts.waiting)
                for name in ("sent", "refused", "failures"):
                    counter = self._of(f"alerts_{name}", counts.target)
                    counter.reset()
                    counter.inc(getattr(counts, name))
            return 200, kind, "no-store", written(self._registry)

    def _of(self, name: str, *of: str) -> Any:
        """What counts, made with its first use; `of` is the value of its own label."""
        return self._metrics[name].labels(self._job, *of)
