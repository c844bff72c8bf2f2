"""Queries with MATCH_RECOGNIZE: the core, `spark_pace.sql` with one task slot and with two, and Flink SQL.

Every engine runs the same text, or the same query in its own words where it lacks some, over the same rows,
with ``PARTITION BY`` and without it. Timed are: in the core, processor seconds from a sorted table to the
result; on Spark, from Parquet files to a sink that throws the rows away, in a warm session with a core for
each slot; in Flink, from rows in memory to such a sink, behind a round to warm up. What each finds, the first
and the last row of every match, is compared with what the core finds before a figure is given.

The questions are those of others: letters and prices as in Flink's documents, a condition on an average from
there too, sessions, and the gap pattern of Zhu, Huang and Chaudhuri (PVLDB 2023), over more and more rows.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.compared import build
from benchmarks.jobs import DATA
from benchmarks.patterns import digest_of
from benchmarks.peer_runs import Found, timed
from benchmarks.processes import alone as alone_in
from benchmarks.rows import Row, Sizes, processor, require, wall
from spark_pace import sql
from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import sorted_table
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import file_query
from spark_pace.rules.row_patterns.words import read_query
from spark_pace.spark.session import build_session

KEYS, FILES, MOST_STEPS = 1_000, 8, 1_000_000
GAP_ROWS = (2_000, 20_000, 200_000, 2_000_000)
WHOLE, KEYED = "one partition", f"{KEYS:,} partitions"
PARTITIONS = {WHOLE: "", KEYED: "PARTITION BY id "}
QUERY = """
SELECT first_row, last_row FROM ticks MATCH_RECOGNIZE (
  {partition}ORDER BY rowtime
  MEASURES {first}.`position` AS first_row, LAST({last}.`position`) AS last_row
  ONE ROW PER MATCH
  AFTER MATCH SKIP {skip}
  PATTERN ({pattern}) {within}
  DEFINE {define}
)"""
GAPS = "LAST({0}.`value`, 1) IS NULL AND {0}.`value` {1} {2}.`value` OR {0}.`value` {1} LAST({0}.`value`, 1)"
# for both engines, in the words of Flink's SQL
QUERIES = {
    "letters": {
        "first": "A", "last": "D", "pattern": "A B+ C+ D",
        "define": "A AS A.etype = 'A', B AS B.etype < 'F', C AS C.etype >= 'F', D AS D.etype < 'F'",
    },
    "average": {
        "first": "A", "last": "B", "pattern": "A+ B",
        "define": "A AS A.`value` < 60 AND AVG(A.`value`) < 40, B AS B.`value` >= 60",
    },
    "gap": {
        "first": "R", "last": "M", "pattern": "R Z*? B Y*? M", "within": "WITHIN INTERVAL '1' SECOND",
        "define": "R AS R.etype = 'A' AND R.`value` < 5, B AS B.etype = 'B' AND B.`value` < 5, "
        "M AS M.etype = 'C' AND M.`value` < 5",
    },
}  # fmt: skip
# PREV is not in Flink, which has LAST(x, 1) of the variable itself
V_SHAPE = {"first": "S", "last": "E", "pattern": "S D+ U+ E"}
SESSION = {"first": "A", "last": "C", "pattern": "A B* C", "skip": "TO LAST C"}
WITH_PREV = {
    "V shape": V_SHAPE | {
        "define": "D AS `value` < PREV(`value`), U AS `value` > PREV(`value`), "
        "E AS `value` <= PREV(`value`)",
    },
    "session": SESSION | {"define": "B AS ts - PREV(ts) <= 5, C AS ts - PREV(ts) > 5"},
}  # fmt: skip
WITHOUT_PREV = {
    "V shape": V_SHAPE | {
        "define": f"D AS {GAPS.format('D', '<', 'S')}, "
        "U AS U.`value` > COALESCE(LAST(U.`value`, 1), LAST(D.`value`)), E AS E.`value` <= LAST(U.`value`)",
    },
    "session": SESSION | {
        "define": "B AS B.ts - COALESCE(LAST(B.ts, 1), A.ts) <= 5, C AS C.ts - COALESCE(LAST(B.ts), A.ts) > 5"
    },
}  # fmt: skip
OURS, FLINKS = QUERIES | WITH_PREV, QUERIES | WITHOUT_PREV
# a second of one key is too short for the gap
CASES = [(query, parts) for query in OURS for parts in PARTITIONS if (query, parts) != ("gap", KEYED)]
OF_THE_MATCH = ("average",)  # whose conditions read the match so far
CHECKED = "the core's matches"

Spans = dict[tuple[str, str], float]  # seconds, by query and partitions


def text_of(query: dict[str, str], partitions: str) -> str:
    """The text of a query."""
    parts = {"skip": "PAST LAST ROW", "within": ""} | query
    return QUERY.format(partition=PARTITIONS[partitions], **parts)


def ticks(rows: int) -> pa.Table:
    """Rows in the order of their times, no two of which are the same."""
    random = np.random.default_rng(7)
    ts = np.cumsum(random.choice([1, 2, 3, 9], rows))
    letters = pa.array(random.integers(0, 10, rows).astype(np.int8))
    return pa.table(
        {
            "ts": ts,
            "id": random.integers(0, KEYS, rows),
            "etype": pa.DictionaryArray.from_arrays(letters, list("ABCDEFGHIJ")).cast(pa.string()),
            "value": random.integers(0, 400, rows) / 4,
            "position": np.arange(rows),
            "rowtime": pa.array(ts * 1000).cast(pa.timestamp("us", "UTC")),
        }
    )


def measure(sizes: Sizes) -> Iterator[Row]:
    """The rows of all engines, then the ratios between them."""
    expected, core = _core(ticks(sizes.events), sizes.rounds)
    one, two = (_on_spark(sizes, slots, expected) for slots in (1, 2))
    flink = _flink(sizes, expected) if sizes.peer_rounds else {}
    engines = {"core": core, "Spark, 1 slot": one, "Spark, 2 slots": two, "Flink SQL": flink}
    for engine, spans in engines.items():
        for (query, partitions), seconds in spans.items():
            fast = engine == "core" and partitions == WHOLE and query not in OF_THE_MATCH
            target = ">= 5e6" if fast else None
            name = f"{engine}, {partitions}; {query}"
            yield Row("row_patterns", name, sizes.events / seconds, "rows/s", None, target, CHECKED)
    for case in CASES:
        yield _times("2 slots over 1", case, one[case] / two[case], ">= 1.5" if case[1] == WHOLE else None)
        if case in flink:
            yield _times("Spark, 2 slots, over Flink SQL", case, flink[case] / two[case])
    for rows in GAP_ROWS:
        if rows <= sizes.events:
            seconds = answer(OURS["gap"], WHOLE, ticks(rows))[1]
            target = "<= 1" if rows == 20_000 else None
            yield Row("row_patterns", f"core, {WHOLE}; gap in {rows:,} rows", seconds, "s", None, target)


def _times(what: str, case: tuple[str, str], ratio: float, target: str | None = None) -> Row:
    query, partitions = case
    return Row("row_patterns", f"{what}, {partitions}; {query}", ratio, "times", None, target, CHECKED)


def answer(query: dict[str, str], partitions: str, table: pa.Table) -> tuple[pa.Table, float]:
    """What the core gives, and the processor seconds from the sorted table to it."""
    asked = file_query(read_query(text_of(query, partitions), "query", "flink"))
    plan = plan_of(asked.query, asked.one.clause, table.schema, MOST_STEPS)
    arranged, found = sorted_table(table, plan.partition, plan.order), list[pa.Table]()
    seconds = processor(lambda: found.append(result_of(plan, arranged)))
    return found[0], seconds


def _found(table: pa.Table) -> Found:
    """How many matches there are, and a digest of them."""
    positions = np.column_stack([table[name].to_numpy() for name in ("first_row", "last_row")])
    return table.num_rows, digest_of(positions)


def _core(table: pa.Table, rounds: int) -> tuple[dict[tuple[str, str], Found], Spans]:
    """What the core finds for each query, and how long it takes."""
    expected, seconds = dict[tuple[str, str], Found](), Spans()
    for case in CASES:
        answers = [answer(OURS[case[0]], case[1], table) for _ in range(rounds + 1)]  # the first to warm up
        expected[case] = _found(answers[0][0])
        require(expected[case][0] > 0, f"{case} — must have matches")
        seconds[case] = statistics.median(taken for _, taken in answers[1:])
    return expected, seconds


def _on_spark(sizes: Sizes, slots: int, expected: dict[tuple[str, str], Found]) -> Spans:
    """Seconds on Spark with so many slots, in a process of its own, for a session's master cannot change."""
    seconds = Spans()
    for query, partitions, count, digest, taken in alone_in(
        "row_patterns", slots, sizes.events, sizes.rounds
    ):
        wanted = expected[query, partitions]
        require(
            (count, digest) == wanted, f"Spark, {query}, {partitions}: {count} where the core finds {wanted}"
        )
        seconds[query, partitions] = taken
    return seconds


def alone(slots: int, events: int, rounds: int) -> list[tuple[str, str, int, str, float]]:
    """Of each query and kind of partitions: how many matches, their digest, and the seconds they took."""
    folder = DATA / f"ticks-{events}"
    if not (folder / "_done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        table = ticks(events)
        for number in range(FILES):
            first, last = (events * part // FILES for part in (number, number + 1))
            pq.write_table(table.slice(first, last - first), folder / f"{number}.parquet")
        (folder / "_done").touch()
    if hasattr(
        os, "sched_setaffinity"
    ):  # Linux; one slot alone keeps more than a core busy, the JVM and Python
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:slots])
    settings = {"spark.master": f"local[{slots}]", "spark.sql.adaptive.enabled": "true"}  # as Spark's own
    spark = build_session("bench", settings)
    rows = []
    try:
        spark.read.parquet(str(folder)).createOrReplaceTempView("ticks")
        for query, partitions in CASES:
            found = sql(spark, text_of(OURS[query], partitions), dialect="flink")
            count, digest = _found(found.toArrow())  # which warms up
            throw_away = partial(found.write.format("noop").mode("overwrite").save)
            taken = statistics.median(wall(throw_away) for _ in range(rounds))
            rows.append((query, partitions, count, digest, taken))
    finally:
        spark.stop()
    return rows


def _flink(sizes: Sizes, expected: dict[tuple[str, str], Found]) -> Spans:
    """Seconds in Flink SQL, with one task."""
    classpath = build()
    names = {f"q{number}": case for number, case in enumerate(expected)}
    with tempfile.TemporaryDirectory() as folder:
        for name, (query, partitions) in names.items():
            text = text_of(FLINKS[query], partitions)
            (Path(folder) / f"{name}.sql").write_text(text, encoding="utf-8")
        file = Path(folder) / "ticks.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            for row in ticks(sizes.events).select(["ts", "id", "etype", "value"]).to_pylist():
                lines.write(json.dumps(row) + "\n")
        given = [str(file), str(sizes.events), str(sizes.peer_rounds + 1), *names]
        java = [f"-Dpatterns={folder}", "-cp", classpath, "peers.measured.FlinkSqlRun", *given]
        wanted = {name: expected[case] for name, case in names.items()}
        told = timed("Flink SQL", java, sizes.peer_rounds, wanted)
        return {names[name]: seconds for name, seconds in told}
