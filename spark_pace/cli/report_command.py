"""`spark-pace report`: writes a page about a job, from its tables and its checkpoint, without Spark."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import click

from spark_pace.errors import ConfigError
from spark_pace.io.html.template import require_plotly, write_page
from spark_pace.watching.facts import facts
from spark_pace.watching.page import report
from spark_pace.watching.seen import Seen
from spark_pace.watching.subject import Subject


def report_command(subject: Subject, out: Path) -> None:
    """Do what `spark_pace.cli.main.report` says."""
    if not out.parent.is_dir():
        do = f"Make {out.parent} first, or choose another."
        raise ConfigError.of("--out", "must lie in a folder that is there", str(out), do)
    require_plotly()
    write_page(report(facts(subject, Seen(subject.tables), datetime.now(timezone.utc))), out, "report")
    click.echo(f"{out}: written")
