"""Says of a line of a file of text why it is neither an event nor a bad record."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from spark_pace.core.plan.rule import EventSchema
from spark_pace.io.bad_records import Lines
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.local import Objection
from spark_pace.io.text.lines import TooLong, chunks
from spark_pace.io.text.name_endings import CODECS, first_line
from spark_pace.io.text.regex_lines import text_parser


def told_of_line(place: AnyPath, name: str, offset: int, schema: EventSchema | None) -> str | None:
    """Why the line at an offset is no record; None if there is no such line, or it is a record.

    Args:
        place: where the file is.
        name: the name of a file of text, perhaps compressed.
        offset: the number of the line, from 0; the header of CSV is not counted.
        schema: that of lines of text; None for other formats, which ignore blank lines only.
    """
    line = _line(place, name, offset + first_line(name) - 1)
    if line is None:
        return None
    if not line.strip():
        return "it is a blank line, which is no record"
    if schema is None or not schema.form.ignores_unmatched:
        return None
    values = pa.array([line], pa.binary())
    parser = text_parser(schema)
    if parser.matching(values)[0].as_py():
        return None
    return f"it is an ignored line: {parser.objections([line]).reason}"


def _line(place: AnyPath, name: str, number: int) -> bytes | None:
    """The line of a number, from 0; None if there is none, or it is too long for a record."""
    codec = CODECS.get(Path(name).suffix)
    try:
        file = files.open_in(place, name)
    except Objection:
        return None
    with pa.input_stream(file.content, compression=codec) as stream:
        for chunk in chunks(stream):
            if isinstance(chunk, TooLong):
                number -= 1
                continue
            lines = Lines(chunk)
            if 0 <= number < lines.count:
                return lines[number]
            number -= lines.count
    return None
