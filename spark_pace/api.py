"""The functions that the package exports: each checks its arguments, and calls what does the work.

What a function needs it imports when it is called.
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
    require_of_spark,
    require_path,
    whole,
)
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.errors import ConfigError, Problem, one_line
from spark_pace.rules import explain as lines_of
from spark_pace.rules import explain_as_json
from spark_pace.rules.document import Report, TooManyError
from spark_pace.rules.rule_file import read_rules

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import DataFrame, SparkSession

    from spark_pace.io.replay import Matches, Replay
    from spark_pace.io.timeline import Timeline
    from spark_pace.job_file import JobSpec
    from spark_pace.reasons import Why

    RuleSource: TypeAlias = str | Path | dict[str, Any]
    Rules: TypeAlias = Rule | RuleSource | Sequence[Rule] | Sequence[RuleSource]

_SOURCES = (str, Path, dict)
_MOST_CHARACTERS = 10_000  # of a line, as of a command
_WITHOUT_EVENTS = (
    "must be loaded without `events`, for a job and its rule files say themselves what an event looks like"
)
_OF_A_STREAM = "Read one by spark.readStream; for a table in memory there is replay."
_OF_A_SESSION = "Build one by SparkSession.builder."
_OF_A_SLOT = "Leave it out to have one for each shuffle partition."
_OF_A_SINK = "Name the `path` of a job's sink."


def load_rules(
    paths: RuleSource | Sequence[RuleSource], *, events: EventSchema | None = None
) -> tuple[Rule, ...]:
    """Read and check the rules of rule files, or of one job file.

    Args:
        paths: one file or several. A text of more than one line is what a rule file would hold, and a dict
            what YAML would give of it.
        events: what an event looks like, where the rule files do not say it. A job file says it itself, and
            must be read without this.

    Returns:
        The rules, which `replay`, `why`, `detect` and `create_views` take.

    Raises:
        RuleError: with every problem of the rule files.
        ConfigError: with every problem of the job file and its rule files; or an argument is none of these,
            or `events` comes with a job file.

    Example:
        >>> import spark_pace
        >>> rules = spark_pace.load_rules('''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules:
        ...   - {name: high, pattern: {sequence: [a: x > 5]}}
        ...   - {name: low, pattern: {sequence: [a: x < 1]}}
        ... ''')
        >>> [rule.name for rule in rules]
        ['high', 'low']
    """
    files = listed(paths, _SOURCES)
    if events is None:
        return _in_files(files)[0]
    require("events", events, EventSchema, "an EventSchema", "Take the `schema` of a rule that was loaded.")
    if _is_one_path(files) and job_file.JobFile(files[0], whole=False).is_job:
        raise ConfigError.of(str(files[0]), _WITHOUT_EVENTS, "both", "Leave `events` out.")
    return rule_files.load_rules(files, events=events)


def _is_one_path(given: Sequence[object]) -> bool:
    """True if what was given for rules is the path of a file, which may be a job file."""
    return len(given) == 1 and isinstance(given[0], (str, Path)) and "\n" not in str(given[0])


def _in_files(files: Sequence[Any]) -> tuple[tuple[Rule, ...], JobSpec | None]:
    """Return the rules in what was given for them, and the job whose settings order their events, if any."""
    return job_file.rules_of(files[0]) if _is_one_path(files) else (rule_files.load_rules(files), None)


def _in_a_stream(rules: object) -> tuple[tuple[Rule, ...], JobSpec | None]:
    """Return the rules that are given, and the job whose settings order their events, if one is given."""
    given = listed(rules, (Rule, *_SOURCES))
    if all(isinstance(one, Rule) for one in given):
        return of_one_stream(given), None
    return _in_files(listed(rules, _SOURCES))


def replay(rules: Rules, events: object) -> Replay:
    """Find the matches of rules in events, without Spark.

    Args:
        rules: what `load_rules` gave, or takes. With a job file its settings for events count too, as in
            ``spark-pace replay``: which are late, repeats or heartbeats.
        events: the path or the address of files, which are read as a job reads them; or a table, none of
            whose rows is late: a `pyarrow.Table`, a frame of pandas or polars, a list of dicts. Its columns
            are the attributes, the order of its rows does not count; times may be texts by ISO 8601.

    Returns:
        The matches, and the records that are no events. A notebook shows it as a table; its `matches` are a
        table of Arrow (see `Matches` for the columns and their types), and ``to_pandas()`` the same as a
        frame.

    Raises:
        RuleError: the rules are wrong.
        ConfigError: there are no such events, or an argument is none of these.
        EventError: a table has no column of event times, a row has none, or a column is of another type than
            the rules declare.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: rise, pattern: {sequence: [a: x < 5, b: x > 5]}, within: 1 h, emit: {to: b.x}}]
        ... '''
        >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
        >>> found = spark_pace.replay(rules, events)
        >>> found.to_pandas()[["rule", "selection_id", "to"]].values.tolist()
        [['rise', 0, 9.0]]
    """
    from spark_pace.io.replay import replay_files, replay_table

    given, job = _in_a_stream(rules)
    spark = {} if job is None else job.access(events)
    if isinstance(events, (str, Path)):
        require_path("events", events)
        return replay_files(given, events, spark=spark, **({} if job is None else job.reading))
    return replay_table(given, events, spark=spark, **({} if job is None else job.events.stream))


def why(rules: Rules, events: object, *, rule: str, at: int | str, key: str | None = None) -> Why:
    """Tell why an event is in a rule's matches, or in none of them.

    Args:
        rules: as of `replay`.
        events: as of `replay`.
        rule: the name of one of the rules.
        at: the `seq` of an event, or ``source:offset``, as matches have them; the source of a table is
            ``table``.
        key: the JSON object of the event's key; needed beside a `seq` where the rule has `partition_by`.

    Returns:
        The answer; `print` shows it.

    Raises:
        RuleError: the rules are wrong.
        ConfigError: there is no such rule, position or key, or a key is missing; or an argument is wrong.
        EventError: as of `replay`.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: rise, pattern: {sequence: [a: x < 5, b: x > 5]}, within: 5 s}]
        ... '''
        >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
        >>> answer = spark_pace.why(rules, events, rule="rise", at="table:1")
        >>> [reason.text for reason in answer.candidates[0].reasons]
        ['within 5 s: 10 s']
        >>> print(answer)  # doctest: +ELLIPSIS
        rule rise, table:1 at 2024-01-01T00:00:10Z, #1 of its stream
        ...
    """
    from spark_pace.reasons import why as why_of

    given, job = _in_a_stream(rules)
    require("rule", rule, str, "the name of a rule", "Give its `name`.")
    position = _position(at)
    require("key", key, (str, type(None)), "the text of a JSON object", "Write it by json.dumps.")
    read = _read(events, given)
    spark = {} if job is None else job.access(read if isinstance(read, str) else "")
    stream = {} if job is None else job.events.stream
    with in_python():
        return why_of(given, read, rule=rule, at=position, key=key, spark=spark, **stream)


def _position(at: int | str) -> int | str:
    """The `seq` of an event, or ``source:offset``."""
    seq = integer(at)
    if seq is None:
        require("at", at, str, "a seq or source:offset", "Take it from the events of a match.")
        return at
    return seq


def _read(events: object, rules: Sequence[Rule]) -> Any:
    """The path of events, or the table of those that are given."""
    from spark_pace.io.data_frames import table_of

    if isinstance(events, (str, Path)):
        require_path("events", events)
        return str(events)
    return table_of(events, input_schema(rules).own)


def read_table(out: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table that a job has written, without Spark.

    Args:
        out: the `path` of the job's sink.
        name: `matches`, `late`, `quarantine`, `metrics` or `rule_changes`.
        columns: those that are wanted; None: all.

    Returns:
        Its rows, in no order. `matches` has the columns of `Matches`, and `batch_id` (int64), the batch that
        wrote the row. `late` has `event_time` (timestamp[us, UTC]), `lateness_us`, `offset` and `batch_id`
        (int64), `source`, `reason` and `event` (string, the last as JSON). `quarantine` has `kind`, `reason`,
        `source`, `rule` and `key` (string), `offset`, `selection_id` and `batch_id` (int64), and `raw`
        (binary). `metrics` has a row for each batch, `rule_changes` one for each change of the rules, see
        docs/operations.md.

    Raises:
        ConfigError: there is no such table or column, or an argument is of another kind.
        StateError: the table is damaged, or cannot be read.

    Example:
        With `out` the path of the sink of a job that has run:

        >>> import spark_pace
        >>> table = spark_pace.read_table(out, "matches", ["rule", "out_seq", "matched_at"])
        >>> table.schema.field("matched_at").type
        TimestampType(timestamp[us, tz=UTC])
    """
    from spark_pace.io import query

    require("out", out, (str, Path), "a path", _OF_A_SINK)
    require_path("out", out)
    tables = (*query.TABLES, query.CHANGES)
    require("name", name, str, "the name of a table", f"Use one of: {', '.join(tables)}.")
    require("columns", columns, (list, tuple, type(None)), "a list of names", "Leave it out to have all.")
    return query.read_table(str(out), name, columns)


def timeline(matches: Matches | pa.Table, title: str = "matches") -> Timeline:
    """Draw matches on a time axis.

    Args:
        matches: what `replay` gives as ``matches``, or `read_table` as ``"matches"``; all rows or some.
        title: the heading of the page.

    Returns:
        The timeline. A notebook shows it; ``write(path)`` makes a page for a browser, without a server.

    Raises:
        ConfigError: an argument is of another type.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> found = spark_pace.replay(rules, [{"time": "2024-01-01T00:00:00Z", "x": 9.0}])
        >>> drawn = spark_pace.timeline(found.matches, "high values")
        >>> "<title>high values</title>" in drawn.html()
        True
    """
    from spark_pace.core.operate.match_table import FIXED_COLUMNS
    from spark_pace.io.replay import Matches
    from spark_pace.io.timeline import Timeline

    do = "Give the matches of a replay, or read_table(out, 'matches')."
    require("matches", matches, (Matches, pa.Table), "a table of matches", do)
    require("title", title, str, "a text", "Leave it out to have the heading matches.")
    table = matches.table if isinstance(matches, Matches) else matches
    lacking = [name for name in FIXED_COLUMNS if name not in table.column_names]
    if lacking:
        must, got = "must have the columns of matches", f"a table without {', '.join(lacking)}"
        raise ConfigError.of("matches", must, got, do)
    return Timeline(table, str(title))


def create_views(spark: SparkSession, out: str | Path, rules: Rules = ()) -> tuple[str, ...]:
    """Make temporary views of the tables that a job has written, for SQL in a notebook.

    Args:
        spark: a session that knows Delta tables.
        out: the `path` of the job's sink.
        rules: as of `replay`; each gets a view of its matches under its own name, with its own fields.

    Returns:
        The names of the views: `matches`, `late`, `quarantine`, `metrics` and `rule_changes`, with the
        columns that `read_table` tells of, then those of the rules.

    Raises:
        ConfigError: `out` has no tables of a job, or an argument is of another kind.
        RuleError: the rules are wrong.

    Example:
        With `spark` a session, and `out` the path of the sink of a job that has run:

        >>> import spark_pace
        >>> spark_pace.create_views(spark, out)
        ('matches', 'late', 'quarantine', 'metrics', 'rule_changes')
        >>> spark.sql("SELECT count(*) > 0 AS found FROM matches").collect()
        [Row(found=True)]
    """
    from spark_pace.io.delta_tables import create_views as create

    do = "Build one by SparkSession.builder, with Delta's extension and catalog."
    require_of_spark("spark", spark, "SparkSession", "a SparkSession", do)
    require("out", out, (str, Path), "a path", _OF_A_SINK)
    require_path("out", out)
    return create(spark, str(out), () if rules == () else _in_a_stream(rules)[0])


def detect(
    df: DataFrame, rules: Rules, *, delay_us: int = 0, tie_break: Sequence[str] = (), slots: int | None = None
) -> DataFrame:
    """Find the matches of rules in a streaming DataFrame, each as soon as it is decided, in no order.

    Args:
        df: a streaming DataFrame with the attributes of the rules' schema; other columns are ignored.
        rules: as of `replay`; none may read other rules' matches or side tables.
        delay_us: how many microseconds an event may come behind the newest one, and still counts.
        tie_break: the columns that order events of one event time; none: all columns.
        slots: the number of groups of the stateful stage; None: the shuffle partitions, at most eight.

    Returns:
        A streaming DataFrame of the matches, with the columns of `Matches` but `out_seq`, in Spark's types:
        STRING, BIGINT, TIMESTAMP, and ARRAY<STRUCT<...>> for `events`.

    Raises:
        ConfigError: the DataFrame or the rules cannot be used so, or an argument is of another kind.
        RuleError: the rules are wrong.

    Example:
        With `spark` a session, and files of JSON in `folder`: an event of x = 9.0, and a later one of 7.0.

        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}, emit: {x: a.x}}]
        ... '''
        >>> events = spark.readStream.schema("time TIMESTAMP, x DOUBLE").json(folder)
        >>> matches = spark_pace.detect(events, rules)
        >>> query = matches.writeStream.format("memory").queryName("found").start()
        >>> query.processAllAvailable()
        >>> spark.table("found").select("rule", "x").collect()
        [Row(rule='high', x=9.0)]
    """
    from spark_pace.spark.detect import detect as detect_in

    require_of_spark("df", df, "DataFrame", "a streaming DataFrame", _OF_A_STREAM)
    delay_us = whole("delay_us", delay_us, 0, "Give microseconds, such as 60_000_000.")
    require("tie_break", tie_break, (list, tuple), "a list of attributes", "Leave it out to order by all.")
    slots = None if slots is None else whole("slots", slots, 1, _OF_A_SLOT)
    return detect_in(df, _in_a_stream(rules)[0], delay_us=delay_us, tie_break=tie_break, slots=slots)


def sql(spark: SparkSession, query: str, *, dialect: str = "spark", most_steps: int = 1_000_000) -> DataFrame:
    """Answer an SQL query in which MATCH_RECOGNIZE may stand: the row patterns of standard SQL.

    Each MATCH_RECOGNIZE, over a table, a view, a subquery or a stream, is replaced by its rows; the rest of
    the query is Spark's. docs/match_recognize.md has all that is taken.

    Args:
        spark: a session, in which the tables and views of the query are known.
        query: the query.
        dialect: how names and texts are quoted, and where nulls are sorted: ``spark``, ``trino``, ``oracle``,
            ``snowflake``, ``flink`` or ``bigquery``. Functions are Spark's in all of them.
        most_steps: how many steps the search for a match from one row may take where conditions read the
            match so far; at more, the query fails.

    Returns:
        A DataFrame of the result; its columns and types are known before it is computed.

    Raises:
        ConfigError: with the line and column of what is wrong in a MATCH_RECOGNIZE; or an argument is of
            another kind. What Spark finds wrong in the rest of the query, it raises itself.

    Example:
        With `spark` a session:

        >>> import spark_pace
        >>> rows = spark.createDataFrame([(1, 5), (2, 3), (3, 4), (4, 6)], "day INT, price INT")
        >>> rows.createOrReplaceTempView("prices")
        >>> found = spark_pace.sql(spark, '''
        ...     SELECT * FROM prices MATCH_RECOGNIZE (
        ...       ORDER BY day
        ...       MEASURES FIRST(down.day) AS falls, LAST(up.day) AS risen
        ...       PATTERN (down+ up+)
        ...       DEFINE down AS price < PREV(price), up AS price > PREV(price))
        ... ''')
        >>> found.collect()
        [Row(falls=2, risen=4)]
    """
    from spark_pace.spark.row_patterns import sql as sql_in

    require_of_spark("spark", spark, "SparkSession", "a SparkSession", _OF_A_SESSION)
    require("query", query, str, "a text", "Give the text of an SQL query.")
    require("dialect", dialect, str, "the name of a dialect", "Leave it out for Spark's.")
    most_steps = whole("most_steps", most_steps, 1, "Leave it out to have a million.")
    return sql_in(spark, query, dialect, most_steps)


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
        rules:3:46 rules[0].pattern.sequence[0].a — must name an attribute ...; got "y". Use one of: ...
    """
    given = listed(rules, (Rule, *_SOURCES))
    if all(isinstance(one, Rule) for one in given):
        of_one_stream(given)
        return Check(())
    files, report = listed(rules, _SOURCES), Report()
    if _is_one_path(files):
        return Check(tuple(job_file.check_files(files)))
    with suppress(TooManyError):
        read_rules(files, None, report)
    return Check(report.problems)


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
          conditions   of: a, condition: x > 5.0, decided: intake
        ...
    """
    given, job = _in_a_stream(rules)
    return Explained(tuple((rule, None if job is None else job.source.format) for rule in given))


def _as_html(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(text)}</pre>'
