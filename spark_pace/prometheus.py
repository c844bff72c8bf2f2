"""Offers the counters of a running job to Prometheus, at ``http://host:port/metrics``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from spark_pace.io.metrics import AlertCounts, BatchReport, Counts
from spark_pace.spark.summary import Summary

_COUNTED = {
    "records": "Records read.",
    "events": "Events that were not late; repeats are counted too.",
    "late": "Events behind the frontier, which are in the table late.",
    "bad_records": "Records that were no events.",
    "heartbeats": "Heartbeats.",
    "repeats": "Events equal to an earlier one.",
    "quarantined": "Rows of the table quarantine.",
}
_GAUGES = {
    "pending_events": ("pending", "Events that wait for the frontier."),
    "carried_events": ("carry", "Events kept for open selections."),
    "open_selections": ("open", "Selections that are open."),
    "state_bytes": ("state_bytes", "Bytes of the state, without its files of events."),
    "idle_sources": ("idle_sources", "Sources that are left out because they lag too far behind."),
    "batch_seconds": ("batch_seconds", "Seconds that the last batch took, without the wait for it."),
    "batch_records": ("records", "Records of the last batch."),
    "batch_store_requests": (
        "store_requests",
        "Counted requests of the last batch to object stores.",
    ),
}
_ALERTS: dict[str, tuple[type[CounterMetricFamily] | type[GaugeMetricFamily], str]] = {
    "alerts_waiting": (GaugeMetricFamily, "Rows that are not sent yet."),
    "alerts_sent": (CounterMetricFamily, "Alerts that the target has accepted."),
    "alerts_refused": (CounterMetricFamily, "Alerts that the target will never accept."),
    "alerts_failures": (CounterMetricFamily, "Messages that the target has not accepted."),
}


class Offered(Collector):
    """The counters since the job was started, and the values of its last batch, as Prometheus reads them.

    Attributes:
        alerts: gives how the alerts of each target stand.
    """

    def __init__(self, job: str, summary: Summary) -> None:
        """Begin without a batch; `summary` adds up those of the run."""
        self._job, self._summary = job, summary
        self._lock = threading.Lock()
        self._rules = dict[str, int]()
        self._operator_seconds = 0.0
        self._stages = dict[str, float]()
        self._last: BatchReport | None = None
        self._written_at = 0.0
        self._rules_differ = False
        self.alerts: Callable[[], Sequence[AlertCounts]] = list

    def after(self, batch: BatchReport, now: float) -> None:
        """Take a batch that was written at `now`, in seconds since 1970, and that the summary has."""
        with self._lock:
            self._operator_seconds += batch.operator_seconds
            for stage, seconds in batch.stage_seconds.items():
                self._stages[stage] = self._stages.get(stage, 0.0) + seconds
            self._last, self._written_at = batch, now

    def run(self, rules: Iterable[str]) -> None:
        """Note which rules run: one that was taken over has no match yet."""
        self._rules = dict.fromkeys(rules, 0)

    def rules_differ(self, differ: bool) -> None:
        """Note whether the files of the job have other rules than those that run."""
        self._rules_differ = differ

    def collect(self) -> Iterator[Metric]:
        """All metrics, each with the label `job_name`. What is not known yet is left out."""
        with self._lock:
            yield from self._counters()
            yield from self._of_alerts()
            told = "1 while the files have other rules than those that run, else 0."
            yield from self._families(GaugeMetricFamily, {"rules_differ": (float(self._rules_differ), told)})
            if self._last is not None:
                yield from self._gauges(self._last)

    def _counters(self) -> Iterator[Metric]:
        run = self._summary
        values: dict[str, tuple[float, str]] = {"batches": (run.batches, "Batches written.")}
        for counter in fields(Counts):
            values[counter.name] = (getattr(run, counter.name), _COUNTED[counter.name])
        # a batch has subtracted the repeats: a counter never falls
        values["events"] = (run.events + run.repeats, _COUNTED["events"])
        values["operator_seconds"] = (self._operator_seconds, "Seconds of operators, added over all lanes.")
        yield from self._families(CounterMetricFamily, values)
        told = "Seconds of batches: until tasks have found all, it is in order, and tables are written."
        yield self._by("stage", "stage_seconds", told, self._stages)
        yield self._by("rule", "matches", "Matches of each rule.", self._rules | run.matches)

    def _by(self, label: str, name: str, told: str, values: Mapping[str, float]) -> Metric:
        family = CounterMetricFamily(f"spark_pace_{name}", told, labels=["job_name", label])
        for value, count in values.items():
            family.add_metric([self._job, value], count)
        return family

    def _of_alerts(self) -> Iterator[Metric]:
        for name, (kind, told) in _ALERTS.items():
            family = kind(f"spark_pace_{name}", told, labels=["job_name", "target"])
            for counts in self.alerts():
                family.add_metric([self._job, counts.target], getattr(counts, name.removeprefix("alerts_")))
            yield family

    def _gauges(self, last: BatchReport) -> Iterator[Metric]:
        values = {name: (getattr(last, field), told) for name, (field, told) in _GAUGES.items()}
        values["last_batch_timestamp_seconds"] = (self._written_at, "When the last batch was written.")
        if self._summary.newest_us is not None:
            values["newest_event_timestamp_seconds"] = (
                self._summary.newest_us / 1e6,
                "The greatest event time.",
            )
        if last.frontier_us is not None:
            told = "The time before which everything is decided."
            values["frontier_timestamp_seconds"] = (last.frontier_us / 1e6, told)
        yield from self._families(GaugeMetricFamily, values)

    def _families(
        self,
        kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
        values: Mapping[str, tuple[float, str]],
    ) -> Iterator[Metric]:
        for name, (value, told) in values.items():
            family = kind(f"spark_pace_{name}", told, labels=["job_name"])
            family.add_metric([self._job], value)
            yield family

    def answer(self, _path: str, accepted: str) -> tuple[int, str, str, bytes]:
        """All metrics, whatever the path, as `spark_pace.watching.page.Answers` has answers."""
        written, kind = choose_encoder(accepted)
        return 200, kind, "no-store", written(self)
