"""The matches of a replay, as a table of HTML that a notebook can show."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.errors import counted, one_line

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
        for field, column in zip(table.schema, table.columns, strict=True):
            if pa.types.is_int64(field.type) and column.null_count:
                frame[field.name] = column.to_pandas(types_mapper=lambda _: pd.Int64Dtype())
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
