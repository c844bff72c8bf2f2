"""`spark-pace replay`: reads events, runs the core on them, and shows or writes the matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from spark_pace.cli.show import WRITERS, require_folder, show
from spark_pace.core.local_run import IN_THIS_PROCESS, Calls
from spark_pace.core.plan.rule import Rule
from spark_pace.core.python_functions import load_operator
from spark_pace.errors import ConfigError, counted, one_line
from spark_pace.io.event_files import at_position
from spark_pace.io.replay import Replay, counts_told, replay_files, told_of_ignored
from spark_pace.io.timeline import require_plotly
from spark_pace.job_file import FilesSource, JobSpec, is_job, read_job
from spark_pace.rules import load_rules

if TYPE_CHECKING:
    from spark_pace.spark.sources.files import FilesRead

_UNLIMITED_US = 10**12  # somebody waits for `replay`, and may end it: no call is ended here


@dataclass(frozen=True)
class Written:
    """The files to which the matches are written.

    Attributes:
        out: the matches as JSON or CSV; None: the terminal shows them.
        page: the matches on a time axis, in HTML; None: no page.
    """

    out: Path | None
    page: Path | None

    def check(self) -> None:
        """Raise ConfigError for a file that cannot be written, before any work is done."""
        if self.out is not None and self.out.suffix not in WRITERS:
            must = f"must end in {' or '.join(WRITERS)}"
            raise ConfigError.of("--out", must, str(self.out), "Choose one of them.")
        for option, path in (("--out", self.out), ("--html", self.page)):
            if path is not None:
                require_folder(option, path)
        if self.page is not None:
            require_plotly()


def replay_command(
    rules_file: Path,
    events: str,
    written: Written,
    operators: tuple[str, ...],
    listed: int,
    as_read: bool = False,
) -> None:
    """Do what `spark_pace.cli.main.replay` says."""
    written.check()
    of_job = is_job(rules_file)
    if of_job:
        refuse_beside_job(rules_file, operators)
    job = read_job(rules_file) if of_job else None
    read = _as_read(job) if as_read else None
    rules = load_rules(rules_file) if job is None else job.rules
    for rule in rules:
        if job is None:
            _require_allowed(rule, operators)
        if rule.function is not None:
            load_operator(rule.function)
    with _calls(rules) as calls:
        reading = {} if job is None else {**job.reading, "spark": job.access(events)}
        if read is not None:
            reading |= {"as_read": read.parts, "finish": read.ended}
        replayed = replay_files(rules, events, calls=calls, **reading)
    if written.page is not None:
        replayed.timeline(f"{rules_file} over {events}").write(written.page)
    if written.out is not None:
        WRITERS[written.out.suffix](replayed.matches, rules, written.out)
    elif written.page is None:
        show(replayed.matches, rules)
    _summarise(replayed, rules, listed, has_ended=read is None or read.ended)


def refuse_beside_job(job_file: Path, operators: Sequence[str]) -> None:
    """Refuse ``--operators`` with a job file."""
    if operators:
        got = f"{operators[0]} beside the job file {job_file}"
        do = "Leave it out: the job file's own `operators` count."
        raise ConfigError.of("--operators", "must be given with a rule file only", got, do)


@contextmanager
def _calls(rules: Sequence[Rule]) -> Iterator[Calls]:
    """How Python functions are called: in processes of their own, so that none ends this one."""
    if all(rule.function is None for rule in rules):
        yield IN_THIS_PROCESS
        return
    from spark_pace.spark.stages.operator_process import OperatorProcess

    process = OperatorProcess()
    try:
        yield Calls(
            partial(process.call, timeout_us=_UNLIMITED_US), partial(process.fold, timeout_us=_UNLIMITED_US)
        )
    finally:
        process.stop()


def _as_read(job: JobSpec | None) -> FilesRead:
    """What the batches of a job that reads files have read, by its checkpoint."""
    if job is None or not isinstance(job.source, FilesSource):
        got = "a rule file" if job is None else "a job that reads something else"
        raise ConfigError.of("--as-read", "must be given with a job that reads files", got, "Leave it out.")
    from spark_pace.spark.sources.files import read_by_batches

    return read_by_batches(job.checkpoint_folder)


def _require_allowed(rule: Rule, allowed: Sequence[str]) -> None:
    if rule.function is None:
        return
    module = rule.function.split(":")[0]
    if not any(module == name or module.startswith(f"{name}.") for name in allowed):
        must, got = "must name an operator of an allowed module", f'"{rule.function}"'
        raise ConfigError.of(f"rule {rule.name}", must, got, f"Allow it with --operators {module}.")


def _summarise(replayed: Replay, rules: Sequence[Rule], listed: int, *, has_ended: bool) -> None:
    """Print the counts to stderr, so that they never mix with matches."""
    counts = {rule.name: 0 for rule in rules} | replayed.matches.by_rule
    found = counts_told(counts, replayed.by_end)
    records = f"{counted(replayed.read_rows, 'record')}{told_of_ignored(replayed.ignored_rows)}"
    closed = replayed.stats["open"]
    how = "closed by the end of the input" if has_ended else "still open"
    end = f"; {counted(closed, 'selection')} {how}" if closed else ""
    click.echo(f"{records}; matches: {found}{end}", err=True)
    if replayed.unfit:
        click.echo(f"warning: {replayed.unfit}", err=True)
    for told in replayed.columns_told:
        click.echo(told, err=True)
    late, failed = replayed.result.late, replayed.result.failed
    selections = failed.slice(0, listed).select(["rule", "selection_id", "reason"]).to_pylist()
    _list("late", _at_positions(late, listed), late.num_rows, listed)
    _list("bad record", _at_positions(replayed.bad, listed), replayed.bad_rows, listed)
    _list("failed selection", map(_in_words, selections), failed.num_rows, listed)


def _at_positions(table: pa.Table, listed: int) -> Iterator[str]:
    """The first records of a table: the position as `why` takes it, or the file, and the reason."""
    for source, offset, reason in zip(
        *(table[name].slice(0, listed).to_pylist() for name in ("source", "offset", "reason")), strict=True
    ):
        yield at_position(source, offset, reason)


def _in_words(row: Mapping[str, object]) -> str:
    return " ".join(map(str, row.values()))


def _list(what: str, told: Iterable[str], count: int, listed: int) -> None:
    for line in told:
        click.echo(f"{what}: {one_line(line)}", err=True)
    if count > listed:
        click.echo(f"{what}: and {count - listed:,} more", err=True)
