"""A carry may be larger than the memory that a process may have."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[5]
EVENTS, BATCH = 1_200_000, 20_000
LIMIT = 340 << 20  # bytes of memory that is not a mapped file; the interpreter with its libraries takes half
SCRIPT = f"""
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.tables import NO_FRONTIER
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.rules import load_rules
from spark_pace.spark.checkpoint.checkpoint import ChunkFiles
from tests.support.drive import operate

resource.setrlimit(resource.RLIMIT_DATA, ({LIMIT}, {LIMIT}))
ways.LARGEST = 1 << 16
folder = Path(sys.argv[1])
(folder / "rules.yaml").write_text('''
events: {{schema: "time TIMESTAMP, card BIGINT, large BOOLEAN, note STRING", event_time: time}}
rules:
  - name: waits
    partition_by: [card]
    pattern: {{sequence: [{{a: not large}}, {{b: large}}]}}
    within: 1 d
    emit: {{note: a.note}}
''')
plan = build_plan(load_rules(folder / "rules.yaml"), order=OrderSpec())
files = ChunkFiles(folder / "waiting")
state, frontier_us, found = None, NO_FRONTIER, 0


def step(first, cards, large):
    global state, frontier_us, found
    number = np.arange(first, first + len(cards))
    records = pa.table({{
        "@time": number,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(len(cards), np.int32), ["s"]),
        "@offset": number,
        "time": pa.array(number).view(pa.timestamp("us")),
        "card": cards,
        "large": np.full(len(cards), large),
        "note": pc.utf8_lpad(pc.cast(number, pa.string()), 200),
    }})
    sifted = sift(plan, records, Past(frontier_us))
    splitter = SlotSplitter(plan, 0, state, files)
    output = splitter.step([frame for _, frame in pack(plan, sifted.events)], sifted.progress)
    state, frontier_us = splitter.snapshot(), splitter.frontier_us
    files.remove_all_but(splitter.stored())
    return output


for first in range(0, {EVENTS}, {BATCH}):
    step(first, np.arange(first, first + {BATCH}), False)
step({EVENTS}, np.arange(0, {EVENTS}, 1000), True)
output = step({EVENTS} + {BATCH}, np.array([-1]), True)
size = sum(path.stat().st_size for path in files.folder.iterdir())
print(size, len(state), output.stats["carry"])
"""


def test_a_carry_may_be_larger_than_memory() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # to sync it to a disk would take a minute
        command = [sys.executable, "-c", SCRIPT, folder]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    stored, state, carried = map(int, answer.stdout.split())
    assert carried == EVENTS - EVENTS // 1000
    assert stored > LIMIT
    assert state < 1 << 20
