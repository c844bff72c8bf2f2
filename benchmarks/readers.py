"""The reader of JSON lines beside pyarrow's, alone: the same bytes in chunks, one core, processor seconds.

Both are run once, and what they give is compared; then they are run in turns, and the ratio is the median of
the turns' ratios. Ours includes the numbers of the lines; pyarrow's is the bare call of its reader.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.json

from benchmarks.rows import Row, Sizes, processor, ratio_in_turns, require
from spark_pace import ways
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.text.lines import CHUNK_BYTES
from spark_pace.io.text.parsers import JsonParser
from spark_pace.io.text.plain_json import compiled_reader

EVENTS = 200_000
ROUNDS = 7
TARGET = ">= 2"
LETTERS = 10


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each form of events; of any size of streams, for these bytes stay the same."""
    compiled_reader().load(is_made_now=True)
    for form, (schema, lines) in forms().items():
        theirs, ours = seconds_of(form, schema, lines)
        floor, speed = (EVENTS / statistics.median(seconds) for seconds in (theirs, ours))
        same = "the columns of pyarrow's reader"
        yield Row("readers", f"{form}; pyarrow", floor, "events/s", checked=same)
        ratio = ratio_in_turns(ours, theirs)
        yield Row("readers", f"{form}; spark_pace", speed, "events/s", ratio, TARGET, same)


def forms() -> dict[str, tuple[EventSchema, list[str]]]:
    """The schema and the lines of each."""
    random = np.random.default_rng(1)
    columns = {
        "number": (1_700_000_000_000 + np.arange(EVENTS) // 10).tolist(),
        "id": random.integers(0, 10_000, EVENTS).tolist(),
        "value": random.random(EVENTS).round(4).tolist(),
        "long": random.random(EVENTS).tolist(),
    }
    letters = random.integers(ord("A"), ord("K"), (EVENTS, LETTERS)).astype(np.uint8)
    types = [bytes(row).decode() for row in letters]
    times = pa.array(columns["number"]).cast(pa.timestamp("ms"))
    texts = pa.compute.strftime(times, "%Y-%m-%dT%H:%M:%SZ").to_pylist()
    rest = (Field("id", "BIGINT"), Field("etype", "STRING"), Field("value", "DOUBLE"))
    counted = EventSchema((Field("ts", "BIGINT"), *rest), "ts", time_unit="ms")
    written = EventSchema((Field("ts", "TIMESTAMP"), *rest), "ts")
    line = '{{"ts":{},"id":{},"etype":"{}","value":{}}}'.format
    spaced = '{{"id": {}, "other": null, "etype": "{}", "ts": {}, "value": {}}}'.format
    number, ids, value, long = columns.values()
    return {
        "time as number": (counted, list(map(line, number, ids, types, value))),
        "time as text": (written, list(map(line, (f'"{text}"' for text in texts), ids, types, value))),
        "other order": (counted, list(map(spaced, ids, types, number, value))),
        "doubles of 16 digits": (counted, list(map(line, number, ids, types, long))),
    }


def seconds_of(
    form: str, schema: EventSchema, lines: list[str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Processor seconds of pyarrow's reader and of ours, turn by turn."""
    step = EVENTS * CHUNK_BYTES // sum(map(len, lines))
    chunks = ["\n".join(lines[start : start + step]).encode() for start in range(0, EVENTS, step)]
    parser = JsonParser(schema)
    assert compiled_reader().is_ready_for(ways.WORTH_LOADING_BYTES)

    def ours() -> pa.Table:
        return pa.concat_tables([parser.read(chunk).table for chunk in chunks])

    def theirs() -> pa.Table:
        return pa.concat_tables([pyarrow_reads(chunk, schema) for chunk in chunks])

    require(ours().equals(theirs()), f"{form} — must give the columns of pyarrow's reader; gave others")
    turns = [(processor(theirs), processor(ours)) for _ in range(ROUNDS)]
    first, second = zip(*turns, strict=True)
    return first, second


def pyarrow_reads(chunk: bytes, schema: EventSchema) -> pa.Table:
    """The columns as pyarrow's reader alone gives them."""
    fields = pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields])
    return pa.json.read_json(
        pa.BufferReader(chunk),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
        parse_options=pa.json.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
    )
