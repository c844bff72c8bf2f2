"""`spark-pace explain`: what is known of each rule before it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from spark_pace.job_file import rules_in
from spark_pace.rules import explain, explain_as_json


def explain_command(files: Sequence[Path], as_json: bool) -> None:
    """Do what `spark_pace.cli.main.explain` says."""
    if as_json:
        for one in rules_in(files):
            click.echo(json.dumps(explain_as_json(*one), ensure_ascii=False))
        return
    click.echo("\n\n".join("\n".join(explain(*one)) for one in rules_in(files)))
