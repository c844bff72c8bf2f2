"""What a running job answers to those who ask by HTTP: counters to Prometheus, its page, and its health.

It is healthy if no batch is under way for too long. How old the last batch is says nothing by itself: a job
whose trigger is long, or to which nothing comes, does none for hours and is well. All of it is in memory, so
who asks waits for no store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from spark_pace.io.metrics import AlertCounts, BatchReport
from spark_pace.job_file import JobSpec
from spark_pace.spark.summary import Listener

AlertsNow = Callable[[], Sequence[AlertCounts]]


@dataclass
class Health:
    """The health of the job that this process runs; each `now` is in seconds since 1970.

    Attributes:
        most_seconds: how long a batch may be under way.
    """

    most_seconds: float
    _last: BatchReport | None = None
    _written: float = 0.0
    _since: float | None = None  # when the batch began, or was seen first, that is under way

    def works(self, is_under_way: bool, now: float) -> None:
        """Note whether a batch is under way."""
        if not is_under_way:
            self._since = None
        elif self._since is None:
            self._since = now

    def after(self, batch: BatchReport, now: float) -> None:
        """Note a batch that is written; Spark has not noted its end yet, or has begun the next one."""
        self._last, self._written, self._since = batch, now, now

    def told(self, now: float) -> dict[str, Any]:
        """What `/healthz` answers."""
        waited = None if self._since is None else max(0.0, now - self._since)
        is_healthy = waited is None or waited <= self.most_seconds
        state = "starts" if self._last is None else "waits" if waited is None else "works"
        return {
            "healthy": is_healthy,
            "state": state if is_healthy else "hangs",
            "batch": None if self._last is None else self._last.batch_id,
            "last_batch_seconds": None if self._last is None else round(max(0.0, now - self._written), 1),
            "under_way_seconds": None if waited is None else round(waited, 1),
        }


@contextmanager
def answering(spec: JobSpec, alerts: AlertsNow) -> Iterator[Listener]:
    """Answer while the block runs, where the job file says so; only then load what is needed for it.

    Gives what hears of the run for it. `alerts` gives how the alerts of each target stand.

    Raises:
        SetupError: a port is taken, or a host is not one of this machine.
        ConfigError: the page needs a package that is not installed.
    """
    with ExitStack() as stack:
        listeners = list[Listener]()
        if spec.metrics is not None:
            listeners.append(stack.enter_context(_prometheus(spec, alerts)))
        if spec.page is not None:
            listeners.append(stack.enter_context(_page(spec)))
        yield Listener.of(listeners)


@contextmanager
def _prometheus(spec: JobSpec, alerts: AlertsNow) -> Iterator[Listener]:
    from spark_pace.prometheus import Offered
    from spark_pace.watching.page import served

    assert spec.metrics is not None
    offered = Offered(spec.name, [rule.name for rule in spec.rules], alerts)

    with served("metrics", offered.answer, spec.metrics):
        yield Listener(
            lambda report: offered.after(report, time.time()),
            offered.rules_differ,
            lambda job: offered.run(rule.name for rule in job.rules),
        )


@contextmanager
def _page(spec: JobSpec) -> Iterator[Listener]:
    from spark_pace.io.timeline import require_plotly
    from spark_pace.watching.facts import Facts, facts
    from spark_pace.watching.history import Seen
    from spark_pace.watching.page import POLICY_OF_ANSWERS, Pages, served
    from spark_pace.watching.subject import Subject, tables_of

    assert spec.page is not None
    require_plotly()
    subjects, seen = [Subject.of(spec)], Seen(tables_of(spec))
    health = Health(spec.page.healthy_within_us / 1e6)

    def look() -> Facts:
        return facts(subjects[-1], seen, datetime.now(timezone.utc))

    def ready(job: JobSpec) -> None:
        subjects[:] = [Subject.of(job)]

    pages = Pages(spec.name, look, lambda: health.told(time.time()))
    try:
        with served("page", pages.answer, spec.page, POLICY_OF_ANSWERS):
            yield Listener(
                lambda batch: health.after(batch, time.time()),
                ready=ready,
                works=lambda is_under_way: health.works(is_under_way, time.time()),
            )
    finally:
        seen.end()
        pages.end()
