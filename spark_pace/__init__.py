"""Complex event processing on Spark: rules in YAML, selections matched in parallel, one ordered output.

The functions here are the Python API; each imports what it needs when it is called,
so ``import spark_pace`` costs next to nothing and starts no JVM.

    >>> import spark_pace
    >>> rules = '''
    ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
    ... rules:
    ...   - name: rise
    ...     pattern: {sequence: [{a: x < 5}, {b: x > 5}]}
    ...     within: 1 min
    ...     emit: {to: b.x}
    ... '''
    >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
    >>> found = spark_pace.replay(rules, events)
    >>> found
    2 records; matches: rise 1
    >>> found.matches["to"].to_pylist()
    [9.0]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeAlias

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from spark_pace.api import Check, Explained, check, explain
    from spark_pace.core.plan.rule import EventSchema, Rule
    from spark_pace.io.html.match_frame import Matches
    from spark_pace.io.html.timeline import Timeline
    from spark_pace.io.replay import Replay
    from spark_pace.reasons import Why

    RuleSource: TypeAlias = str | Path | dict[str, Any]
    Rules: TypeAlias = Rule | RuleSource | Sequence[Rule] | Sequence[RuleSource]

__all__ = [
    "Check", "EventSchema", "Explained", "Matches", "Replay", "Rule", "Timeline", "Why", "__version__",
    "check", "create_views", "detect", "explain", "load_rules", "read_table", "replay", "sql", "timeline",
    "why",
]  # fmt: skip
_ELSEWHERE = {
    **dict.fromkeys(("Check", "Explained", "check", "explain"), "spark_pace.api"),
    **dict.fromkeys(("EventSchema", "Rule"), "spark_pace.core.plan.rule"),
    "Matches": "spark_pace.io.html.match_frame",
    "Replay": "spark_pace.io.replay",
    "Timeline": "spark_pace.io.html.timeline",
    "Why": "spark_pace.reasons",
}


def __getattr__(name: str) -> Any:
    """Import what is defined elsewhere, when it is first asked for."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'spark_pace' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)


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
    from spark_pace import api

    return api.load_rules(paths, events)


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
    from spark_pace import api

    return api.replay(rules, events)


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
    from spark_pace import api

    return api.why(rules, events, rule, at, key)


def read_table(out: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table that a job has written, without Spark.

    Args:
        out: the `path` of the job's sink.
        name: `matches`, `late`, `quarantine`, `metrics` or `rule_changes`.
        columns: those that are wanted; None: all.

    Returns:
        Its rows, in no order. `matches` has the columns of `Matches`. `late` has `event_time`
        (timestamp[us, UTC]), `lateness_us` and `offset` (int64), `source`, `reason` and `event` (string, the
        last as JSON). `quarantine` has `kind`, `reason`, `source`, `rule` and `key` (string), `offset`,
        `selection_id` and `batch_id` (int64), and `raw` (binary). `metrics` has a row for each batch,
        `rule_changes` one for each change of the rules, see docs/operations.md.

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
    from spark_pace import api

    return api.read_table(out, name, columns)


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
    from spark_pace import api

    return api.timeline(matches, title)


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
    from spark_pace import api

    return api.create_views(spark, out, rules)


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
    from spark_pace import api

    return api.detect(df, rules, delay_us, tie_break, slots)


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
    from spark_pace import api

    return api.sql(spark, query, dialect, most_steps)
