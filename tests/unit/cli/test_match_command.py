"""`spark-pace match`: a query with MATCH_RECOGNIZE over files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from tests.support.commands import spark_pace

QUERY = """
-- a V, the deepest first
SELECT day AS from_day, "deep" FROM Ticks MATCH_RECOGNIZE (
  PARTITION BY sym ORDER BY day
  MEASURES FIRST(day) AS day, LAST(D.price) AS "deep"
  PATTERN (S D+ U+)
  DEFINE D AS price < PREV(price), U AS price > PREV(price))
ORDER BY "deep" LIMIT 2;
"""
PRICES = [("a", 5), ("a", 3), ("a", 4), ("a", 2), ("a", 6), ("b", 9), ("b", 8), ("b", 9)]
TABLE = pa.table({"sym": [s for s, _ in PRICES], "day": list(range(8)), "price": [p for _, p in PRICES]})


def write(folder: Path, name: str) -> None:
    (folder / "q.sql").write_text(QUERY)
    if name.endswith("csv"):
        pa_csv.write_csv(TABLE, folder / name)
    elif name.endswith("parquet"):
        kinds = {"sym": TABLE["sym"].dictionary_encode()} if "categories" in name else {}
        pq.write_table(
            pa.table(dict(zip(TABLE.column_names, TABLE.columns, strict=True)) | kinds), folder / name
        )
    else:
        lines = (json.dumps(row) + "\n" for row in TABLE.to_pylist())
        (folder / name).write_text("".join(lines))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "categories.parquet", "t.json", "t.jsonl"])
def test_it_reads_each_kind_of_file(name: str, tmp_path: Path) -> None:
    write(tmp_path, name)
    asked = ("match", "q.sql", "--table", f"ticks={name}", "--dialect", "trino", "--format", "csv")
    answer = spark_pace(*asked, cwd=tmp_path)
    assert (answer.returncode, answer.stderr, answer.stdout) == (0, "", "from_day,deep\n0,3\n5,8\n")


@pytest.mark.parametrize("out", ["out.csv", "out.json", "out.parquet"])
def test_it_writes_each_kind_of_file(out: str, tmp_path: Path) -> None:
    write(tmp_path, "ticks.csv")
    asked = ("match", "q.sql", "--table", "ticks=ticks.csv", "--dialect", "trino", "-o", out)
    answer = spark_pace(*asked, cwd=tmp_path)
    assert (answer.returncode, answer.stderr, answer.stdout) == (0, f"2 rows: {out}\n", "")
    rows = [{"from_day": 0, "deep": 3}, {"from_day": 5, "deep": 8}]
    if out.endswith("parquet"):
        assert pq.read_table(tmp_path / out).to_pylist() == rows
    elif out.endswith("json"):
        assert [json.loads(line) for line in (tmp_path / out).read_text().splitlines()] == rows
    else:
        assert (tmp_path / out).read_text() == "from_day,deep\n0,3\n5,8\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "ticks=no.csv"], "no.csv — must be usable; got: "),
        (
            ["--table", "other=ticks.csv"],
            "--table — must name the file of Ticks; got other. Use one of: other.\n",
        ),
        ([], "--table — must name the file of Ticks; got none. Write --table Ticks=FILE.\n"),
        (["--table", "ticks.csv"], '--table — must be NAME=FILE; got "ticks.csv". Write for example '),
        (
            ["--table", "ticks=q.sql"],
            'q.sql — must be a file that ends in .csv, .json, .jsonl, .parquet; got "q.sql"',
        ),
        (["--table", "ticks=bad.parquet"], "bad.parquet — must be parquet; got "),
        (
            ["--table", "ticks=ticks.csv", "-o", "x.txt"],
            "--out — must end in .csv, .json, .jsonl or .parquet; got ",
        ),
    ],
)
def test_it_says_what_is_wrong(arguments: list[str], message: str, tmp_path: Path) -> None:
    write(tmp_path, "ticks.csv")
    (tmp_path / "bad.parquet").write_text("no", encoding="ascii")
    answer = spark_pace("match", "q.sql", "--dialect", "trino", *arguments, cwd=tmp_path)
    assert answer.stderr.startswith(message)
    assert answer.returncode in (1, 2)
    assert answer.stdout == ""
