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

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from spark_pace.core.plan.rule import EventSchema, Rule
    from spark_pace.io.html.timeline import Timeline
    from spark_pace.io.replay import Replay
    from spark_pace.reasons import Why

__all__ = [
    "EventSchema", "Replay", "Rule", "Timeline", "Why", "__version__", "create_views", "detect", "load_rules",
    "read_table", "replay", "timeline", "why",
]  # fmt: skip
_TYPES = {
    "EventSchema": "spark_pace.core.plan.rule",
    "Replay": "spark_pace.io.replay",
    "Rule": "spark_pace.core.plan.rule",
    "Timeline": "spark_pace.io.html.timeline",
    "Why": "spark_pace.reasons",
}


def __getattr__(name: str) -> Any:
    """Import a type that the functions take or return, when it is first asked for."""
    if name not in _TYPES:
        raise AttributeError(f"module 'spark_pace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_TYPES[name]), name)


def load_rules(
    paths: str | Path | dict[str, Any] | Sequence[str | Path | dict[str, Any]],
    *,
    events: EventSchema | None = None,
) -> tuple[Rule, ...]:
    """Read and check the rules of rule files, or of one job file.

    Args:
        paths: one file or several. A text of more than one line is what a rule file would hold, and a dict
            what YAML would give of it.
        events: what an event looks like, where the rule files do not say it. A job file says it itself, and
            must be read without this.

    Returns:
        The rules, which `replay`, `why` and `detect` take.

    Raises:
        RuleError: with every problem of the rule files.
        ConfigError: with every problem of the job file and its rule files; or `events` comes with a job file.

    Example:
        >>> import spark_pace
        >>> rules = spark_pace.load_rules("rules.yaml")  # doctest: +SKIP
    """
    from pathlib import Path

    from spark_pace import errors, job_file, rules

    files = [paths] if isinstance(paths, (str, Path, dict)) else list(paths)
    is_file = len(files) == 1 and not isinstance(files[0], dict) and "\n" not in str(files[0])
    if not is_file or not job_file.is_job(files[0]):  # type: ignore[arg-type]
        return rules.load_rules(files, events=events)
    if events is not None:
        must = (
            "must be loaded without `events`, "
            "for a job and its rule files say themselves what an event looks like"
        )
        raise errors.ConfigError.of(str(files[0]), must, "both", "Leave `events` out.")
    return job_file.read_job(files[0]).rules  # type: ignore[arg-type]


def replay(rules: Sequence[Rule] | str | Path | dict[str, Any], events: object) -> Replay:
    """Find the matches of rules in events, without Spark.

    Args:
        rules: what `load_rules` gave, or takes.
        events: the path of a file or folder, which is read as a job reads it, but no event is late; or a
            table: a `pyarrow.Table`, a frame of pandas or polars, a list of dicts. Its columns are the
            attributes, and the order of its rows does not count; times may be texts by ISO 8601.

    Returns:
        The matches, and the records that are no events. A notebook shows it as a table; ``matches`` is a
        `pyarrow.Table` with the columns `rule`, the rules' keys and fields, `key` (JSON), `out_seq`,
        `selection_id`, `seq` (int64), `opened_at`, `matched_at` (timestamp[us, UTC]) and `events` (a list of
        structs, one for each event), and ``to_pandas()`` the same as a frame.

    Raises:
        RuleError: the rules are wrong.
        ConfigError: there are no such events.
        EventError: a column of a table has another type than the rules declare, or a row has no event time.

    Example:
        >>> import spark_pace
        >>> found = spark_pace.replay("rules.yaml", "events.json")  # doctest: +SKIP
        >>> found.to_pandas()  # doctest: +SKIP
    """
    from pathlib import Path

    from spark_pace.io.replay import replay_files, replay_table

    checked = _checked(rules)
    if isinstance(events, (str, Path)):
        return replay_files(checked, Path(events))
    return replay_table(checked, events)


def why(
    rules: Sequence[Rule] | str | Path | dict[str, Any],
    events: object,
    *,
    rule: str,
    at: int | str,
    key: str | None = None,
) -> Why:
    """Tell why an event is in a rule's matches, or in none of them.

    Args:
        rules: as of `replay`.
        events: as of `replay`.
        rule: the name of one of the rules.
        at: the `seq` of an event, or ``source:offset``, as matches have them.
        key: the JSON object of the event's key; needed beside a `seq` where the rule has `partition_by`.

    Returns:
        The answer; `print` shows it.

    Raises:
        ConfigError: there is no such rule, position or key, or a key is needed.
        EventError: as of `replay`.
    """
    from pathlib import Path

    from spark_pace.core.plan.lower_rules import input_schema
    from spark_pace.io.data_frames import table_of
    from spark_pace.reasons import why as why_of

    checked = _checked(rules)
    given = Path(events) if isinstance(events, (str, Path)) else table_of(events, input_schema(checked).own)
    return why_of(checked, given, rule=rule, at=at, key=key)


def _checked(rules: Sequence[Rule] | str | Path | dict[str, Any]) -> Sequence[Rule]:
    from pathlib import Path

    return load_rules(rules) if isinstance(rules, (str, Path, dict)) else rules


def read_table(out: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table that a job has written, without Spark.

    Args:
        out: the `path` of the job's sink.
        name: `matches`, `late`, `quarantine` or `metrics`.
        columns: those that are wanted; None: all.

    Raises:
        ConfigError: there is no such table or column.
    """
    from spark_pace.io import query

    return query.read_table(out, name, columns)


def timeline(matches: pa.Table, title: str = "matches") -> Timeline:
    """Draw matches on a time axis.

    Args:
        matches: what `replay` gives as ``matches``, or `read_table` as ``"matches"``; all rows or some.
        title: the heading of the page.

    Returns:
        The timeline. A notebook shows it; ``write(path)`` makes a page for a browser, without a server.

    Example:
        >>> import spark_pace
        >>> found = spark_pace.read_table("out", "matches")  # doctest: +SKIP
        >>> spark_pace.timeline(found).write("matches.html")  # doctest: +SKIP
    """
    from spark_pace.io.html.timeline import Timeline

    return Timeline(matches, title)


def create_views(
    spark: SparkSession,
    out: str | Path,
    rules: Sequence[Rule] | str | Path | dict[str, Any] = (),
) -> tuple[str, ...]:
    """Make temporary views of the tables that a job has written, for SQL in a notebook.

    Args:
        spark: a session that knows Delta tables.
        out: the `path` of the job's sink.
        rules: as of `replay`; each gets a view of its matches under its own name, with its own fields.

    Returns:
        The names of the views: `matches`, `late`, `quarantine` and `metrics`, then those of the rules.

    Raises:
        ConfigError: `out` has no tables of a job.
        RuleError: the rules are wrong.
    """
    from spark_pace.io.delta_tables import create_views as create

    return create(spark, str(out), _checked(rules))


def detect(
    df: DataFrame,
    rules: Sequence[Rule] | str | Path | dict[str, Any],
    *,
    delay_us: int = 0,
    tie_break: Sequence[str] = (),
    slots: int | None = None,
) -> DataFrame:
    """Find the matches of rules in a streaming DataFrame; see `spark_pace.spark.detect.detect`.

    Args:
        df: a streaming DataFrame with the schema's attributes.
        rules: as of `replay`.
        delay_us: how many microseconds an event may come behind the newest one, and still counts.
        tie_break: the columns that order events of one event time; none: all columns.
        slots: how many tasks match at once; None: as many as Spark has cores.

    Returns:
        A streaming DataFrame, whose rows are the matches.

    Raises:
        ConfigError: the DataFrame or the rules cannot be used so.
    """
    from spark_pace.spark.detect import detect as detect_in

    return detect_in(df, _checked(rules), delay_us=delay_us, tie_break=tie_break, slots=slots)
