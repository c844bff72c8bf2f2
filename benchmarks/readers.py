"""The reader of JSON lines beside pyarrow's, alone: the same bytes in chunks, one core, processor seconds.

Both are run once, and what they give is compared; then they are run in turns, and the ratio is the median of
the turns' ratios. Ours includes the numbers of the lines; pyarrow's is the bare call of its reader.

``python -m benchmarks.readers``
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.text import kept
from spark_pace.io.text.lines import CHUNK_BYTES, parse_lines
from spark_pace.io.text.parsers import JsonParser

EVENTS = 200_000
ROUNDS = 7
TARGET = 2.0
LETTERS = 10


def main() -> int:
    """Measure each form of events; 1 if a target is missed."""
    if kept.kept_code() is None:
        kept.compiled_code()
    results = [measure(name, *made) for name, made in forms().items()]
    for result in results:
        print(", ".join(f"{key} {value}" for key, value in result.items()))
    print(json.dumps(results))
    return 0 if all(result["ratio"] >= TARGET for result in results) else 1


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


def measure(name: str, schema: EventSchema, lines: list[str]) -> dict[str, Any]:
    """The ratio, and events a second of each."""
    step = EVENTS * CHUNK_BYTES // sum(map(len, lines))
    chunks = ["\n".join(lines[start : start + step]).encode() for start in range(0, EVENTS, step)]
    parser = JsonParser(schema)
    if parser.plain(chunks[0]) is None:
        parser.plain(bytes(kept.WORTH_LOADING_BYTES))  # from here on, the process has read enough
    assert parser.plain(chunks[0]) is not None

    def ours() -> pa.Table:
        return pa.concat_tables([parse_lines(chunk, parser).table for chunk in chunks])

    def theirs() -> pa.Table:
        return pa.concat_tables([pyarrow_reads(chunk, schema) for chunk in chunks])

    assert ours().equals(theirs()), name
    turns = [(seconds(theirs), seconds(ours)) for _ in range(ROUNDS)]
    their_seconds, our_seconds = (statistics.median(times) for times in zip(*turns, strict=True))
    return {
        "form": name,
        "ratio": round(statistics.median(their / our for their, our in turns), 2),
        "events_per_second": round(EVENTS / our_seconds),
        "pyarrow_events_per_second": round(EVENTS / their_seconds),
    }


def pyarrow_reads(chunk: bytes, schema: EventSchema) -> pa.Table:
    """The columns as pyarrow's reader alone gives them."""
    fields = pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields])
    return pa.json.read_json(
        pa.BufferReader(chunk),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
        parse_options=pa.json.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
    )


def seconds(action: Callable[[], object]) -> float:
    """Processor time."""
    began = process_time()
    action()
    return process_time() - began


if __name__ == "__main__":
    raise SystemExit(main())
