"""`spark-pace check`: what is wrong in rule and job files.

With ``--against OUT`` it tells what a start would do with the rules of a checkpoint. It reads the checkpoint
and the tables, also while the job runs, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, SetupError, StateError, counted, one_line
from spark_pace.io.delta_tables import table_schemas
from spark_pace.io.own_tables import require_columns
from spark_pace.io.query import CHANGES, read_table
from spark_pace.job_file import JobFile, JobSpec, check_files
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, checkpoint_in, read_layout
from spark_pace.spark.stages.merger import CAME_BACK, PAUSED, RESUMED, last_changes
from spark_pace.spark.start import Change, compared, fitting_layout, input_of
from spark_pace.watching.subject import tables_of

_MOST = 10_000  # characters of a line


def check_against(files: Sequence[Path], out: str) -> None:
    """Print what a start would do with each rule of a file.

    Args:
        files: one file, a rule file or a job file, without problems.
        out: the folder of a checkpoint, or of a sink in which one lies; empty: the job's own.

    Raises:
        ConfigError: there is no checkpoint, or more than one file.
        StateError: a start would refuse the job.
    """
    if len(files) > 1:
        must, do = "must come with one file", "Give the command once for each."
        raise ConfigError.of("--against", must, f"{len(files)}", do)
    [file] = files
    read = JobFile(file)
    rules, spec = [rule for rule in read.rules if rule.enabled], read.spec
    checkpoint = _checkpoint(out, spec)
    refused: list[str] = []
    layout = _unless_refused(refused, lambda: _layout(checkpoint, spec)) or read_layout(checkpoint)
    if layout is None:
        click.echo(f"{checkpoint}: no batch yet, so every rule begins with the first one")
    else:
        found = compared(checkpoint, layout, rules)
        before = _changes(out, spec, checkpoint)
        for line in _lines(found, read.paused, checkpoint, before):
            click.echo(one_line(line, _MOST))
        _unless_refused(refused, lambda: found.require_unchanged().layout)
    if spec is not None:
        sink, schemas = tables_of(spec), table_schemas(spec.rules)
        _unless_refused(refused, lambda: require_columns(sink, schemas))
    if refused:
        raise StateError("\n".join(refused))


def _checkpoint(out: str, spec: JobSpec | None) -> Checkpoint:
    if not out:
        if spec is not None:
            return Checkpoint(spec.checkpoint_folder)
        do = "Name the folder of the job's tables, or of its checkpoint."
        raise ConfigError.of("--against", "must say with what a rule file is compared", "no folder", do)
    found = checkpoint_in(out)
    if found is None:
        must = "must name the folder of a checkpoint, or of tables in which one lies"
        do = "Name the checkpoint's folder, which `checkpoint` of the job file says."
        if "://" in out:
            do = "Compare the job file, and name nothing: it says how its checkpoint is reached."
        raise ConfigError.of("--against", must, out, do)
    return found


def _layout(checkpoint: Checkpoint, spec: JobSpec | None) -> Layout | None:
    """The layout of the checkpoint, after it was compared with the settings of the job, if there is one."""
    if spec is None:
        return read_layout(checkpoint)
    secrets = Secrets()
    with secrets.kept():
        return fitting_layout(spec, input_of(spec, checkpoint, secrets))


def _unless_refused(refused: list[str], step: Callable[[], Layout | None]) -> Layout | None:
    """Take a step; if it refuses the job, note why."""
    try:
        return step()
    except (StateError, SetupError) as error:
        refused.append(str(error))
        return None


def _changes(out: str, spec: JobSpec | None, checkpoint: Checkpoint) -> dict[str, str]:
    """The last change of each rule, by the table `rule_changes` beside the checkpoint, as far as it is known.

    Raises:
        StateError: the table is damaged.
    """
    own = spec is not None and checkpoint.path == spec.checkpoint_folder
    for sink in (out, tables_of(spec) if spec is not None and own else ""):
        if sink:
            with suppress(ConfigError):  # the table is not there
                rows = read_table(sink, CHANGES, ["batch_id", "rule", "change"])
                return {rule: change for rule, (_, change) in last_changes(rows).items()}
    return {}


def _lines(
    found: Change, paused: Collection[str], checkpoint: Checkpoint, before: Mapping[str, str]
) -> Iterator[str]:
    """A line for each rule of the job, paused or not, and of the checkpoint.

    `before` has the last change of each rule.
    """
    begin = read_begin(checkpoint, checkpoint.next_batch())
    numbers = {} if begin is None else begin.out_seq
    changed = found.changed()
    differences, first = found.told()
    for name in _named(found.rules):
        if name in changed:
            what = differences.get(name, "a changed rule that it reads")
            do = f"; --reset-rule {name} drops its state and begins it anew" if name in first else ""
            yield f"{name}: refused; got {what}{do}"
        elif name in found.kept:
            yield f"{name}: kept"
        elif name in before or numbers.get(name, 0):
            again = RESUMED if before.get(name) == PAUSED else CAME_BACK
            number = f"out_seq {numbers.get(name, 0):,}"
            yield f"{name}: {again}; it begins with the events read from now on, {number}"
        else:
            yield f"{name}: new; it begins with the events read from now on"
    gone = [name for name, rule in found.begun.items() if name not in found.parts and not rule.hands_on]
    for name in dict.fromkeys((*gone, *paused)):
        dropped = "; its state is dropped, its matches stay" if name in gone else ""
        yield f"{name}: {'paused' if name in paused else 'removed'}{dropped}"
    if found.planned:
        yield f"batch {found.since - 1} is not done: a start does it first, with the rules that are kept"


def _named(rules: Sequence[Rule]) -> list[str]:
    return [rule.name for rule in every_rule(rules) if not rule.hands_on]


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
    check_against(files, against)
