"""Runs rules over files or tables of events without Spark: the core in this process.

Here too are its matches, as a table that a notebook can show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.local_run import IN_THIS_PROCESS, Calls, LocalResult, run
from spark_pace.core.order import OrderSpec, Tick
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.plan import MOST_BAD_RECORDS, build_plan
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.core.python_functions import last_line
from spark_pace.core.tables import TIME
from spark_pace.errors import ConfigError, counted, one_line
from spark_pace.io.bad_records import WHOLE_FILE
from spark_pace.io.data_frames import absent_columns, require_times, table_of
from spark_pace.io.event_files import EventsRead, all_read, ending, first_of, read_source_file, table_events
from spark_pace.io.files.addresses import AnyPath, path_at, require_address
from spark_pace.io.files.files import files_at, in_source
from spark_pace.io.metrics import null_in_every_record
from spark_pace.io.side_tables import read_side_tables, with_side_tables
from spark_pace.io.timeline import Timeline

if TYPE_CHECKING:
    import pandas as pd


SHOWN_ROWS = 40
_MOST_CHARACTERS = 200  # the length of a value


def html_table(table: pa.Table, caption: str) -> str:
    """The first rows of a table of matches as HTML; texts from events are escaped and cut.

    Each line of the caption is a paragraph above it.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = table.slice(0, SHOWN_ROWS).to_pylist()
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row.values())}</tr>" for row in rows
    )
    more = table.num_rows - len(rows)
    below = f"<p>and {more:,} more</p>" if more else ""
    above = "".join(f"<p>{escape(line)}</p>" for line in caption.splitlines())
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "component" in value[0]:
        value = " ".join(f"{event['component']}#{event['seq']}" for event in value)
    return escape(one_line(str(value))[:_MOST_CHARACTERS])


def counts_told(by_rule: Mapping[str, int], by_end: Mapping[str, int]) -> str:
    """The number of matches of each rule, and how many of them only the end of the input decides."""
    ends = {rule: f" ({count:,} of them because the input ends)" for rule, count in by_end.items()}
    return ", ".join(f"{rule} {count:,}{ends.get(rule, '')}" for rule, count in by_rule.items())


class Matches:
    """The matches of a replay: a `pyarrow.Table`, which a notebook shows as a table.

    It has all that such a table has: ``matches["field"]``, ``matches.num_rows``,
    ``matches.to_pylist()``, ``matches.schema``. Polars and other libraries make frames from it.

    Attributes:
        table: the `pyarrow.Table` itself, in output order. Its columns are `rule` and `key` (string; the key
            as JSON, null without `partition_by`), `out_seq`, `selection_id` and `seq` (int64), `opened_at`
            and `matched_at` (timestamp[us, UTC]); then the fields of each rule's `emit` and the attributes of
            its key, in the types that the rule gives them, null in the matches of other rules; then `events`,
            a list of structs of `component` (string), `seq` (int64), `event_time` (timestamp[us, UTC]),
            `source` (string) and `offset` (int64).

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}, emit: {x: a.x}}]
        ... '''
        >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 9.0}]
        >>> matches = spark_pace.replay(rules, events).matches
        >>> matches
        1 match: high 1
        >>> matches["x"].to_pylist()
        [9.0]
        >>> matches.to_pandas()["matched_at"][0].isoformat()
        '2024-01-01T00:00:00+00:00'
    """

    def __init__(self, table: pa.Table) -> None:
        """Take the table."""
        self.table = table

    def to_pandas(self) -> pd.DataFrame:
        """Return the matches as a pandas frame with the columns of `table`.

        A column of integers that lacks some has pandas' type ``Int64``: floats would not keep large ones.
        """
        import pandas as pd

        frame, table = self.table.to_pandas(), self.table
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_int64(column.type) and column.null_count:
                frame[name] = column.to_pandas(types_mapper=lambda _: pd.Int64Dtype())
        return frame

    @property
    def by_rule(self) -> dict[str, int]:
        """The number of matches of each rule that has any."""
        counts = pc.value_counts(self.table["rule"]).to_pylist()
        return {count["values"]: count["counts"] for count in counts}

    def behind(self, time_us: int) -> Matches:
        """The matches whose `matched_at` is greater than a time, in microseconds since 1970 (UTC)."""
        time = pa.scalar(time_us, self.table.schema.field("matched_at").type)
        return Matches(self.table.filter(pc.greater(self.table["matched_at"], time)))

    def equals(self, other: Matches | pa.Table) -> bool:
        """Tell whether both have the same columns and values."""
        return bool(self.table.equals(other.table if isinstance(other, Matches) else other))

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the table."""
        if name == "table" or name.startswith("__"):  # not there while a copy is made
            raise AttributeError(name)
        return getattr(self.table, name)

    def __getitem__(self, place: str | int) -> pa.ChunkedArray:
        """The column of that name or number."""
        return self.table[place]

    def __len__(self) -> int:
        """The number of matches."""
        return int(self.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow stream, from which other libraries make frames."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """The counts in one line."""
        by_rule = counts_told(self.by_rule, {})
        return counted(len(self), "match") + (f": {by_rule}" if by_rule else "")

    def _repr_html_(self) -> str:
        """The first matches as a table of HTML; texts from events are escaped."""
        return html_table(self.table, repr(self))


FORMATS = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True)
class Replay:
    """The result of a replay. A notebook shows its first matches as a table.

    Attributes:
        result: the result of the core.
        matches: the matches, see `Matches`.
        bad: the records that are no events, a `pyarrow.Table` of `source` and `reason`
            (string), `offset` (int64), `raw` (binary).
        bad_rows: how many records are no events.
        late: the late events, a `pyarrow.Table` of `event_time` (timestamp[us, UTC]), `lateness_us` and
            `offset` (int64), `source`, `reason` and `event` (string, the last as JSON).
        failed: the selections on which a Python operator failed, a `pyarrow.Table` of `rule`, `key`, `reason`
            and `source` (string), `selection_id` and `offset` (int64), `raw` (binary).
        read_rows: how many records were read.
        absent: the attributes of the schema that are null in every record.
        lacking: for each attribute that the header of a CSV file lacks, and for one that a table lacks while
            it has a similar column, the message about it; for the event time, that it goes over New Year.
        rules: the names of the rules, in the order of their files.
        ignored_rows: how many lines of text do not match, and are no records.
        unfit: the message, if there are lines of text and none is an event; else None.
        newest_us: the time of the newest record or tick; only the end of the input decides matches behind it.
            None if the input goes on, or is empty.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> found = spark_pace.replay(rules, [{"time": "2024-01-01T00:00:00Z", "x": 9.0}])
        >>> found
        1 record; matches: high 1
        >>> found.read_rows, found.bad_rows, len(found), found.absent
        (1, 0, 1, ())
    """

    result: LocalResult
    bad: pa.Table
    bad_rows: int
    read_rows: int
    absent: tuple[str, ...] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    ignored_rows: int = 0
    unfit: str | None = None
    newest_us: int | None = None

    @property
    def matches(self) -> Matches:
        """The matches in output order."""
        return Matches(self.result.matches)

    @property
    def late(self) -> pa.Table:
        """The late events, with the columns of `spark_pace.core.intake.sift.LATE_SCHEMA`."""
        return self.result.late

    @property
    def failed(self) -> pa.Table:
        """The selections that a Python operator failed on."""
        return self.result.failed

    @property
    def stats(self) -> dict[str, int]:
        """The counts of `spark_pace.core.local_run.LocalResult`."""
        return self.result.stats

    def to_pandas(self) -> pd.DataFrame:
        """The matches as a frame of pandas; see `Matches.to_pandas`."""
        return self.matches.to_pandas()

    def timeline(self, title: str = "matches") -> Timeline:
        """The matches on a time axis: `write(path)` makes a page of it, and a notebook shows it."""
        return Timeline(self.result.matches, title, self.rules, self.newest_us)

    @property
    def by_end(self) -> dict[str, int]:
        """For each rule that has such matches: how many wait for a time behind the newest record."""
        return {} if self.newest_us is None else self.matches.behind(self.newest_us).by_rule

    @property
    def columns_told(self) -> tuple[str, ...]:
        """A line for each attribute of `lacking`, and one that names the other attributes of `absent`."""
        others = [name for name in self.absent if name not in self.lacking]
        return (*self.lacking.values(), *([null_in_every_record(", ".join(others))] if others else []))

    def __len__(self) -> int:
        """The number of matches."""
        return len(self.matches)

    def __repr__(self) -> str:
        """The counts in one line, then a line for each thing that may explain why there are no more."""
        return "\n".join([self._counts(), *self.columns_told, *self._failures()])

    def _failures(self) -> list[str]:
        """How many selections a Python operator failed on, and the first reason; empty if on none."""
        if not self.failed.num_rows:
            return []
        rule, reason = self.failed["rule"][0].as_py(), self.failed["reason"][0].as_py()
        many = counted(self.failed.num_rows, "selection")
        return [f"{many} failed, the first: rule {rule}, {last_line(reason)}"]

    def _counts(self) -> str:
        by_rule = counts_told(self.matches.by_rule, self.by_end) or "none"
        beside = told_of_ignored(self.ignored_rows)
        beside += f", {self.bad_rows:,} bad ({first_of(self.bad)})" if self.bad_rows else ""
        beside += f", {self.late.num_rows:,} late" if self.late.num_rows else ""
        return f"{counted(self.read_rows, 'record')}{beside}; matches: {by_rule}"

    def _repr_html_(self) -> str:
        """The counts, and the first matches as a table of HTML; texts from events are escaped."""
        return html_table(self.result.matches, repr(self))


def replay_table(
    rules: Sequence[Rule],
    events: object,
    *,
    order: OrderSpec | None = None,
    spark: Mapping[str, str] | None = None,
    **of_job: Any,
) -> Replay:
    """Find the matches of `rules` in a table whose columns are the schema's attributes.

    The order of its rows is ignored, as in `detect`: events of the same time are ordered by the schema's
    `tie_break`, or by all columns if it has none, and none is late.

    Args:
        rules: all over one schema.
        events: what `spark_pace.io.data_frames.table_of` takes.
        order: of a job; repeats are dropped as it says. None: none is a repeat.
        spark: settings of Spark by which the stores of side tables are reached.
        of_job: `source_column` and `heartbeat` of a job, as in `replay_files`.

    Raises:
        ConfigError: `events` is no table.
        EventError: there is no column of event times, a row lacks one, or a column has another type than the
            rules declare.
    """
    schema = input_schema(rules)
    table = table_of(events, schema.own)
    read = table_events(table, schema.own, "table")
    require_times(read)
    order = (order or OrderSpec()).in_any_order
    plan = build_plan(tuple(rules), order=order, tie_break="columns", **of_job)
    result = run(plan, [with_side_tables(read, schema, read_side_tables(schema, spark)).events])
    elsewhere = absent_columns(events, table, schema.own)
    lacking = {name: null_in_every_record(name, do) for name, do in elsewhere.items()}
    return _told(result, replace(read, lacking=lacking), schema, rules, _newest_us(read, ()))


def replay_files(
    rules: Sequence[Rule],
    path: str | Path,
    *,
    order: OrderSpec | None = None,
    most_bad: int = MOST_BAD_RECORDS,
    calls: Calls = IN_THIS_PROCESS,
    as_read: Sequence[str | Tick] | None = None,
    finish: bool = True,
    spark: Mapping[str, str] | None = None,
    **of_job: Any,
) -> Replay:
    """Find the matches of `rules` in a file of events, or in all files of a directory by name.

    With the order of a job the same events are late as in the job: because of earlier files, or of earlier
    records of their source in the same file, which stands for a partition. Without it none is late.

    Args:
        rules: all over one schema.
        path: the file or directory; or the address of an object, or of a prefix, in a store.
        order: of a job; repeats are dropped as it says. None: none is late or a repeat.
        most_bad: how many bad records of a file get a row each.
        calls: how the Python functions of rules are called.
        as_read: names of files below `path`, and ticks of a clock, as a job read them; None: all, by name.
        finish: True if the input ends with them.
        spark: settings of Spark by which stores are reached, before the variables of the environment.
        of_job: `source_column`, the attribute that names an event's source, and `heartbeat`, the condition
            for records that are no events.

    Raises:
        ConfigError: there is no such file, or its name does not say what it is.
        SetupError: a store cannot be read.
        OperatorError: the Python function of a fold has failed.
    """
    schema = input_schema(rules)
    reads = read_each(path, schema, most_bad, as_read, spark)
    plan = build_plan(tuple(rules), order=order or OrderSpec(), **of_job)
    result = run(plan, [_among_ticks(reads, as_read)], finish=finish, calls=calls)
    read = all_read(reads)
    return _told(result, read, schema, rules, _newest_us(read, as_read or ()) if finish else None)


def _among_ticks(reads: Sequence[EventsRead], as_read: Sequence[str | Tick] | None) -> list[pa.Table | Tick]:
    """The events of each file, with the ticks of `as_read` at their places."""
    of_files = (read.events for read in reads)
    return [part if isinstance(part, Tick) else next(of_files) for part in as_read or reads]


def _newest_us(read: EventsRead, as_read: Sequence[str | Tick]) -> int | None:
    """The greatest time of the records and of the ticks; None if there is neither."""
    newest = [part.time_us for part in as_read if isinstance(part, Tick)]
    newest += [pc.max(read.events[TIME]).as_py()] if read.events.num_rows else []
    return max(newest, default=None)


def _told(
    result: LocalResult, read: EventsRead, schema: EventSchema, rules: Sequence[Rule], newest_us: int | None
) -> Replay:
    return Replay(
        result,
        read.bad,
        read.bad_rows,
        read.read_rows,
        _absent(read, schema),
        read.lacking,
        tuple(rule.name for rule in rules),
        read.ignored_rows,
        _unfit(read, schema),
        newest_us,
    )


def told_of_ignored(lines: int) -> str:
    """The number of lines that were ignored, to go behind that of the records; empty if there are none."""
    return f", {counted(lines, 'line')} ignored" if lines else ""


def _unfit(read: EventsRead, schema: EventSchema) -> str | None:
    """What to check if there are lines of text and none is an event; None if one is."""
    bad = zip(read.bad["source"].to_pylist(), read.bad["reason"].to_pylist(), strict=True)
    in_text = (format_of(name, schema) == "text" and not why.startswith(WHOLE_FILE) for name, why in bad)
    if read.events.num_rows or not (read.ignored_rows or any(in_text)):
        return None
    form, lines = schema.form, counted(read.ignored_rows + read.bad_rows, "line")
    way = f"the preset {form.preset}" if form.preset else "the regex, which must match the whole line"
    told = " Without `unmatched: ignore` each line is told with a reason." if read.ignored_rows else ""
    return f"of {lines} of text none is an event: check {way}, and timestamp_format.{told}"


def _absent(read: EventsRead, schema: EventSchema) -> tuple[str, ...]:
    """The attributes that are null in every event; none if there are no events."""
    names = [field.name for field in schema.own.fields] if read.events.num_rows else []
    return tuple(name for name in names if read.events[name].null_count == read.events.num_rows)


def read_all(path: str | Path, schema: EventSchema) -> EventsRead:
    """Read all events of a file or directory; sources are paths below the directory, or the file's name."""
    return all_read(read_each(path, schema))


def read_each(
    path: str | Path,
    schema: EventSchema,
    most_bad: int = MOST_BAD_RECORDS,
    as_read: Sequence[str | Tick] | None = None,
    spark: Mapping[str, str] | None = None,
) -> list[EventsRead]:
    """Read the files one by one, in the order of their names, as a job does; or those of `as_read`.

    The first `most_bad` bad records of a file get a row each.
    """
    tables = read_side_tables(schema, spark)
    place, names = _files(path, schema, as_read, spark or {})
    reads = (_read_file(place, name, schema.own, most_bad) for name in names)
    return [with_side_tables(read, schema, tables) for read in reads]


def _files(
    path: str | Path,
    schema: EventSchema,
    as_read: Sequence[str | Tick] | None,
    spark: Mapping[str, str],
) -> tuple[AnyPath, list[str]]:
    """The files of events at a path or an address, or those of `as_read` there, by their names."""
    if as_read is not None:
        return require_address(path_at(path, spark)), [part for part in as_read if isinstance(part, str)]
    place, names = files_at(path, spark)
    is_one = names == [Path(path).name]
    found = [name for name in names if is_one or format_of(name, schema)]
    if not found:
        raise _no_events(str(path), "a file or directory of events", "nothing there")
    return place, found


def _read_file(place: AnyPath, name: str, schema: EventSchema, most_bad: int) -> EventsRead:
    format = format_of(name, schema)
    if format is None:
        must = "a file that ends in " + ", ".join(FORMATS)
        raise _no_events(str(in_source(place, name)), must, Path(name).suffix or "no ending")
    return read_source_file(place, name, format, schema, most_bad)


def format_of(name: str, schema: EventSchema) -> str | None:
    """The format of a file, from the ending of its name; other names are text if the schema reads text."""
    return FORMATS.get(ending(name), "text" if schema.form.reads_text else None)


def _no_events(path: str, must: str, got: str) -> ConfigError:
    do = "Give JSON lines, CSV with a header, or Parquet; for lines of text, events needs the key text."
    return ConfigError.of(path, f"must be {must}", got, do)
