"""The work of the functions that the package exports: check the arguments, then call the right part.

`check` and `explain`, with what they give, are exported as they stand here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_pace import job_file
from spark_pace import rules as rule_files
from spark_pace.arguments import (
    in_python,
    integer,
    listed,
    of_one_stream,
    require,
    require_classic,
    require_path,
    whole,
)
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.errors import ConfigError, Problem, one_line
from spark_pace.rules import explain as lines_of
from spark_pace.rules import explain_as_json
from spark_pace.rules.document.report import Report, TooManyError
from spark_pace.rules.rule_file import read_rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_pace import Rules
    from spark_pace.io.html.timeline import Timeline
    from spark_pace.io.replay import Replay
    from spark_pace.job_file import JobSpec
    from spark_pace.reasons import Why

_SOURCES = (str, Path, dict)
_MOST_CHARACTERS = 10_000  # of a line, as of a command
_OF_A_SINK = "Name the `path` of a job's sink."


def load_rules(paths: object, events: EventSchema | None) -> tuple[Rule, ...]:
    """Do what `spark_pace.load_rules` says."""
    files = listed(paths, _SOURCES)
    if events is not None:
        do = "Take the `schema` of a rule that was loaded."
        require("events", events, EventSchema, "an EventSchema", do)
    if not _is_job_file(files):
        return rule_files.load_rules(files, events=events)
    if events is not None:
        must = (
            "must be loaded without `events`, "
            "for a job and its rule files say themselves what an event looks like"
        )
        raise ConfigError.of(str(files[0]), must, "both", "Leave `events` out.")
    return job_file.read_job(files[0]).rules


def _is_job_file(given: Sequence[object]) -> bool:
    """True if what was given for rules is the path of one job file."""
    (first, *more) = given
    is_path = not more and isinstance(first, (str, Path)) and "\n" not in str(first)
    return is_path and job_file.is_job(str(first))


def _in_a_stream(rules: object) -> tuple[tuple[Rule, ...], JobSpec | None]:
    """Return the rules that are given, and the job whose settings order their events, if one is given."""
    given = listed(rules, (Rule, *_SOURCES))
    if all(isinstance(one, Rule) for one in given):
        return of_one_stream(given), None
    files = listed(rules, _SOURCES)
    if not _is_job_file(files):
        return rule_files.load_rules(files), None
    job = job_file.read_job(files[0])
    return job.rules, job


def read_in(rules: object) -> tuple[tuple[Rule, ...], str | None]:
    """Return the rules that are given, and the format of the job's source, if a job is given."""
    given, job = _in_a_stream(rules)
    return given, None if job is None else job.source.format


def problems_of(rules: object) -> tuple[Problem, ...]:
    """Return all that is wrong with the rules, or the job, that are given."""
    given = listed(rules, (Rule, *_SOURCES))
    if all(isinstance(one, Rule) for one in given):
        of_one_stream(given)
        return ()
    files = listed(rules, _SOURCES)
    if _is_job_file(files):
        return tuple(job_file.check_files(files))
    report = Report()
    with suppress(TooManyError):
        read_rules(files, None, report)
    return report.problems


def checked(rules: object) -> tuple[Rule, ...]:
    """Return the rules that are given, or read them from the files, texts or dicts that are given."""
    return _in_a_stream(rules)[0]


def replay(rules: object, events: object) -> Replay:
    """Do what `spark_pace.replay` says."""
    from spark_pace.io.replay import replay_files, replay_table

    given, job = _in_a_stream(rules)
    spark = {} if job is None else job.access(events)
    if isinstance(events, (str, Path)):
        require_path("events", events)
        return replay_files(given, events, spark=spark, **({} if job is None else job.reading))
    return replay_table(given, events, spark=spark, **({} if job is None else job.events.stream))


def why(rules: object, events: object, rule: str, at: int | str, key: str | None) -> Why:
    """Do what `spark_pace.why` says."""
    from spark_pace.io.data_frames import table_of
    from spark_pace.reasons import why as why_of

    given, job = _in_a_stream(rules)
    stream = {} if job is None else job.events.stream
    require("rule", rule, str, "the name of a rule", "Give its `name`.")
    seq = integer(at)
    if seq is None:
        require("at", at, str, "a seq or source:offset", "Take it from the events of a match.")
    require("key", key, (str, type(None)), "the text of a JSON object", "Write it by json.dumps.")
    is_path = isinstance(events, (str, Path))
    if is_path:
        require_path("events", events)
    read = str(events) if is_path else table_of(events, input_schema(given).own)
    spark = {} if job is None else job.access(read if is_path else "")
    with in_python():
        position = at if seq is None else seq
        return why_of(given, read, rule=rule, at=position, key=key, spark=spark, **stream)


def read_table(out: object, name: str, columns: Sequence[str] | None) -> pa.Table:
    """Do what `spark_pace.read_table` says."""
    from spark_pace.io import query

    require("out", out, (str, Path), "a path", _OF_A_SINK)
    require_path("out", out)
    tables = (*query.TABLES, query.CHANGES)
    require("name", name, str, "the name of a table", f"Use one of: {', '.join(tables)}.")
    require("columns", columns, (list, tuple, type(None)), "a list of names", "Leave it out to have all.")
    return query.read_table(str(out), name, columns)


def timeline(matches: Any, title: object) -> Timeline:
    """Do what `spark_pace.timeline` says."""
    from spark_pace.core.operate.match_table import FIXED_COLUMNS
    from spark_pace.io.html.match_frame import Matches
    from spark_pace.io.html.timeline import Timeline

    do = "Give the matches of a replay, or read_table(out, 'matches')."
    require("matches", matches, (Matches, pa.Table), "a table of matches", do)
    require("title", title, str, "a text", "Leave it out to have the heading matches.")
    table = matches.table if isinstance(matches, Matches) else matches
    lacking = [name for name in FIXED_COLUMNS if name not in table.column_names]
    if lacking:
        must, got = "must have the columns of matches", f"a table without {', '.join(lacking)}"
        raise ConfigError.of("matches", must, got, do)
    return Timeline(table, str(title))


def create_views(spark: Any, out: object, rules: object) -> tuple[str, ...]:
    """Do what `spark_pace.create_views` says."""
    from pyspark.sql import SparkSession

    from spark_pace.io.delta_tables import create_views as create

    do = "Build one by SparkSession.builder, with Delta's extension and catalog."
    require_classic("spark", spark)
    require("spark", spark, SparkSession, "a SparkSession", do)
    require("out", out, (str, Path), "a path", _OF_A_SINK)
    require_path("out", out)
    return create(spark, str(out), () if rules == () else checked(rules))


def detect(
    df: DataFrame, rules: object, delay_us: int, tie_break: Sequence[str], slots: int | None
) -> DataFrame:
    """Do what `spark_pace.detect` says."""
    from pyspark.sql import DataFrame

    from spark_pace.spark.detect import detect as detect_in

    do = "Read one by spark.readStream; for a table in memory there is replay."
    require_classic("df", df)
    require("df", df, DataFrame, "a streaming DataFrame", do)
    delay_us = whole("delay_us", delay_us, 0, "Give microseconds, such as 60_000_000.")
    require("tie_break", tie_break, (list, tuple), "a list of attributes", "Leave it out to order by all.")
    if slots is not None:
        slots = whole("slots", slots, 1, "Leave it out to have one for each shuffle partition.")
    return detect_in(df, checked(rules), delay_us=delay_us, tie_break=tie_break, slots=slots)


def sql(spark: Any, query: object, dialect: object, most_steps: object) -> DataFrame:
    """Do what `spark_pace.sql` says."""
    from pyspark.sql import SparkSession

    from spark_pace.spark.row_patterns import sql as sql_in

    require_classic("spark", spark)
    require("spark", spark, SparkSession, "a SparkSession", "Build one by SparkSession.builder.")
    require("query", query, str, "a text", "Give the text of an SQL query.")
    require("dialect", dialect, str, "the name of a dialect", "Leave it out for Spark's.")
    steps = whole("most_steps", most_steps, 1, "Leave it out to have a million.")
    return sql_in(spark, str(query), str(dialect), steps)


@dataclass(frozen=True, repr=False)
class Check:
    """What is wrong with rules; `print` and a notebook show it as the command ``spark-pace check`` does.

    Attributes:
        problems: a `Problem` of `spark_pace.errors` for each thing that is wrong, with its place (`where`),
            what must hold (`must`), what was there (`got`) and what to do (`do`); empty if nothing is.

    Example:
        >>> import spark_pace
        >>> found = spark_pace.check({"events": {"schema": "time TIMESTAMP", "event_time": "time"}})
        >>> [problem.must for problem in found.problems]
        ['must have the key "rules"']
    """

    problems: tuple[Problem, ...]

    def __repr__(self) -> str:
        """A line for each problem."""
        return "\n".join(one_line(str(one), _MOST_CHARACTERS) for one in self.problems) or "no problems"

    def _repr_html_(self) -> str:
        return _as_html(repr(self))


@dataclass(frozen=True, repr=False)
class Explained:
    """What is known of rules before they run; `print` and a notebook show it as ``spark-pace explain`` does.

    Attributes:
        rules: each rule, with the format of its job's source; None where no job was given.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> spark_pace.explain(rules).as_json()[0]["cost"]["growth"]
        'their number; each that matches is a match'
    """

    rules: tuple[tuple[Rule, str | None], ...]

    def as_json(self) -> list[dict[str, Any]]:
        """The same as an object for each rule, as ``explain --json`` gives it; see docs/rules/explain.md."""
        return [explain_as_json(*one) for one in self.rules]

    def __repr__(self) -> str:
        """The lines of each rule."""
        return "\n\n".join("\n".join(lines_of(*one)) for one in self.rules)

    def _repr_html_(self) -> str:
        return _as_html(repr(self))


def check(rules: Rules) -> Check:
    """Find what is wrong with rules, or with a job file and its rules, without running them.

    Args:
        rules: as of `spark_pace.load_rules`. Several rule files are checked as rules that run together.

    Returns:
        The problems, if there are any.

    Raises:
        ConfigError: the argument is none of these.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: y > 5]}}]
        ... '''
        >>> spark_pace.check(rules)  # doctest: +ELLIPSIS
        rules:3:46 rules[0].pattern.sequence[0].a — must name an attribute ...; got "y". Use one of: time, x.
    """
    return Check(problems_of(rules))


def explain(rules: Rules) -> Explained:
    """Tell how rules run: what is decided where, what runs in parallel, what is carried, and what it costs.

    Args:
        rules: as of `spark_pace.replay`.

    Returns:
        What is known of each rule.

    Raises:
        RuleError: the rules are wrong.
        ConfigError: the job file is wrong, or the argument is none of these.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> print(spark_pace.explain(rules))  # doctest: +ELLIPSIS
        rule high
          conditions   a: x > 5.0  [intake]
        ...
    """
    given, source_format = read_in(rules)
    return Explained(tuple((rule, source_format) for rule in given))


def _as_html(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(text)}</pre>'
