"""What is fuzzed: each target takes bytes, checks what the product promises, and names the outcome.

That word (the kinds of problems, not their places) tells new behaviour from known: inputs with a new word
become material for further ones. Anything but success or an error of the product's own kind is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, evaluate
from spark_pace.core.expr.time_functions import out_of_range
from spark_pace.core.intake.pack import key_texts
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm, Rule
from spark_pace.core.plan.structs import json_rows
from spark_pace.errors import ConfigError, Problem, counted
from spark_pace.io.bad_records import WHOLE_FILE
from spark_pace.io.event_files import EventsRead, read_events
from spark_pace.io.records import read_records
from spark_pace.job_file import check_files
from spark_pace.rules import explain
from spark_pace.rules.document import Place, Report, Scalar, TooManyError
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import event_scope
from spark_pace.rules.row_patterns.queries import file_query
from spark_pace.rules.row_patterns.words import DIALECTS, read_query
from spark_pace.rules.rule_file import read_rules
from spark_pace.spark.detect import to_spark_filter
from tests.support import expression_cases
from tests.support.expression_texts import texts
from tests.support.row_pattern_cases import trial_of

ROOT = Path(__file__).parents[3]
CORPUS = Path(__file__).parent / "corpus"
MOST_MESSAGE = 2_000  # characters
MOST_LINES_COMPARED = 6
_QUOTED = re.compile(r'"[^"]*"|[0-9]+')
_TABLE = expression_cases.table(7, seed=1)
_SCOPE = event_scope(expression_cases.SCHEMA)
_EVENTS = EventSchema(
    (
        Field("t", "TIMESTAMP"),
        Field("n", "BIGINT"),
        Field("x", "DOUBLE"),
        Field("s", "STRING"),
        Field("b", "BOOLEAN"),
        Field("d", "DATE"),
    ),
    "t",
)
_ROWS = trial_of(Random(3)).table
_ONE_COLUMN = EventSchema((Field("t", "BIGINT"),), "t", time_unit="s")
_LINES = replace(
    _EVENTS,
    form=RecordForm(
        regex=r"(?P<t>[^=]*?)(?: (?:-|(?P<n>\d+)))?(?: x=(?P<x>\S*))?(?: (?P<b>true|false))?(?: (?P<s>.*))?",
        time_formats=("%Y-%m-%dT%H:%M:%S", "%b %d %H:%M:%S", "%d.%m.%Y %H:%M"),
        zone="Europe/Berlin",
    ),
)


@dataclass(frozen=True)
class Target:
    """A reader under test; `share` of all inputs go to it."""

    name: str
    share: float
    run: Callable[[bytes, Path], str]  # the input, and a folder to write it to
    seeds: Callable[[], list[bytes]]  # besides the corpus
    words: tuple[bytes, ...]
    most_bytes: int = 16_384

    def corpus(self) -> list[bytes]:
        """The inputs kept in the repository, findings among them."""
        return [path.read_bytes() for path in sorted((CORPUS / self.name).glob("*"))]


def read_rule_file(text: bytes, folder: Path) -> str:
    """A rule file; if it is right, its plan and explanation too."""
    path = folder / "rules.yaml"
    path.write_bytes(text)
    report = Report()
    rules: tuple[Rule, ...] = ()
    with suppress(TooManyError):
        rules, _ = read_rules([path], None, report)
    if report.clean:
        build_plan(rules, order=OrderSpec(), slots=2, buckets=2)
        return f"{counted(len(rules), 'rule')}, {counted(sum(len(explain(rule)) for rule in rules), 'line')}"
    return _kinds(report.problems)


def read_job_file(text: bytes, folder: Path) -> str:
    """A job file next to a right rule file."""
    path = folder / "job.yaml"
    path.write_bytes(text)
    if not (folder / "rules.yaml").exists():
        (folder / "rules.yaml").write_text(_RULES)
    return _kinds(check_files([path]))


def evaluate_expression(text: bytes, folder: Path) -> str:
    """An expression: compiled, computed on seven awkward rows, written as SQL."""
    written = text.decode("utf-8", "replace")
    report = Report()
    expr = None
    with suppress(TooManyError):
        expr = compile_value(Scalar(Place("test", 1, 1), written, written, 1), _SCOPE, report)
    if expr is None:
        assert not report.clean
        return _kinds(report.problems)
    assert report.clean
    assert expr.type != "NULL"
    values = evaluate(expr, expression_cases.TableColumns(_TABLE))
    assert (len(values), values.type) == (_TABLE.num_rows, ARROW_TYPES[expr.type])
    values.validate(full=True)
    to_spark_filter(expr)
    parts = sorted(
        {getattr(part, "function", type(part).__name__) for part in getattr(expr, "arguments", ())}
    )
    return f"{expr.type} {getattr(expr, 'function', '')} of {parts[:4]}"


def read_json_records(text: bytes, folder: Path) -> str:
    """Lines of JSON, as the job reads them."""
    return _read_records(text, folder, "json", _EVENTS)


def read_csv_records(text: bytes, folder: Path) -> str:
    """Read lines of CSV under their header, as the job does.

    There is one column where the header begins with t and has no comma.
    """
    schema = _EVENTS if b"," in text.partition(b"\n")[0] else _ONE_COLUMN
    return _read_records(text, folder, "csv", schema)


def read_text_records(text: bytes, folder: Path) -> str:
    """Lines of text, as the job reads them."""
    return _read_records(text, folder, "text", _LINES)


def _read_records(text: bytes, folder: Path, format: str, schema: EventSchema) -> str:
    """Every record is an event or a bad record, in its place, whatever stands around it."""
    together = _read(text, folder, format, schema)
    if format == "csv" and pc.any(pc.starts_with(together.bad["reason"], WHOLE_FILE)).as_py():
        assert (together.events.num_rows, together.read_rows) == (0, 1)
        return f"no events, {_reasons(together)}"
    lines = text.split(b"\n")
    header = lines[0] + b"\n" if format == "csv" else b""
    records = lines[1:] if header else lines
    filled = [
        row
        for row, line in enumerate(records)
        if line.removeprefix(b"\xef\xbb\xbf" * (not header and row == 0)).strip()
    ]
    offsets = together.events["@offset"].to_pylist() + together.bad["offset"].to_pylist()
    assert sorted(offsets) == filled
    assert together.read_rows == len(offsets)
    for row in filled[:MOST_LINES_COMPARED] if len(filled) > 1 else ():
        if row and not header and records[row].startswith(b"\xef\xbb\xbf"):
            continue  # at the beginning of a file it is the file's mark, elsewhere it is the record's
        alone = _read(header + records[row], folder, format, schema)
        _same(alone.events, together.events.filter(pc.equal(together.events["@offset"], row)))
        assert alone.bad.num_rows == pc.sum(pc.equal(together.bad["offset"], row), min_count=0).as_py(), row
    return f"{counted(min(together.events.num_rows, 3), 'event')}, {_reasons(together)}"


def read_log_records(text: bytes, folder: Path) -> str:
    """Values of a log's records, between bytes 0x1e; CSV where the first is empty."""
    values = text.split(b"\x1e")
    format = "csv" if not values[0] else "json"
    read = _read_values(values, format)
    assert sorted(read.events["@offset"].to_pylist() + read.bad["offset"].to_pylist()) == list(
        range(len(values))
    )
    assert read.read_rows == len(values)
    for row, value in enumerate(values[:MOST_LINES_COMPARED] if len(values) > 1 else ()):
        _same(_read_values([value], format).events, read.events.filter(pc.equal(read.events["@offset"], row)))
    return f"{format} {counted(min(read.events.num_rows, 3), 'event')}, {_reasons(read)}"


def _read_values(values: list[bytes], format: str) -> EventsRead:
    sources = pa.array(["topic/0"] * len(values)).dictionary_encode()
    return _checked(
        read_records(
            pa.table(
                {
                    "@value": pa.array(values, pa.binary()),
                    "@source": sources,
                    "@offset": pa.array(range(len(values)), pa.int64()),
                }
            ),
            format,
            _EVENTS,
        )
    )


def _read(text: bytes, folder: Path, format: str, schema: EventSchema) -> EventsRead:
    path = folder / f"records.{format}"
    path.write_bytes(text)
    return _checked(read_events(str(path), format, schema, "records", most_bad=len(text)))


def _checked(read: EventsRead) -> EventsRead:
    read.events.validate(full=True)
    read.bad.validate(full=True)
    for reason in read.bad["reason"].to_pylist():
        assert reason and len(reason) <= MOST_MESSAGE and reason.isprintable(), reason
    for row in json_rows(read.events):  # as late events are shown
        json.loads(row)
    for name in (name for name in read.events.column_names if name[0] != "@"):  # as keys are
        for key in key_texts([name], [read.events[name].combine_chunks()]).dictionary.to_pylist():
            json.loads(key)
    for time in ("t", "d"):
        if time in read.events.column_names:
            assert out_of_range(read.events[time]) is None
    return read


def _same(alone: pa.Table, together: pa.Table) -> None:
    """One line's event, but for its place; NaN is like NaN."""
    drop = ["@offset", "@source"]
    assert repr(alone.drop_columns(drop).to_pylist()) == repr(together.drop_columns(drop).to_pylist())


def _kinds(problems: Iterable[Problem]) -> str:
    """The kinds of problems, each of which must be one line that reads alone."""
    kinds = set()
    for problem in problems:
        for part in (problem.where, problem.must, problem.got, problem.do):
            assert part and part.isprintable(), repr(problem)
        assert len(str(problem)) <= MOST_MESSAGE, repr(problem)
        kinds.add(_kind(problem.must))
    return " | ".join(sorted(kinds))


def _reasons(read: EventsRead) -> list[str]:
    """Their first words: what follows names columns of the input."""
    return sorted({" ".join(reason.split()[:5]) for reason in read.bad["reason"].to_pylist()})


def _kind(text: str) -> str:
    return _QUOTED.sub("#", text)[:120]


_RULES = """events: {schema: "time TIMESTAMP, kind STRING, n BIGINT, x DOUBLE", event_time: time}
rules:
  - {name: r, pattern: {sequence: [a: kind = 'a', b: kind = 'b']}, within: 10 min, emit: {n: b.n}}
"""


def answer_match_query(text: bytes, folder: Path) -> str:
    """A query with MATCH_RECOGNIZE, in one dialect or another."""
    dialect = list(DIALECTS)[len(text) % len(DIALECTS)]
    try:
        query = file_query(read_query(text.decode("utf-8", "replace"), "query.sql", dialect))
        answer = query.answer(_ROWS, 1_000)
    except ConfigError as error:
        return _kinds(error.problems)
    answer.validate(full=True)
    return f"{counted(answer.num_rows, 'row')}, {counted(answer.num_columns, 'column')}"


def _words(*names: str) -> tuple[bytes, ...]:
    """Words of a language: one a line, spaces counted, with Python's escapes."""
    lines = [
        line
        for name in names
        for line in (Path(__file__).parent / "words" / f"{name}.txt").read_bytes().splitlines()
    ]
    return tuple(line.decode("unicode_escape").encode("latin-1") for line in lines)


def _query_seeds() -> list[bytes]:
    paths = sorted((ROOT / "tests" / "golden" / "bad_queries").glob("*.sql"))
    trials = [trial_of(Random(seed)).sql.encode() for seed in range(60)]
    return [*trials, *(path.read_bytes() for path in paths)]


def _rule_seeds() -> list[bytes]:
    shown = [
        path.read_bytes()
        for path in sorted((ROOT / "tests/golden/bad").glob("*/*.yaml"), key=lambda path: path.name)
        if path.parent.name != "job"
    ]
    return [_RULES.encode(), (ROOT / "conf/rules/flights.yaml").read_bytes(), *shown]


def _job_seeds() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "tests/golden/bad/job").glob("*.yaml"))]


def _expression_seeds() -> list[bytes]:
    return [text.encode() for text in texts()]


TARGETS = (
    Target("rules", 0.09, read_rule_file, _rule_seeds, _words("yaml", "rules")),
    Target("jobs", 0.04, read_job_file, _job_seeds, _words("yaml", "jobs")),
    Target("queries", 0.06, answer_match_query, _query_seeds, _words("queries", "expressions")),
    Target("expressions", 0.63, evaluate_expression, _expression_seeds, _words("expressions")),
    Target("json", 0.06, read_json_records, list, _words("json"), most_bytes=600),
    Target("csv", 0.06, read_csv_records, list, _words("csv"), most_bytes=600),
    Target("text", 0.03, read_text_records, list, _words("text"), most_bytes=600),
    Target("log", 0.03, read_log_records, list, (*_words("json", "csv"), b"\x1e"), most_bytes=600),
)
