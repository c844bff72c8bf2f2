"""The stream of a series of kills: what each record is stands fixed, however the input is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core import local_run
from spark_pace.core.plan.plan import build_plan
from spark_pace.job_file import JobSpec

Ints = npt.NDArray[np.int64]
Roles = npt.NDArray[np.str_]

START_S = 1_704_067_200 + 86_400  # 2024-01-02: a day after the late ones
LATE_S = 43_200  # far more than a batch spans, so that late ones are late in every batch but the first
DELAY_S = 60
POISON = 666
KEYS = np.array(["u", "v", "w"])
KINDS = np.array(["a", "b", "c"])
SLOW_S = 300  # how far one part is behind the others, far more than the delay
SILENT = 1000  # of every second so many records, the last part's are heartbeats
AGAIN = 10  # so many records of its part later an event comes a second time: still within the delay
EVENT, LATE, BAD, BEAT, REPEAT = "event", "late", "bad", "beat", "again"
SCHEMA = "t TIMESTAMP, id BIGINT, k STRING, kind STRING, x BIGINT"


@dataclass(frozen=True)
class Stream:
    """Records in order of arrival.

    Attributes:
        table: what each record is: `part, offset, role, t` (seconds)`, behind` (seconds, by source)`, id, k,
            kind, x`.
        lines: the records' text.
    """

    table: pa.Table
    lines: list[bytes]

    def count(self, role: str) -> int:
        """How many records are of one role."""
        return int(pc.sum(pc.equal(self.table["role"], role)).as_py() or 0)


def make_stream(records: int, parts: int, spared: int, *, by_source: bool = False, seed: int = 1) -> Stream:
    """Make events a second apart, up to two seconds out of order; one record in a hundred is late, one bad.

    Args:
        records: how many.
        parts: partitions of a topic, which get the records in turn.
        spared: so many records at the beginning are on time and good, for nothing is late in the first batch.
        by_source: the first part is slower than the others, the last one sends nothing but heartbeats for a
            while, again and again, of each hundred records one is an event that is sent a second time, and of
            forty events one comes up to five delays too late, so that most of these are late.
        seed: of the chance.
    """
    chance = np.random.default_rng(seed)
    number = np.arange(records)
    time = START_S + np.argsort(number + chance.random(records) * 2, kind="stable")
    role = np.full(records, EVENT, dtype="U5")
    role[(number >= spared) & (number % 100 == 37)] = LATE
    role[(number >= spared) & (number % 100 == 73)] = BAD
    part = number % parts
    if by_source:
        role[(role == EVENT) & (part == parts - 1) & (number // SILENT % 2 == 1)] = BEAT
        role[(number >= spared) & (number % 100 == 53) & (role != BEAT)] = REPEAT
        time = np.where(part == 0, time - SLOW_S, time)
    time = np.where(role == LATE, time - LATE_S, time)
    if by_source:
        time, role = _with_strays(part, time, role, spared, chance)
    behind = _behind(part, time, role) if by_source else np.zeros(records, np.int64)
    x = chance.integers(0, 9, records)
    x[(role == EVENT) & (chance.random(records) < 1 / 2000)] = POISON
    keys, kinds = (names[chance.integers(0, 3, records)] for names in (KEYS, KINDS))
    said = {"id": number.copy(), "k": keys, "kind": kinds, "x": x}
    repeats = np.flatnonzero(role == REPEAT)
    for values in said.values():
        values[repeats] = values[repeats - AGAIN * parts]  # of the same part; some batches end in between
    said["kind"] = np.where(role == BEAT, "alive", said["kind"])
    columns = {"part": part, "offset": number // parts, "role": role, "t": time, "behind": behind, **said}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    return Stream(table, lines_of(table))


def _with_strays(
    part: Ints, time: Ints, role: Roles, spared: int, chance: np.random.Generator
) -> tuple[Ints, Roles]:
    """Some events up to five delays earlier, which makes most of them late; none that is sent again."""
    strays = (role == EVENT) & (np.arange(len(time)) >= spared) & (chance.random(len(time)) < 1 / 40)
    strays[np.flatnonzero(role == REPEAT) - AGAIN * (part.max() + 1)] = False
    time = np.where(strays, time - chance.integers(1, 5 * DELAY_S, len(time)), time)
    is_late = strays & (_behind(part, time, role) > 0)
    return time, np.where(is_late, LATE, role)


def _behind(part: Ints, time: Ints, role: Roles) -> Ints:
    """int64[n]: by how many seconds a record is behind the delay, after the earlier ones of its part."""
    behind = np.zeros(len(time), np.int64)
    for one in np.unique(part):
        rows = np.flatnonzero((part == one) & (role != BAD))
        reached = np.maximum.accumulate(time[rows])
        behind[rows[1:]] = reached[:-1] - DELAY_S - time[rows[1:]]
    return behind


def lines_of(table: pa.Table, unit: str = "s") -> list[bytes]:
    """The text of each record; `t` is in this unit."""
    texts = pc.strftime(table["t"].cast(pa.timestamp(unit)), "%Y-%m-%dT%H:%M:%S")
    rows = zip(
        texts.to_pylist(),
        *(table[name].to_pylist() for name in ("role", "id", "k", "kind", "x")),
        strict=True,
    )
    return [
        b'{"t": nonsense %d' % number
        if role == BAD
        else f'{{"t":"{text}","id":{number},"k":"{k}","kind":"{kind}","x":{x}}}'.encode()
        for text, role, number, k, kind, x in rows
    ]


def in_core(spec: JobSpec, stream: Stream, source_of: dict[int, str]) -> local_run.LocalResult:
    """What the core finds in the events that are on time, in one batch."""
    plan = build_plan(spec.rules, order=spec.events.order)
    events = stream.table.filter(pc.equal(stream.table["role"], EVENT))
    time = pc.multiply(events["t"], 1_000_000)
    sources = pa.array([source_of[part] for part in events["part"].to_pylist()]).dictionary_encode()
    ours = {
        "@time": time,
        "@source": sources,
        "@offset": events["offset"],
        "t": time.cast(pa.timestamp("us")),
    }
    return local_run.run(
        plan, [pa.table({**ours, **{name: events[name] for name in ("id", "k", "kind", "x")}})]
    )
