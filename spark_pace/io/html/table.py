"""Makes HTML of a table, for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import pyarrow as pa

from spark_pace.errors import one_line

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
