"""What a running job answers to those who ask by HTTP: its counters to Prometheus, its page to people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec

if TYPE_CHECKING:  # only jobs that ask for alerts load what sends them
    from spark_pace.alerts.targets import Alerts


@dataclass(frozen=True)
class Heard:
    """What is called while the job runs.

    Attributes:
        batch: with each batch that is written.
        differ: with True while the job's files have other rules than those that run.
        ready: with the job, which may have taken over other rules, when it begins to wait for events.
        empty: where a new job starts and there is no file to read yet.
        works: each second, with True while a batch is under way.
    """

    batch: Callable[[BatchReport], None]
    differ: Callable[[bool], None] = lambda _: None
    ready: Callable[[JobSpec], None] = lambda _: None
    empty: Callable[[], None] = lambda: None
    works: Callable[[bool], None] = lambda _: None


@contextmanager
def answering(spec: JobSpec, alerts: Alerts | None) -> Iterator[Heard]:
    """Answer while the block runs, where the job file says so; only then load what is needed for it.

    Gives what hears of the run. Alerts are sent at once when it hears of a batch.

    Raises:
        SetupError: a port is taken, or a host is not one of this machine.
        ConfigError: the page needs a package that is not installed.
    """
    with ExitStack() as stack:
        heard = list[Heard]()
        if spec.metrics is not None:
            heard.append(stack.enter_context(_prometheus(spec, alerts)))
        if spec.page is not None:
            heard.append(stack.enter_context(_page(spec)))
        if alerts is not None:
            heard.append(Heard(lambda _: alerts.look()))

        def batch(report: BatchReport) -> None:
            for one in heard:
                one.batch(report)

        def differ(rules: bool) -> None:
            for one in heard:
                one.differ(rules)

        def ready(job: JobSpec) -> None:
            for one in heard:
                one.ready(job)

        def works(is_under_way: bool) -> None:
            for one in heard:
                one.works(is_under_way)

        yield Heard(batch, differ, ready, works=works)


@contextmanager
def _prometheus(spec: JobSpec, alerts: Alerts | None) -> Iterator[Heard]:
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
        yield Heard(batch, offered.rules_differ, ready)


@contextmanager
def _page(spec: JobSpec) -> Iterator[Heard]:
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
            yield Heard(
                lambda batch: health.after(batch, time.time()),
                ready=ready,
                works=lambda is_under_way: health.works(is_under_way, time.time()),
            )
    finally:
        seen.end()
        pages.end()
