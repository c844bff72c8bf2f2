"""Records as they are sent: texts made before the run; only the event time is put in while it runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.plan.structs import nested
from spark_pace.errors import ConfigError
from spark_pace.io.bad_records import UNIT_US
from spark_pace.io.replay import read_all
from spark_pace_bench.schedule import Ints
from spark_pace_bench.spec import Replay, RunSpec

Text = Literal["json", "csv"]
_TIME = "\0"  # stands for the event time; no text of JSON or CSV holds it


@dataclass(frozen=True)
class Records:
    """All records of a run.

    Attributes:
        schema: what an event looks like.
        form: the format of the texts.
        before: what stands in front of the event time, for each record.
        after: what stands behind it. The whole record where events keep their own times.
        own_times: whether they do.
    """

    schema: EventSchema
    form: Text
    before: Sequence[str]
    after: Sequence[str]
    own_times: bool

    def __len__(self) -> int:
        """How many there are."""
        return len(self.after)

    @property
    def header(self) -> str:
        """The first line of a CSV file, with its end; else nothing."""
        if self.form == "json":
            return ""
        return _csv_line([field.name for field in self.schema.fields]) + "\n"

    def lines(self, first: int, due_us: Ints) -> list[str]:
        """Make as many records as `due_us` has times, from record `first` on, without ends of lines.

        Args:
            first: the number of a record.
            due_us: int64[n], event times in microseconds since 1970.
        """
        end = first + len(due_us)
        if self.own_times:
            return list(self.after[first:end])
        parts = zip(self.before[first:end], self._times(due_us), self.after[first:end], strict=True)
        return ["".join(part) for part in parts]

    def _times(self, due_us: Ints) -> list[str]:
        if self.schema.time_unit is not None:
            return [str(time) for time in (due_us // UNIT_US[self.schema.time_unit]).tolist()]
        quote = '"' if self.form == "json" else ""
        texts = np.datetime_as_string(due_us.astype("datetime64[us]"), unit="us").tolist()
        return [f"{quote}{text}Z{quote}" for text in texts]


def make_records(run: RunSpec, count: int) -> Records:
    """The records of a run.

    Raises:
        ConfigError: the file that is replayed has fewer events, or none can be read.
    """
    schema = run.job.events.schema
    form: Text = "csv" if run.job.source.format == "csv" else "json"
    if isinstance(run.events, Replay):
        return _replayed(run.events, schema, form, count)
    columns = {name: generator.texts(count, run.seed) for name, generator in run.events.items()}
    return _generated(columns, schema, form, count)


def _generated(columns: Mapping[str, list[str]], schema: EventSchema, form: Text, count: int) -> Records:
    names = [field.name for field in schema.fields]
    if form == "json":  # the time in front, so that all texts before it are one
        names = [schema.event_time, *(name for name in names if name != schema.event_time)]
        keys = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in names]
        values = [_TIME if name == schema.event_time else "%s" for name in names]
        parts = [f"{key}:{value}" for key, value in zip(keys, values, strict=True)]
        template = "{" + ",".join(parts) + "}"
    else:
        template = ",".join(_TIME if name == schema.event_time else "%s" for name in names)
        columns = {name: [_as_csv(text) for text in texts] for name, texts in columns.items()}
    before, after = template.split(_TIME)
    place = names.index(schema.event_time)
    return Records(
        schema,
        form,
        _filled(before, [columns[name] for name in names[:place]], count),
        _filled(after, [columns[name] for name in names[place + 1 :]], count),
        own_times=False,
    )


def _filled(template: str, columns: list[list[str]], count: int) -> list[str]:
    if not columns:
        return [template % ()] * count
    return [template % row for row in zip(*columns, strict=True)]


def _as_csv(text: str) -> str:
    value = json.loads(text) if text.startswith('"') else text
    return _csv_line([value])


def _csv_line(values: Sequence[object]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(values)
    return file.getvalue()


def _replayed(replay: Replay, schema: EventSchema, form: Text, count: int) -> Records:
    read = read_all(replay.path, schema)
    if read.events.num_rows < count:
        must = f"must have the {count:,} events that the phases send"
        do = "Shorten the phases, or lower their rates."
        raise ConfigError.of(str(replay.path), must, f"{read.events.num_rows:,}", do)
    events = nested(read.events.sort_by("@time").slice(0, count), schema)
    names = events.column_names
    rows = events.to_pylist()
    if not replay.own_times:
        for row in rows:
            row[schema.event_time] = _TIME
    texts = [_row_text(list(row.values()), names, form) for row in rows]
    if replay.own_times:
        return Records(schema, form, [""] * count, texts, own_times=True)
    marked = [text.partition('"\\u0000"' if form == "json" else _TIME) for text in texts]
    return Records(schema, form, [part[0] for part in marked], [part[2] for part in marked], own_times=False)


def _row_text(values: list[object], names: Sequence[str], form: Text) -> str:
    if form == "csv":
        return _csv_line(["" if value is None else _plain(value) for value in values])
    row = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return json.dumps(row, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    """A value that JSON has no name for as text: times in ISO 8601."""
    isoformat = getattr(value, "isoformat", None)
    if isoformat is not None:
        return isoformat()
    return value if isinstance(value, (str, int, float)) else str(value)
