"""What a file's name and lines say of how it is read: is it packed, why is a line no event.

Of a file that goes over New Year it is said where its times are written without a year.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.plan.rule import EventSchema
from spark_pace.io.bad_records import Lines
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.local import Objection
from spark_pace.io.text.lines import TooLong, chunks
from spark_pace.io.text.regex_lines import text_parser

# endings of compressed text, with the names of their codecs in pyarrow
CODECS = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
ARCHIVES = tuple(CODECS)


def first_line(name: str) -> int:
    """The line number, in an editor, of the first record of a text file of this name."""
    return 2 if ending(name) == ".csv" else 1


def position(name: str, offset: int) -> str:
    """The place of a record as `why` takes it: the line where the file is text, else the offset."""
    return f"{name}:{offset}" if ending(name) == ".parquet" else f"{name}:L{offset + first_line(name)}"


def ending(name: str) -> str:
    """The ending of a file's name, without that of an archive."""
    path = Path(name)
    return (path.with_suffix("") if path.suffix in ARCHIVES else path).suffix


NEW_YEAR_US = 180 * 24 * 3_600_000_000  # times that fall back by more go over New Year


def told_of_new_year(events: pa.Table, schema: EventSchema, source: str) -> dict[str, str]:
    """The message that a file goes over New Year if its times have no year, by the event time; else empty.

    Args:
        events: the events of the file, in the order of its lines, with the columns of `with_places`.
        schema: the attributes.
        source: the name of the file.
    """
    if not schema.form.omits_year:
        return {}
    times = events["@time"].to_numpy()
    back = np.flatnonzero(times[:-1] - times[1:] > NEW_YEAR_US)
    if not len(back):
        return {}
    before, after = (f"{time_of(us):%Y-%m-%d %H:%M:%S}" for us in times[back[0] : back[0] + 2].tolist())
    at = position(source, events["@offset"][back[0] + 1].as_py())
    fell = f"falls back from {before} to {after}"
    do = "A file must lie in the year before its last change: split it, or set that by `touch -d DATE FILE`."
    if schema.form.year is not None:
        do = "Leave `year` out: then a time is in the last year that puts it at most a day after the file "
        do += "was changed last, which `touch -d DATE FILE` sets."
    told = f"{at} — {schema.event_time} {fell}. If these times are written without a year, the log goes over "
    return {schema.event_time: f"{told}New Year, and matches over it are lost. {do}"}


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
