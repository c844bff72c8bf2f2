"""The compiled reader of plain JSON gives what pyarrow's gives, of any lines, together and alone."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.text.lines import ParsedLines, read_lines
from spark_pace.io.text.parsers import JsonParser
from spark_pace.io.text.plain_json import PlainReader
from tests.long.fuzz.mutation import mutated

TYPES = {
    "t": "TIMESTAMP",
    "n": "BIGINT",
    "x": "DOUBLE",
    "str": "STRING",
    "b": "BOOLEAN",
    "d": "DATE",
    "é": "STRING",
}
SCHEMA = EventSchema(tuple(Field(name, kind) for name, kind in TYPES.items()), "t")
LINES_OF_AN_EXAMPLE = 8
SPACES = ["", "", "", "", " ", "\t ", "  "]
WRITTEN_NUMBERS = """0 1 -1 7 10 42 -17 1700000000000 9007199254740993 922337203685477580 9223372036854775807
9223372036854775808 -9223372036854775808 -9223372036854775809 99999999999999999999 -0 00 01 1. .5 +1 1e5
1E-7 2.5e+22 1e-99 1e308 1e999 1e 1e+ 0.5 -0.5 -0.0 0.1 0.30000000000000004 3.141592653589793 1.0 12.50
0.00000000000000000000001 123456789012345678901234567890.5 179769313486231570000000 NaN Infinity -Infinity
0.000000000000000000000000000000000000000000000000000000000000000001 4.35 0.000001 1e00 0x1 1_0"""
NUMBERS = WRITTEN_NUMBERS.split()
WRITTEN_TIMES = """2013-01-01T00:00:00 2013-01-01T00:00:00Z 2024-02-29T23:59:59.999999Z 2023-02-29T00:00:00
1900-02-29T00:00:00 2000-02-29T12:30:00.5 1969-12-31T23:59:59.1234567 1969-12-31T23:59:59.5
2013-01-01T00:00:00.123456789Z 2013-01-01T00:00:00.1234567891 2013-01-01T02:00:00+02:00
2013-01-01T02:00:00-0530 2013-01-01T02:00:00+02 2013-01-01T02:00:00+2 2013-01-01T24:00:00
2013-01-01T23:60:00 2013-01-01T23:59:60 2013-13-01T00:00:00 2013-00-01T00:00:00 2013-01-00T00:00:00
2013-01-01 2013-01-01T00 2013-01-01T00:00 1899-12-31T23:59:59 2199-12-31T23:59:59.999999
2200-01-01T00:00:00 9999-01-01T00:00:00 soon 2013-01-01T00:00:00. 2013-01-01T00:00:00z
2013-01-01T00:00:00+14:00 2013-01-01T00:00:00+24:00 2013-01-01T00:00:00+02:60 2013-1-1T00:00:00
1970-01-01T00:00:00.000001-00:01 1970-01-01T00:00:00.1234567+01:00 1970-01-01T00:00:00.1234567"""
TIMES = [*WRITTEN_TIMES.split(), "2013-01-01 00:00:00"]
WRITTEN_DATES = "2020-02-29 2019-02-29 1900-01-01 2199-12-31 1899-12-31 2200-01-01 2020-2-9 2020-02-29T00"
DATES = WRITTEN_DATES.split()
TEXTS = ["", "a", "etype", "two words", "é", "日本", "\U0001f642", "\x7f"]
ODD_TEXTS = [r"\n", r"\"", r"\u00e9", r"\ud800", r"\q", "}", "{", "a}", ",", "t", "\x00", "\x1f", "a\tb"]
OTHERS = ["null", "true", "false", "[]", "{}", "[1,2]", '{"t":1}', '{"a":[{"b":null},[]]}', "[1,]", "{,}", ""]
OTHERS += ["nul", "tru", "True", '{"a":1}}', "[}", "{]", '[{"a":"}"}]', '{"a"}', '{"a":1,"a":2}', "[1 2]"]


def quoted(text: str) -> str:
    return f'"{text}"'


def value(chance: random.Random, kind: str) -> str:
    """One as the type is written, or any other."""
    if chance.random() < 0.02:
        kind = chance.choice(["BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE", "other"])
    if kind in ("BIGINT", "DOUBLE"):
        plain = [
            str(chance.randrange(-(10**6), 10**9)),
            repr(chance.random()),
            str(chance.randrange(10**4) / 100),
        ]
        return (
            chance.choice(NUMBERS)
            if chance.random() < 0.1
            else plain[0 if kind == "BIGINT" else chance.randrange(3)]
        )
    if kind == "BOOLEAN":
        return chance.choice(["true", "false"])
    if kind == "TIMESTAMP":
        return quoted(chance.choice(TIMES) if chance.random() < 0.15 else TIMES[0].split()[0])
    if kind == "DATE":
        return quoted(DATES[0] if chance.random() < 0.9 else chance.choice(DATES))
    if kind == "STRING":
        return quoted(chance.choice(TEXTS if chance.random() < 0.97 else ODD_TEXTS))
    return chance.choice(OTHERS)


def line(chance: random.Random) -> bytes:
    """A record: members in any order, some twice, null or of no attribute, with space between."""
    names = [name for name in TYPES if chance.random() < 0.8]
    if chance.random() < 0.2:
        chance.shuffle(names)
    names += chance.choices([*TYPES, "other", "tt", "", "ts"], k=chance.choice([0, 0, 0, 0, 1, 2]))

    def space() -> str:
        return chance.choice(SPACES)

    def member(name: str) -> str:
        written = "null" if chance.random() < 0.1 else value(chance, TYPES.get(name, "other"))
        return f'{space()}"{name}"{space()}:{space()}{written}{space()}'

    text = f"{space()}{{{','.join(map(member, names))}}}{space()}"
    return (text + "\r" * (chance.random() < 0.05)).encode("utf-8", "surrogatepass")


def mutilated(chance: random.Random, pool: list[bytes]) -> bytes:
    words = [text.encode() for text in (*NUMBERS, *OTHERS, *map(quoted, DATES), '"', ",", ":", "}", "{")]
    return mutated(chance, pool, words, 2_000)


@pytest.fixture(autouse=True, scope="module")
def _at_once() -> Iterator[None]:
    """Let the compiled reader read from the first byte on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "WORTH_LOADING_BYTES", 0)
        patch.setattr(ways, "WORTH_COMPILING_BYTES", 0)
        patch.setattr(ways, "LEAST_READ", 0.0)
        yield


def require_same(ours: ParsedLines, theirs: ParsedLines) -> None:
    """NaN is like NaN, and 0.0 is not like -0.0."""
    assert ours.table.schema == theirs.table.schema
    ours.table.validate(full=True)
    assert ours.rows.tolist() == theirs.rows.tolist()
    assert ours.refused.tolist() == theirs.refused.tolist()
    assert [*map(ours.reason, range(len(ours.refused)))] == [*map(theirs.reason, range(len(theirs.refused)))]
    assert repr(ours.table.to_pylist()) == repr(theirs.table.to_pylist())


@given(st.integers(0, 2**32))
def test_any_lines_are_read_as_pyarrow_reads_them(seed: int) -> None:
    chance = random.Random(seed)
    parser = JsonParser(SCHEMA)
    pool = [line(chance) for _ in range(LINES_OF_AN_EXAMPLE)]
    chunk = b"\n".join(mutilated(chance, pool) if chance.random() < 0.3 else text for text in pool)
    require_same(parser.read(chunk), read_lines(chunk, parser))


def test_every_number_and_time_is_read_as_pyarrow_reads_it() -> None:
    parser = JsonParser(SCHEMA)
    written = [("n", text) for text in NUMBERS] + [("x", text) for text in NUMBERS]
    written += [("t", quoted(text)) for text in TIMES] + [("d", quoted(text)) for text in DATES]
    for name, text in written:
        chunk = f'{{"{name}":{text}}}'.encode()
        require_same(parser.read(chunk), read_lines(chunk, parser))


def test_most_records_are_plain() -> None:
    chance = random.Random(1)
    parser = JsonParser(SCHEMA)
    chunk = b"\n".join(line(chance) for _ in range(1000))
    left = []
    PlainReader(SCHEMA.fields).lines(chunk, lambda rest: left.append(rest) or read_lines(rest, parser))
    (rest,) = left
    assert 100 < rest.count(b"\n") < 600
