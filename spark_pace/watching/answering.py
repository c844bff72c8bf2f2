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
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

if TYPE_CHECKING:  # only jobs that ask for alerts load what sends them
    from spark_pace.alerts.targets import Alerts
    from spark_pace.prometheus import Offered

Hear = Callable[[BatchReport], None]


@dataclass(frozen=True)
class Heard:
    """What is called while the job runs.

    Attributes:
        batch: with each batch that is written.
        differ: with True while the job's files have other rules than those that run.
        ready: when a query waits for events.
    """

    batch: Hear
    differ: Callable[[bool], None] = lambda _: None
    ready: Callable[[], None] = lambda: None


@contextmanager
def answering(spec: JobSpec, alerts: Alerts | None) -> Iterator[Heard]:
    """Answer while the block runs, where the job file says so; only then load what is needed for it.

    Gives the function that hears of a batch once it is written, and lets alerts of it be sent at once, and
    the one that hears of rules in the job's files.

    Raises:
        SetupError: a port is taken, or a host is not one of this machine.
        ConfigError: the page needs a package that is not installed.
    """
    with ExitStack() as stack:
        hears: list[Hear] = []
        differs: list[Callable[[bool], None]] = []
        if spec.metrics is not None:
            offered = stack.enter_context(_prometheus(spec, alerts))
            hears.append(lambda batch: offered.after(batch, time.time()))
            differs.append(offered.rules_differ)
        if spec.page is not None:
            hears.append(stack.enter_context(_page(spec)))
        if alerts is not None:
            hears.append(lambda _: alerts.look())

        def hear(batch: BatchReport) -> None:
            for one in hears:
                one(batch)

        def differ(rules: bool) -> None:
            for one in differs:
                one(rules)

        yield Heard(hear, differ)


@contextmanager
def _prometheus(spec: JobSpec, alerts: Alerts | None) -> Iterator[Offered]:
    from spark_pace.prometheus import Offered, served

    assert spec.metrics is not None
    offered = Offered(spec.name, [rule.name for rule in spec.rules])
    if alerts is not None:
        offered.alerts = lambda: alerts.counts
    with served(offered, spec.metrics.host, spec.metrics.port):
        yield offered


@contextmanager
def _page(spec: JobSpec) -> Iterator[Hear]:
    from spark_pace.io.html.template import require_plotly
    from spark_pace.watching.facts import Facts, facts
    from spark_pace.watching.health import Health
    from spark_pace.watching.seen import Seen
    from spark_pace.watching.server import Pages, page_served
    from spark_pace.watching.subject import Subject

    assert spec.page is not None
    require_plotly()
    subject, seen = Subject.of(spec), Seen(spec.sink_path)
    health = Health(Checkpoint(spec.checkpoint_folder), spec.page.healthy_within_us / 1e6)

    def look() -> Facts:
        return facts(subject, seen, datetime.now(timezone.utc))

    pages = Pages(spec.name, look, lambda: health.told(time.time()))
    try:
        with page_served(pages, spec.page.at.host, spec.page.at.port):
            yield lambda batch: health.after(batch, time.time())
    finally:
        seen.end()
        pages.end()
