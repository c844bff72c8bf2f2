"""Events for the measurements: made from a seed once, then kept."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TYPES = "ABCDEFGHIJ"
IDS = 10_000
EVENTS_PER_SECOND = 10_000


def write_events(directory: Path, events: int, files: int, time: Literal["text", "number"] = "text") -> Path:
    """JSON lines ``{"ts", "id", "etype", "value"}``, in time order, unless they are there already.

    There are 10,000 events to the second; `ts` is ISO 8601 text, or a number of milliseconds. `id` is one of
    10,000, `etype` one of ten, all equally likely. The same arguments give the same events.
    """
    done = directory / f"_{events}-{files}-{time}"
    if done.exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    for number, rows in enumerate(np.array_split(np.arange(events, dtype=np.int64), files)):
        _write_file(directory / f"part-{number:03d}.json", rows, random, time)
    done.touch()
    return directory


def _write_file(
    path: Path, rows: np.ndarray[tuple[int], np.dtype[np.int64]], random: np.random.Generator, time: str
) -> None:
    size = len(rows)
    types = pc.take(pa.array(list(TYPES)), pa.array(random.integers(0, len(TYPES), size)))
    milliseconds = pa.array(1_700_000_000_000 + rows * 1000 // EVENTS_PER_SECOND)
    iso = pc.strftime(milliseconds.cast(pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%SZ")
    columns = {
        "ts": pc.binary_join_element_wise('"', iso, '"', "")
        if time == "text"
        else milliseconds.cast(pa.string()),
        "id": _text(random.integers(0, IDS, size)),
        "etype": pc.binary_join_element_wise('"', types, '"', ""),
        "value": _text(random.random(size).round(4)),
    }
    members = [pc.binary_join_element_wise(f'"{name}":', column, "") for name, column in columns.items()]
    lines = pc.binary_join_element_wise("{", pc.binary_join_element_wise(*members, ","), "}", "")
    path.write_text("\n".join(lines.to_pylist()) + "\n", encoding="ascii")


def _text(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> pa.Array:
    return pa.array(values).cast(pa.string())
