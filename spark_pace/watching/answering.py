"""What a running job answers to those who ask by HTTP: its counters to Prometheus, its page to people."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec
from spark_pace.spark.summary import Listener

if TYPE_CHECKING:  # only jobs that ask for alerts load what sends them
    from spark_pace.alerts.targets import Alerts


@contextmanager
def answering(spec: JobSpec, alerts: Alerts | None) -> Iterator[Listener]:
    """Answer while the block runs, where the job file says so; only then load what is needed for it.

    Gives what hears of the run for it. Alerts are sent at once after a batch.

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
        if alerts is not None:
            listeners.append(Listener(lambda _: alerts.look()))
        yield Listener.of(listeners)


@contextmanager
def _prometheus(spec: JobSpec, alerts: Alerts | None) -> Iterator[Listener]:
    from spark_pace.prometheus import Offered
    from spark_pace.watching.server import served

    assert spec.metrics is not None
    offered = Offered(spec.name, [rule.name for rule in spec.rules])
    if alerts is not None:
        offered.alerts = lambda: alerts.counts

    def batch(report: BatchReport) -> None:
        offered.after(report, time.time())

    def ready(job: JobSpec) -> None:
        offered.run(rule.name for rule in job.rules)

    with served("metrics", offered.answer, spec.metrics):
        yield Listener(batch, offered.rules_differ, ready)


@contextmanager
def _page(spec: JobSpec) -> Iterator[Listener]:
    from spark_pace.io.html.template import require_plotly
    from spark_pace.watching.facts import Facts, facts
    from spark_pace.watching.health import Health
    from spark_pace.watching.page import POLICY_OF_ANSWERS, Pages
    from spark_pace.watching.seen import Seen
    from spark_pace.watching.server import served
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
