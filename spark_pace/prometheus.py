"""Offers the counters of a running job to Prometheus, at ``http://host:port/metrics``."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

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
_GAUGES = {
    "alerts_waiting": "Rows that are not sent yet.",
    "rules_differ": "1 while the files have other rules than those that run, else 0.",
    "pending_events": "Events that wait for the frontier.",
    "carried_events": "Events kept for open selections.",
    "open_selections": "Selections that are open.",
    "state_bytes": "Bytes of the state, without its files of events.",
    "idle_sources": "Sources that are left out because they lag too far behind.",
    "batch_seconds": "Seconds that the last batch took, without the wait for it.",
    "batch_records": "Records of the last batch.",
    "batch_store_requests": "Counted requests of the last batch to object stores.",
    "last_batch_timestamp_seconds": "When the last batch was written.",
    "newest_event_timestamp_seconds": "The greatest event time.",
    "frontier_timestamp_seconds": "The time before which everything is decided.",
}
# the label that some have beside that of the job
_LABELS = {
    **dict.fromkeys(("alerts_sent", "alerts_refused", "alerts_failures", "alerts_waiting"), "target"),
    "stage_seconds": "stage",
    "matches": "rule",
}
_METRICS: tuple[tuple[type[CounterMetricFamily] | type[GaugeMetricFamily], dict[str, str]], ...] = (
    (CounterMetricFamily, _COUNTERS),
    (GaugeMetricFamily, _GAUGES),
)
_OF_BATCH = {
    "pending_events": "pending",
    "carried_events": "carry",
    "open_selections": "open",
    "state_bytes": "state_bytes",
    "idle_sources": "idle_sources",
    "batch_seconds": "batch_seconds",
    "batch_records": "records",
    "batch_store_requests": "store_requests",
}
_NEWEST = "newest_event_timestamp_seconds"


class Offered(Collector):
    """The counters since the job was started, and the values of its last batch, as Prometheus reads them.

    Attributes:
        alerts: gives how the alerts of each target stand.
    """

    def __init__(self, job: str, rules: Sequence[str]) -> None:
        """Begin without a batch: every rule has no match yet."""
        self._job = job
        self._lock = threading.Lock()
        # of each metric, by the values of its own label, which is empty where it has none
        self._values = {name: defaultdict[str, float](float) for name in (*_COUNTERS, *_GAUGES)}
        for name in {*_COUNTERS} - {*_LABELS}:
            self._values[name][""] = 0.0
        self.alerts: Callable[[], Sequence[AlertCounts]] = list
        self.run(rules)
        self.rules_differ(False)

    def after(self, batch: BatchReport, now: float) -> None:
        """Add a batch that was written at `now`, in seconds since 1970."""
        known = {name: getattr(batch, field) for name, field in _OF_BATCH.items()}
        known["last_batch_timestamp_seconds"] = now
        times = {"newest_event": batch.max_time_us, "frontier": batch.frontier_us}
        known |= {f"{of}_timestamp_seconds": us / 1e6 for of, us in times.items() if us is not None}
        with self._lock:
            for counter in fields(Counts):
                self._values[counter.name][""] += getattr(batch, counter.name)
            self._values["events"][""] += batch.repeats  # which a batch has subtracted: a counter never falls
            self._values["batches"][""] += 1
            self._values["operator_seconds"][""] += batch.operator_seconds
            for name, parts in (("matches", batch.matches), ("stage_seconds", batch.stage_seconds)):
                for of, value in parts.items():
                    self._values[name][of] += value
            if _NEWEST in known:
                known[_NEWEST] = max([known[_NEWEST], *self._values[_NEWEST].values()])
            self._values["frontier_timestamp_seconds"].clear()  # it is not known behind the end
            for name, value in known.items():
                self._values[name][""] = value

    def run(self, rules: Iterable[str]) -> None:
        """Note which rules run: one that was taken over has no match yet."""
        with self._lock:
            for rule in rules:
                self._values["matches"][rule] += 0

    def rules_differ(self, differ: bool) -> None:
        """Note whether the files of the job have other rules than those that run."""
        self._values["rules_differ"][""] = float(differ)

    def collect(self) -> Iterator[Metric]:
        """All metrics, each with the label `job_name`. What is not known yet is left out."""
        with self._lock:
            for counts in self.alerts():
                for name in (name for name, label in _LABELS.items() if label == "target"):
                    self._values[name][counts.target] = getattr(counts, name.removeprefix("alerts_"))
            for kind, metrics in _METRICS:
                for name, told in metrics.items():
                    own = [_LABELS[name]] if name in _LABELS else []
                    family = kind(f"spark_pace_{name}", told, labels=["job_name", *own])
                    for of, value in self._values[name].items():
                        family.add_metric([self._job, *([of] if own else [])], value)
                    yield family

    def answer(self, _path: str, accepted: str) -> tuple[int, str, str, bytes]:
        """All metrics, whatever the path, as `spark_pace.watching.page.Answers` has answers."""
        written, kind = choose_encoder(accepted)
        return 200, kind, "no-store", written(self)
