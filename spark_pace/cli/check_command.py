"""`spark-pace check`: what is wrong in rule and job files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from spark_pace.errors import ConfigError, counted
from spark_pace.job_file import check_files


def check_command(files: Sequence[Path], against: str | None) -> None:
    """Do what `spark_pace.cli.main.check` says.

    Raises:
        ConfigError: there are problems in the files, or `--against` cannot be done.
        StateError: a start would refuse the job.
    """
    if problems := check_files(files):
        raise ConfigError(tuple(problems))
    if against is None:
        click.echo(f"{counted(len(files), 'file')}: no problems")
        return
    from spark_pace.cli.check_against import check_against  # what knows checkpoints loads much

    check_against(files, against)
