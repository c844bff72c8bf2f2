"""Reads where a running job answers by HTTP: `metrics` and `page` of a job file."""

from __future__ import annotations

from spark_pace.job_file.spec import HEALTHY_WITHIN_US, Endpoint, Page
from spark_pace.rules.document.section import Section
from spark_pace.rules.lengths import read_duration

PAGE_KEYS = ("port", "host", "healthy_within")


def read_metrics(fields: Section) -> Endpoint | None:
    """Read where the counters of the job are offered; None if they are not."""
    mapping = fields.mapping("metrics", "{port: 9464}")
    return None if mapping is None else _endpoint(Section(mapping, fields.report, ("port", "host")), 9464)


def read_page(fields: Section) -> Page | None:
    """Read where the page of the job is, and how long a batch may take; None if there is none."""
    mapping = fields.mapping("page", "{port: 4050}")
    if mapping is None:
        return None
    keys = Section(mapping, fields.report, PAGE_KEYS)
    at, node = _endpoint(keys, 4050), keys.node("healthy_within")
    most_us = HEALTHY_WITHIN_US
    if node is not None:
        read = read_duration(node, fields.report, "a duration such as 5 min", least=1)
        most_us = HEALTHY_WITHIN_US if read is None else read
    return None if at is None else Page(at, most_us)


def _endpoint(keys: Section, usual: int) -> Endpoint | None:
    keys.require("port", f"port: {usual}")
    port, host = keys.whole("port", 1, 65_535), keys.text("host", "host: 127.0.0.1")
    if port is None:
        return None
    return Endpoint(port) if host is None else Endpoint(port, host.text)
