"""`spark-pace explain` and `why`: what is known of rules before they run, and of one event after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from spark_pace.cli.replay_command import refuse_beside_job
from spark_pace.errors import ConfigError
from spark_pace.job_file import JobFile, read_job, rules_in
from spark_pace.job_file.reader import MANY_PROBLEMS
from spark_pace.reasons import why
from spark_pace.rules import explain, explain_as_json, load_rules


def explain_command(files: Sequence[Path], as_json: bool) -> None:
    """Do what `spark_pace.cli.main.explain` says."""
    if as_json:
        for one in rules_in(files):
            click.echo(json.dumps(explain_as_json(*one), ensure_ascii=False))
        return
    click.echo("\n\n".join("\n".join(explain(*one)) for one in rules_in(files)))


def why_command(
    rules_file: Path,
    events: str,
    operators: Sequence[str],
    *,
    rule: str,
    at: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Do what `spark_pace.cli.main.why` says. It calls no operator, allowed or not."""
    file = JobFile(rules_file, MANY_PROBLEMS)
    if rule in file.paused:
        must, got = "must name a rule that runs", f"{rule}, which is paused"
        raise ConfigError.of("--rule", must, got, "Remove its enabled: false, in a copy of the file perhaps.")
    if file.is_job:
        refuse_beside_job(rules_file, operators)
        job = read_job(rules_file)
        spark = job.access(events)
        answer = why(job.rules, events, rule=rule, at=at, key=key, spark=spark, **job.events.stream)
    else:
        answer = why(load_rules(rules_file), events, rule=rule, at=at, key=key)
    if as_json:
        click.echo(json.dumps(asdict(answer), ensure_ascii=False))
    else:
        click.echo(str(answer))
