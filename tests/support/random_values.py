"""Random values of every type, near the limits too, in files for a job, with the rows that it must give.

The rules, which are drawn as well, compare the values, take them as keys, gather them in groups and emit
them. The oracle is told what each record was made of: it reads no file.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.expr.time_functions import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US
from spark_pace.job_file import JobSpec, read_job
from tests.oracle.contexts import Event
from tests.oracle.matches import evaluate
from tests.oracle.order import Reading, read
from tests.spark.jobs import make_job
from tests.support.results import difference, from_core, from_oracle

FILES, RECORDS = 5, 9  # of a job, and of a file at most
BEGIN_US = 1_704_067_200_000_000
EPOCH = datetime(1970, 1, 1)
TYPES = {
    "k": "STRING",
    "u": "TIMESTAMP",
    "d": "DATE",
    "n": "BIGINT",
    "x": "DOUBLE",
    "p": "DECIMAL(38,2)",
    "s": "STRING",
    "b": "BOOLEAN",
}
COMPARED = "udnxps"
RULES = """
events: {{schema: "t TIMESTAMP, {schema}", event_time: t}}
rules:
  - name: all_values
    pattern: {{sequence: [a: "true"]}}
    emit: {{ {every} }}
  - name: compared
    partition_by: [k]
    pattern: {{sequence: [{{a: "{first} is not null"}}, {{c: "{second} is not null"}}]}}
    where: c.{first} {sign} a.{first}
    within: 20 s
    context: "{context}"
    emit: {{ {both} }}
  - name: gathered
    partition_by: [{key}]
    pattern:
      sequence: [{{a: "true"}}, {{name: g, when: "{second} is not null", times: 1+}}, {{c: "k = 'w'"}}]
    where: max(g.{second}) >= c.{second}
    within: 15 s
    emit: {{least: min(g.{first}), most: max(g.{second}), begun: first(g.{third}), ended: last(g.{second}),
           many: count(g)}}
  - name: spans
    span: {{every: 10 s, size: 20 s}}
    emit: {{least: min({first}), most: max({second}), begun: first({third}), many: count({third})}}
"""
CONTEXTS = ("each, zero", "next, zero", "earliest, selected", "latest, selected")
Draw = Callable[[Random], Any]


def whole(random: Random) -> int:
    return random.choice(
        [2**63 - 1, -(2**63), 2**53 + 1, 0, 1, -1, random.getrandbits(63), random.randrange(9)]
    )


def real(random: Random) -> float:
    bits: float = struct.unpack("d", random.randbytes(8))[0]
    return random.choice([math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -2.2e-308, 1e308, 0.1, bits])


def text(random: Random) -> str:
    letters = [
        chr(random.choice([random.randrange(0xD800), random.randrange(0xE000, 0x110000)])) for _ in range(5)
    ]
    known = [
        "",
        "\x00",
        "null",
        "NaN",
        "'\"\\",
        "\u202e\U0001f642",
        "\r\n",
        "é" * 9,
        "x" * 50_000,
        "9999-12-31",
    ]
    return random.choice([*known, "".join(letters)])


VALUES: dict[str, Draw] = {
    "k": lambda random: random.choice("uvw"),
    "u": lambda random: random.choice([FIRST_US, LAST_US, -1, 0, random.randint(FIRST_US, LAST_US)]),
    "d": lambda random: random.choice([FIRST_DAY, LAST_DAY, -1, 0, random.randint(FIRST_DAY, LAST_DAY)]),
    "n": whole,
    "x": real,
    "p": lambda random: random.choice(
        [10**38 - 1, 1 - 10**38, 0, -1, random.randint(-(10**38), 10**38) // 2]
    ),
    "s": text,
    "b": lambda random: random.random() < 0.5,
}
# a field of a line of JSON that makes a bad record of it
BAD_TEXTS = (
    *(
        '"n": 9223372036854775808',
        '"n": 1.5',
        '"n": "1"',
        '"x": "1"',
        '"x": 1e999',
        '"s": "\\ud800"',
        '"s": 1',
    ),
    *('"u": "0000-12-31T00:00:00"', '"u": "soon"', '"d": "10000-01-01"', '"d": 5', '"b": 1', '"t": null'),
    *('"t": "0001-01-01T00:00:00"', '"p": "1e40"', "", "]"),
)
# the same in a file of Parquet: the number of a time or a date
BAD_NUMBERS = (
    ("u", FIRST_US - 1),
    ("u", 2**63 - 1),
    ("d", LAST_DAY + 1),
    ("d", -(2**31)),
    ("t", None),
    ("t", FIRST_US),
)


@dataclass(frozen=True)
class Record:
    """What a record is made of: times and dates are numbers; `bad` says what spoils it, if anything does."""

    fields: dict[str, Any]
    bad: Any = None


def records_of(random: Random, spoiled: tuple[Any, ...]) -> list[list[Record]]:
    """The records of each file: few values of each attribute, so that some are equal; some are late."""
    pools = {name: [draw(random) for _ in range(4)] for name, draw in VALUES.items()}
    files, at = [], BEGIN_US
    for _ in range(FILES):
        records = []
        for _ in range(random.randint(0, RECORDS)):
            at += random.choice([0, 1, 500_000, 1_000_000, 4_000_000])
            fields = {"t": at - random.choice([0, 0, 0, 2_000_000, 60_000_000])}
            for name, pool in pools.items():
                fields[name] = random.choice(pool) if random.random() < 0.85 else None
            records.append(Record(fields, random.choice(spoiled) if random.random() < 0.15 else None))
        files.append(records)
    return files


def row_of(fields: dict[str, Any]) -> dict[str, Any]:
    """The values as the oracle takes them: times are numbers, dates are dates."""
    days = fields["d"]
    day = None if days is None else date.fromordinal(EPOCH.toordinal() + days)
    return fields | {"d": day, "p": money(fields["p"])}


def money(cents: int | None) -> Decimal | None:
    return None if cents is None else Decimal(Decimal(cents).as_tuple()._replace(exponent=-2))


def line_of(record: Record, random: Random) -> str:
    """The record as a line of JSON; nulls may be missing."""
    if record.bad in ("", "]"):
        return record.bad + "{"
    shown: dict[str, Any] = row_of(record.fields)
    for name in "tu":
        if shown[name] is not None:
            shown[name] = (EPOCH + timedelta(microseconds=shown[name])).isoformat()
    shown |= {name: str(shown[name]) for name in "dp" if shown[name] is not None}
    shown = {name: value for name, value in shown.items() if value is not None or random.random() < 0.5}
    if record.bad is None:
        return json.dumps(shown, ensure_ascii=random.random() < 0.5)
    shown.pop(record.bad.split('"')[1], None)
    return json.dumps(shown)[:-1] + f", {record.bad}}}"


def stored(records: list[Record]) -> pa.Table:
    """The records as a table of Parquet."""
    spoiled = [record.fields | dict([] if record.bad is None else [record.bad]) for record in records]
    columns = {}
    for name, kind in {"t": "TIMESTAMP", **TYPES}.items():
        given = [fields[name] for fields in spoiled]
        if name == "p":
            columns[name] = pa.array(map(money, given), ARROW_TYPES[kind])
        elif kind in ("TIMESTAMP", "DATE"):
            numbers = pa.array(given, pa.int64() if kind == "TIMESTAMP" else pa.int32())
            columns[name] = numbers.cast(ARROW_TYPES[kind])
        else:
            columns[name] = pa.array(given, ARROW_TYPES[kind])
    return pa.table(columns)


def job_of(folder: Path, format: str, random: Random) -> JobSpec:
    """A job with drawn rules, over files that are not there yet."""
    names = {
        "first": random.choice(COMPARED),
        "second": random.choice(COMPARED),
        "third": random.choice([*TYPES]),
    }
    rules = RULES.format(
        schema=", ".join(f"{name} {kind}" for name, kind in TYPES.items()),
        every=", ".join(f"{name}: a.{name}" for name in TYPES),
        both=", ".join(f"{name}_{of}: {of}.{name}" for name in TYPES for of in "ac" if name != "k"),
        sign=random.choice(["=", "<", ">=", "<>"]),
        context=random.choice(CONTEXTS),
        key=random.choice("knsb"),
        **names,
    )
    events = "delay: 5 s, deduplicate_on: [n, k]"
    path = make_job(folder, rules=rules, events=events, slots=random.choice([1, 2]))
    path.write_text(path.read_text().replace("format: json", f"format: {format}"))
    spec = read_job(path)
    return replace(spec, source=replace(spec.files, max_files_per_trigger=random.choice([2, 3, FILES])))


def write(folder: Path, files: list[list[Record]], format: str, random: Random) -> None:
    for number, records in enumerate(files):
        path = folder / "in" / f"{number}.{format}"
        if format == "json":
            lines = [line_of(record, random) + "\n" for record in records]
            path.write_text("".join(lines), "utf-8", newline="")
        else:
            pq.write_table(stored(records), path)


@dataclass(frozen=True)
class Case:
    """A job whose files are there, and what it must give.

    Attributes:
        spec: the job.
        reading: what becomes of each good record.
        bad: the places of the bad ones: file and row.
        told: for people to find it again.
    """

    spec: JobSpec
    reading: Reading
    bad: set[tuple[str, int]]
    told: str

    def check(self, matches: pa.Table, late: pa.Table, bad: pa.Table) -> None:
        """Compare all that was found with what the oracle says."""
        for rule in self.spec.rules:
            expected = from_oracle(rule, evaluate(rule, self.reading.kept))
            problem = difference(expected, from_core(rule, matches))
            assert not problem, f"{self.told}, {rule.name}: {problem}"
        found = {(row["source"], row["offset"], row["lateness_us"]) for row in late.to_pylist()}
        expected_late = {(event.source, event.offset, behind) for event, behind in self.reading.late}
        assert found == expected_late, self.told
        assert {(row["source"], row["offset"]) for row in bad.to_pylist()} == self.bad, self.told


def case_of(folder: Path, format: str, seed: int) -> Case:
    """The case of a seed; its files are written into the folder."""
    random = Random(seed)
    spec = job_of(folder, format, random)
    files = records_of(random, BAD_TEXTS if format == "json" else BAD_NUMBERS)
    write(folder, files, format, random)
    names = [f"{number}.{format}" for number in range(len(files))]
    batches = [
        [
            Event(record.fields["t"], name, place, row_of(record.fields))
            for place, record in enumerate(records)
            if record.bad is None
        ]
        for name, records in zip(names, files, strict=True)
    ]
    reading = read(spec.rules[0], batches, spec.events.order, lambda event: event.source, lambda event: False)
    bad = {
        (name, place)
        for name, records in zip(names, files, strict=True)
        for place, record in enumerate(records)
        if record.bad is not None
    }
    return Case(spec, reading, bad, f"{format}, seed {seed}")
