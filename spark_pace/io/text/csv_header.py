"""Messages about the header of a CSV file that does not fit the schema."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import one_line
from spark_pace.io.bad_records import BadRecords

_MOST_CHARACTERS = 200  # of a header in a message


def no_event_time(event_time: str, columns: Sequence[str]) -> str:
    """Return the reason for a file whose header lacks the event time."""
    do = meant_column(event_time, columns) or "Its first line must be the header."
    must = f"must have the column {event_time}, the event time, in its header"
    return f"{must}; got: {_shown(columns) or 'nothing'}. {do}"


def lacking_in(columns: Sequence[str], schema: EventSchema, source: str) -> dict[str, str]:
    """Return a message for each attribute that is no column of the file, and so is null in its events."""
    attributes = [field.name for field in schema.fields]
    others = [column for column in columns if column not in attributes]
    told = {}
    for name in attributes:
        if name not in columns:
            do = meant_column(name, others) or "Correct the schema or the header."
            must = f"{source} — must have the column {name} in its header"
            told[name] = one_line(f"{must}; got: {_shown(columns)}, so it is null in its events. {do}")
    return told


def look_at_header(columns: Sequence[str], schema: EventSchema, bad: BadRecords) -> None:
    """If no row of a file has an event time, add to the first reason what the user should check."""
    told = bad.rows()
    if bad.count < 2 or not all(f"{schema.event_time} — " in reason for _, reason, _ in told):
        return
    right = f"is {schema.event_time} the right column of {_shown(columns)}?"
    note = f"no row of the file is an event: {right}"
    bad.add_to_first(f"{note} If it is, timestamp_format says how its times are written.")


def meant_column(name: str, columns: Sequence[str]) -> str:
    """Advice that names the column most similar to `name`, in small or capital letters; else empty."""
    by_letters = {column.casefold(): column for column in reversed(columns)}
    similar = get_close_matches(name.casefold(), by_letters, 1)
    return f'Did you mean "{by_letters[similar[0]]}"?' if similar else ""


def _shown(columns: Sequence[str]) -> str:
    return ", ".join(columns)[:_MOST_CHARACTERS]
