"""`spark-pace`: the commands, and how their errors end.

Exit codes: 0 done, 1 failed, 2 the input is wrong, 130 stopped by ctrl-C.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import click

from spark_pace import __version__
from spark_pace.errors import ConfigError, exit_code, shown


def path(text: str) -> Path:
    """A path of this machine. The readers say whether a file is there, each with the same message."""
    if "://" in text:
        raise ConfigError.of(text, "must be a path of this machine", "an address", "Copy it here.")
    return Path(text)


_OPERATORS = click.option(
    "--operators",
    multiple=True,
    metavar="MODULE",
    help="Allow a module that rules name as Python operators; a job file names them itself.",
)


class _Number(click.FloatRange):
    """A number that is finite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse others: no bound keeps nan out."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


_POSITIVE = _Number(min=0, min_open=True)
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="The first rows as a table; all as CSV or JSON lines.",
)


def _subject(text: str) -> Any:
    """What is to be watched: a job file, or the address or path of a sink."""
    from spark_pace.watching.subject import subject_of

    return subject_of(text)


def _tables(text: str) -> Any:
    """The path of a sink; of a job file, with what it says of reaching the store."""
    from spark_pace.watching.subject import tables_at

    return tables_at(text)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def commands() -> None:
    """Complex event processing on Spark: rules in YAML, matches in Delta tables."""


@commands.command()
@click.argument("files", nargs=-1, required=True, type=path)
@click.option(
    "--against",
    is_flag=False,
    flag_value="",
    metavar="[OUT]",
    help="Say what a start would do with each rule of one file: OUT is the folder of a checkpoint, or of the "
    "tables in which it lies; of a job file by default its own. Exit code 1 if a start would refuse it.",
)
def check(files: tuple[Path, ...], against: str | None) -> None:
    """Check rule and job files: every problem with file:line:column."""
    from spark_pace.cli.check_command import check_command

    check_command(files, against)


@commands.command(
    help="Explain the rules of rule and job files: where each is evaluated, what runs in parallel, "
    "what is carried and how that is bounded, what it costs."
)
@click.argument("files", nargs=-1, required=True, type=path)
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each rule, one a line.")
def explain(files: tuple[Path, ...], as_json: bool) -> None:
    """Print what is known of each rule before it runs."""
    from spark_pace.cli.replay_command import explain_command

    explain_command(files, as_json)


@commands.command(
    help="Run RULES (a rule file, or a job file) over EVENTS (JSON lines, CSV, Parquet, or lines "
    "of text; a file, or a directory of them; or an address in an object store or on HDFS) without Spark."
)
@click.argument("rules", type=path)
@click.argument("events")
@click.option(
    "-o",
    "--out",
    type=path,
    help="Write the matches here (.json or .csv) instead of a table to the terminal.",
)
@click.option(
    "--html",
    "page",
    type=path,
    metavar="FILE",
    help="Write a page that draws the matches on a time axis (needs: pip install 'spark-pace[html]').",
)
@_OPERATORS
@click.option(
    "--list",
    "listed",
    type=click.IntRange(min=0),
    default=3,
    metavar="N",
    help="List at most N late events, bad records and failed selections each (3).",
)
@click.option(
    "--as-read",
    is_flag=True,
    help="Read the files of EVENTS in the order in which the job RULES has read them so far, with the ticks "
    "of its clock, as its checkpoint says.",
)
def replay(rules: Path, events: str, operators: tuple[str, ...], **asked: Any) -> None:
    """Print the matches, or write them to a file."""
    from spark_pace.cli.replay_command import replay_command

    _see_current_directory()
    replay_command(rules, events, operators, **asked)


@commands.command(
    help="Say why an event of EVENTS is part of the matches of a rule in RULES (a rule file, or a job file), "
    "or of none: which selections were open there, which candidates failed, and at which condition."
)
@click.argument("rules", type=path)
@click.argument("events")
@click.option("--rule", required=True, metavar="NAME", help="The rule.")
@click.option(
    "--at",
    required=True,
    metavar="POSITION",
    help="The event: its seq in the rule's stream, or source:offset, as in the events of a match; "
    "or source:L and the line of a file of text.",
)
@click.option("--key", metavar="JSON", help="The key, beside a seq, where the rule has partition_by.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@_OPERATORS
def why(rules: Path, events: str, operators: tuple[str, ...], **asked: Any) -> None:
    """Print what is known of one event."""
    from spark_pace.cli.replay_command import why_command

    why_command(rules, events, operators, **asked)


@commands.command()
@click.argument("job", type=path)
@click.option(
    "--reset-rule",
    multiple=True,
    metavar="NAME",
    help="Drop what the checkpoint keeps for this rule: it begins anew. May be given several times.",
)
@click.option(
    "--keep-running",
    is_flag=True,
    help="Start the job again where it ends by a failure that may pass, after pauses of 5 s to 5 min.",
)
@click.option("--kept", is_flag=True, hidden=True)
def run(job: Path, reset_rule: tuple[str, ...], keep_running: bool, kept: bool) -> None:
    """Run the streaming JOB; ctrl-C stops it cleanly, and running it again goes on where it stopped."""
    _see_current_directory()
    from spark_pace.cli.log import code_of_run

    if keep_running:
        from spark_pace.cli.keep_running import keep_running_command

        sys.exit(code_of_run(job, lambda: keep_running_command(job, reset_rule)))
    if kept:
        from spark_pace.cli.keep_running import code_of_kept, kept_run

        sys.exit(code_of_run(job, lambda: kept_run(job), code_of_kept))
    from spark_pace.cli.run import run_command

    sys.exit(code_of_run(job, lambda: run_command(job, reset_rule)))


@commands.command()
@click.argument("out", type=_subject)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; docs/operations.md has its keys.")
def status(out: Any, as_json: bool) -> None:
    """Show what a job has done and where it stands, from the tables in OUT: its folder, or the job file.

    Of a job file it says too whether the job runs on this machine, and which alerts wait. What is wrong in
    it and its rule files is told at the end.
    """
    from spark_pace.cli.status import print_json, status_command

    (print_json if as_json else status_command)(out)


@commands.command(
    help="Write one HTML file about a job, running or not: how far and how fast it is, what it keeps, its "
    "matches, what is late, bad or stands still. OUT is the folder of its tables, or the job file. "
    "Needs: pip install 'spark-pace[html]'."
)
@click.argument("out", type=_subject)
@click.option("-o", "--out", "page", type=path, default="report.html", show_default=True, help="The file.")
def report(out: Any, page: Path) -> None:
    """Write the page."""
    from spark_pace.cli.status import report_command

    report_command(out, page)


@commands.command()
@click.argument("out", type=_subject)
def watch(out: Any) -> None:
    """Show on the terminal how a job does, again and again, until ctrl-C. OUT as of status."""
    from spark_pace.cli.status import watch_command

    watch_command(out)


@commands.command(
    help="Answer an SQL QUERY over the tables in OUT: matches, late, quarantine, metrics, "
    "rule_changes, and a view of each rule's matches under its name."
)
@click.argument("out", type=_tables)
@click.argument("query")
@_FORMAT
def sql(out: Any, query: str, form: str) -> None:
    """Print the answer to a query."""
    from spark_pace.cli.show import sql_command

    sql_command(out, query, form)


@commands.command(
    help="Run a query with MATCH_RECOGNIZE over files (JSON lines, CSV or Parquet) without Spark: QUERY is a "
    "file with SELECT columns FROM table MATCH_RECOGNIZE (...) [ORDER BY columns] [LIMIT n]."
)
@click.argument("query", type=path)
@click.option("--table", "tables", multiple=True, metavar="NAME=FILE", help="The file of a table of QUERY.")
@click.option("-o", "--out", type=path, help="Write the rows here (.json, .csv or .parquet).")
@_FORMAT
@click.option("--dialect", default="spark", show_default=True, help="How QUERY is written, such as trino.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="The most steps of the search from one row where conditions read the match.",
)
def match(query: Path, **asked: Any) -> None:
    """Print the rows, or write them."""
    from spark_pace.cli.match_command import match_command

    match_command(query, **asked)


@commands.command(
    help="Say how many task slots the JOB needs so that no queue of selections becomes long, and whether it "
    "survives a lost slot. The load is measured from the table metrics of a run, unless it is given."
)
@click.argument("job", type=path)
@click.option(
    "--queue",
    type=click.IntRange(min=2),  # so that the selections of a lost slot find room
    default=8,
    show_default=True,
    help="The most selections in a slot.",
)
@click.option(
    "--probability",
    type=_Number(0, 1, min_open=True, max_open=True),
    default=0.99,
    show_default=True,
    help="How often that must hold.",
)
@click.option("--rate", type=_POSITIVE, help="Selections a second; by default as measured.")
@click.option(
    "--seconds", type=_POSITIVE, help="Seconds of an operator for a selection; by default as measured."
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    help="The tasks that run at once; by default those of this machine.",
)
def plan(job: Path, **options: Any) -> None:
    """Print what a model of queues says."""
    from spark_pace.cli.plan_command import Options, plan_command

    plan_command(job, Options(**options))


@commands.command(
    help="Drive a job as RUN says: send it events at the times of a schedule, and measure the latencies of "
    "its matches, its throughput, and where it is saturated. Exit code 1 if its matches are not the core's."
)
@click.argument("run", type=path)
@click.option("-o", "--out", type=path, help="A folder for all files; by default out/bench/ and RUN's name.")
@click.option("--variant", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
def bench(run: Path, out: Path | None, variant: tuple[str, ...]) -> None:
    """Measure, print, and write the reports."""
    from spark_pace_bench.command import bench_command

    _see_current_directory()
    bench_command(run, out, variant)


def main() -> None:
    """Run the command that the arguments name; exit with the code for how it ended."""
    try:
        commands(prog_name="spark-pace", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _fail("stopped", 130)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        _fail(shown(error), exit_code(error))


def _fail(message: str, code: int) -> None:
    click.echo(message, err=True)
    sys.exit(code)


def _see_current_directory() -> None:
    """Let Python find operators' modules in the current directory, in this process and in Spark's workers.

    It comes behind all that is installed, so a file that lies there is not taken for a library of that name.
    """
    here = str(Path.cwd())
    sys.path[:] = filter(None, sys.path)  # the empty name is this folder, too
    if here not in sys.path:
        sys.path.append(here)
