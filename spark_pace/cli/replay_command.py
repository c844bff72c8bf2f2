"""`spark-pace replay`, `why` and `explain`: what rules find in events, why, and how they would run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from spark_pace.api import Explained
from spark_pace.cli.show import WRITERS, require_folder, show
from spark_pace.core.local_run import IN_THIS_PROCESS, Calls
from spark_pace.core.plan.rule import Rule
from spark_pace.core.python_functions import load_operator
from spark_pace.errors import ConfigError, counted, one_line
from spark_pace.io.event_files import at_position
from spark_pace.io.replay import Replay, counts_told, replay_files, told_of_ignored
from spark_pace.io.timeline import require_plotly
from spark_pace.job_file import FilesSource, JobFile, JobSpec, rules_in, rules_of
from spark_pace.job_file.reader import MANY_PROBLEMS

if TYPE_CHECKING:
    from spark_pace.spark.sources.files import FilesRead

_UNLIMITED_US = 10**12  # somebody waits for `replay`, and may end it: no call is ended here


def replay_command(
    rules_file: Path,
    events: str,
    operators: Sequence[str],
    *,
    out: Path | None,
    page: Path | None,
    listed: int,
    as_read: bool,
) -> None:
    """Do what `spark_pace.cli.main.replay` says."""
    _require_writable(out, page)
    rules, job = _read(rules_file, operators)
    read = _as_read(job) if as_read else None
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
    if page is not None:
        replayed.timeline(f"{rules_file} over {events}").write(page)
    if out is not None:
        WRITERS[out.suffix](replayed.matches, rules, out)
    elif page is None:
        show(replayed.matches, rules)
    _summarise(replayed, rules, listed, has_ended=read is None or read.ended)


def _require_writable(out: Path | None, page: Path | None) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if out is not None and out.suffix not in WRITERS:
        must = f"must end in {' or '.join(WRITERS)}"
        raise ConfigError.of("--out", must, str(out), "Choose one of them.")
    for option, path in (("--out", out), ("--html", page)):
        if path is not None:
            require_folder(option, path)
    if page is not None:
        require_plotly()


def _read(rules_file: Path, operators: Sequence[str]) -> tuple[tuple[Rule, ...], JobSpec | None]:
    """The rules of a file, and the job if it is a job file, with which no ``--operators`` may be given."""
    if operators and JobFile(rules_file, whole=False).is_job:
        got = f"{operators[0]} beside the job file {rules_file}"
        do = "Leave it out: the job file's own `operators` count."
        raise ConfigError.of("--operators", "must be given with a rule file only", got, do)
    return rules_of(rules_file)


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


def explain_command(files: Sequence[Path], as_json: bool) -> None:
    """Do what `spark_pace.cli.main.explain` says."""
    found = Explained(rules_in(files))
    for one in found.as_json() if as_json else [found]:
        click.echo(json.dumps(one, ensure_ascii=False) if as_json else str(one))


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
    from spark_pace.reasons import why

    if rule in JobFile(rules_file, MANY_PROBLEMS).paused:
        must, got = "must name a rule that runs", f"{rule}, which is paused"
        raise ConfigError.of("--rule", must, got, "Remove its enabled: false, in a copy of the file perhaps.")
    rules, job = _read(rules_file, operators)
    reading = {} if job is None else {**job.events.stream, "spark": job.access(events)}
    answer = why(rules, events, rule=rule, at=at, key=key, **reading)
    click.echo(json.dumps(asdict(answer), ensure_ascii=False) if as_json else str(answer))
