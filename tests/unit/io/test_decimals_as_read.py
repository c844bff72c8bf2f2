"""DECIMALs near powers of 2 and 10, and at the ends of their types, are read and written digit by digit."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from spark_pace import read_table, replay
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.delta_log import TableFile
from spark_pace.io.event_files import read_events, read_table_file
from spark_pace.io.records import read_records
from spark_pace.io.text.column_types import typed
from spark_pace.io.text.value_texts import as_json
from tests.support.edge_numbers import edge_numbers

KINDS = [(38, 0), (38, 19), (38, 38), (28, 6), (20, 0), (18, 4), (10, 2), (2, 2)]
_WIDE = Context(prec=200)


def schema_of(digits: tuple[int, int]) -> EventSchema:
    return EventSchema((Field("t", "TIMESTAMP"), Field("d", f"DECIMAL({digits[0]},{digits[1]})")), "t")


def numbers(digits: tuple[int, int], more: int) -> list[Decimal]:
    """Numbers that may have so many digits more behind the point than a type has."""
    most = 10 ** (digits[0] + more) - 1
    units = edge_numbers(min(most, 10**75), Random(3))[:300]
    return [Decimal(one).scaleb(-digits[1] - more, _WIDE) for one in units]


def rounded(number: Decimal, digits: tuple[int, int]) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-digits[1]), ROUND_HALF_UP, _WIDE)


def fits(number: Decimal, digits: tuple[int, int]) -> bool:
    return bool(rounded(number, digits).copy_abs().scaleb(digits[1], _WIDE) < 10 ** digits[0])


def wanted(values: list[Decimal], digits: tuple[int, int]) -> dict[int, Decimal]:
    return {row: rounded(one, digits) for row, one in enumerate(values) if fits(one, digits)}


def by_row(table: pa.Table) -> dict[int, Any]:
    return dict(zip(table["@offset"].to_pylist(), table["d"].to_pylist(), strict=True))


@pytest.mark.parametrize("more", [0, 3, 25])
@pytest.mark.parametrize("digits", KINDS, ids=str)
def test_numbers_of_json_and_csv_and_columns_of_text_are_rounded_digit_by_digit(
    tmp_path: Path, digits: tuple[int, int], more: int
) -> None:
    values = [one for one in numbers(digits, more) if len(one.as_tuple().digits) <= 76]
    texts = [f"{one:f}" for one in values]
    lines = [
        f'{{"t":"2024-01-01","d":{text if row % 2 else json.dumps(text)}}}' for row, text in enumerate(texts)
    ]
    (tmp_path / "a.json").write_text("\n".join(lines))
    (tmp_path / "a.csv").write_text("\n".join(["t,d", *(f"2024-01-01,{text}" for text in texts)]))
    for format in ("json", "csv"):
        read = read_events(str(tmp_path / f"a.{format}"), format, schema_of(digits), "file")
        assert by_row(read.events) == wanted(values, digits), format
    places = pa.array(range(len(texts)))
    values_of = pa.array([b'{"t":"2024-01-01"}'] * len(texts), pa.binary())
    sources = pa.array(["topic/0"] * len(texts)).dictionary_encode()
    column = pa.array(list(map(str.encode, texts)), pa.binary())
    records = pa.table({"@value": values_of, "@source": sources, "@offset": places, "d": column})
    assert by_row(read_records(records, "json", schema_of(digits)).events) == wanted(values, digits)


@pytest.mark.parametrize("digits", KINDS, ids=str)
def test_stored_decimals_are_read_if_no_digit_changes(tmp_path: Path, digits: tuple[int, int]) -> None:
    for number, stored in enumerate([(38, 0), (38, 38), (38, 10), (18, 4), (76, 38), (9, 2)]):
        units = edge_numbers(10 ** stored[0] - 1, Random(number))[:400]
        values = [Decimal(one).scaleb(-stored[1], _WIDE) for one in units]
        kind = pa.decimal256(*stored) if stored[0] > 38 else pa.decimal128(*stored)
        table = pa.table({"t": pa.array([0] * len(values), pa.timestamp("us")), "d": pa.array(values, kind)})
        pq.write_table(table, tmp_path / "a.parquet")
        read = read_events(str(tmp_path / "a.parquet"), "parquet", schema_of(digits), "file", 10**6)
        kept = {
            row: one for row, one in enumerate(values) if fits(one, digits) and rounded(one, digits) == one
        }
        assert by_row(read.events) == kept, stored
        assert read.bad["offset"].to_pylist() == [row for row in range(len(values)) if row not in kept], (
            stored
        )


def test_a_stored_decimal_that_alone_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Modulo 2 ** 128 it would fit."""
    table = pa.table({"t": pa.array([0], pa.timestamp("us")), "d": pa.array([Decimal(10**37 - 1)])})
    pq.write_table(table, tmp_path / "a.parquet")
    read = read_events(str(tmp_path / "a.parquet"), "parquet", schema_of((38, 38)), "file")
    assert read.events.num_rows == 0
    assert read.bad["reason"].to_pylist() == [f"d — must be DECIMAL(38,38); got: {10**37 - 1}"]


@pytest.mark.parametrize("digits", KINDS, ids=str)
def test_decimals_that_partition_a_table_are_read_if_no_digit_changes(
    tmp_path: Path, digits: tuple[int, int]
) -> None:
    pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("us"))}), tmp_path / "part")
    for units in (10**37 - 1, 10**38 - 1, 2**64 - 1, -(2**126), 1, 5 * 10**37):
        for scale in (0, 2, 19, 38):
            number = Decimal(units).scaleb(-scale, _WIDE)
            file = TableFile(0, "part", {"d": f"{number:f}"})
            read = read_table_file(tmp_path, file, schema_of(digits))
            kept = [number] if fits(number, digits) and rounded(number, digits) == number else []
            assert read.events["d"].to_pylist() == kept, number


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_stored_integers_are_read_as_decimals_if_they_fit(tmp_path: Path, kind: pa.DataType) -> None:
    least, most = (0, 2**64 - 1) if kind == pa.uint64() else (-(2**63), 2**63 - 1)
    values = [one for one in edge_numbers(2**64, Random(7), 60) if least <= one <= most]
    for digits in [(38, 0), (38, 18), (38, 19), (20, 0), (19, 0), (18, 4), (10, 2)]:
        table = pa.table({"t": pa.array([0] * len(values), pa.timestamp("us")), "d": pa.array(values, kind)})
        pq.write_table(table, tmp_path / "a.parquet")
        read = read_events(str(tmp_path / "a.parquet"), "parquet", schema_of(digits), "file", 10**6)
        kept = {row: Decimal(one) for row, one in enumerate(values) if fits(Decimal(one), digits)}
        assert by_row(read.events) == kept


def test_a_text_of_more_digits_than_arrow_holds_is_refused() -> None:
    """Modulo 2 ** 256 the first one is 5 * 10 ** 11."""
    for text in (str(2**256 + 5 * 10**11), f"0.{2**256 + 5 * 10**11}", "1." + "0" * 76):
        with pytest.raises(pa.ArrowInvalid):
            typed(pa.chunked_array([[text]]), "DECIMAL(10,2)")


RULES = """
events: {schema: "time TIMESTAMP, kind STRING, k DECIMAL(20,0), v DECIMAL(38,19)", event_time: time}
rules:
  - name: r
    partition_by: [k]
    pattern: {sequence: [a: kind = 'a', b: kind = 'b']}
    within: 1 h
    emit: {v: b.v, n: b.k}
"""


def test_keys_that_differ_in_their_last_digit_are_two(tmp_path: Path) -> None:
    near = [2**64 - 1, 2**64, 2**64 - 5_265_614_582 - 1]
    values = {key: f"{key - 2**63}.0000000000000000001" for key in near}
    lines = [
        f'{{"time":"2024-01-01T00:00:0{second}Z","kind":"{kind}","k":{key},"v":{values[key]}}}'
        for second, (kind, key) in enumerate(product("ab", near))
    ]
    (tmp_path / "events.json").write_text("\n".join(lines))
    found = replay(RULES, str(tmp_path / "events.json")).matches
    assert found["n"].to_pylist() == near
    assert [f"{value:f}" for value in found["v"].to_pylist()] == list(values.values())


def test_values_of_python_are_taken_digit_by_digit() -> None:
    chance = Random(5)
    keys = [one for one in edge_numbers(10**20 - 1, chance)[:200] if one >= 0]
    values = [Decimal(one).scaleb(-19, _WIDE) for one in edge_numbers(10**38 - 1, chance)[: len(keys)]]
    events = [
        {
            "time": pa.scalar(2 * row + (kind == "b"), pa.timestamp("s")).as_py(),
            "kind": kind,
            "k": key,
            "v": value,
        }
        for row, (key, value) in enumerate(zip(keys, values, strict=True))
        for kind in "ab"
    ]
    found = replay(RULES, events).matches
    assert found["n"].to_pylist() == keys
    assert found["v"].to_pylist() == values


def test_values_are_written_digit_by_digit(tmp_path: Path) -> None:
    for precision, scale in KINDS:
        units = edge_numbers(10**precision - 1, Random(1), products=30)
        values = [Decimal(one).scaleb(-scale, _WIDE) for one in units]
        column = pa.array(values, pa.decimal128(precision, scale))
        assert [Decimal(text) for text in as_json(column).to_pylist()] == values
        folder = tmp_path / f"{precision}_{scale}"
        write_deltalake(folder / "matches", pa.table({"d": column}))
        assert read_table(folder, "matches")["d"].to_pylist() == values
