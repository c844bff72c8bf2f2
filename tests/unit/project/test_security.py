"""What authors of rules and senders of events may not reach: Python, files, too much memory, the terminal."""

import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from spark_pace.cli.show import show
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.core.python_functions import load_operator
from spark_pace.errors import ConfigError, OperatorError, RuleError, one_line
from spark_pace.io.delta_tables import view_sql
from spark_pace.io.event_files import read_events, read_source_file
from spark_pace.io.files import files
from spark_pace.io.replay import read_all, replay_table
from spark_pace.io.text.lines import MOST_RECORD_BYTES
from spark_pace.io.text.parsers import CsvParser
from spark_pace.job_file import check_files, read_job
from spark_pace.rules import load_rules
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import event_scope
from tests.support.expression_cases import SCHEMA

EVENTS = EventSchema((Field("t", "TIMESTAMP"), Field("s", "STRING")), "t")
HEAD = 'events: {schema: "t TIMESTAMP, s STRING", event_time: t}\nrules:\n'
AT_ONCE_SECONDS = 120  # it takes one at most; without its limit, hours
RULE = "  - {name: r, pattern: {sequence: [a: s = 'x']}, emit: {s: a.s}}\n"


SWAPS_OF_FOLDERS = """
import os, sys
folder = sys.argv[1]
while True:
    os.rename(f"{folder}/in/sub", f"{folder}/away")
    os.symlink(f"{folder}/outside", f"{folder}/in/sub")
    os.unlink(f"{folder}/in/sub")
    os.rename(f"{folder}/away", f"{folder}/in/sub")
"""
SWAPS = """
import os, sys
folder = sys.argv[1]
while True:
    with open(f"{folder}/new", "w") as file:
        file.write('{"t":"2024-05-01","s":"inside"}\\n')
    os.rename(f"{folder}/new", f"{folder}/in/x.json")
    os.symlink(f"{folder}/secret", f"{folder}/new")
    os.rename(f"{folder}/new", f"{folder}/in/x.json")
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(RuleError) as caught:
        load_rules(path)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def messages(expression: str) -> list[str]:
    report = Report()
    compile_value(Scalar(Place("e"), expression, expression, None), event_scope(SCHEMA), report)
    return [str(problem) for problem in report.problems]


def test_a_message_is_one_line_that_no_terminal_acts_on() -> None:
    assert one_line("a\x1b[2J\n\u202eb\udc80é日") == "a\\x1b[2J\\n\\u202eb\\udc80é日"
    assert one_line("x" * 30, most=5) == "xxxxx…"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a: "\\UFFFFFFFF"',
         "r.yaml — must be valid YAML; got an escape or a number out of range. Write the character itself."),
        ('"\\ud800": 1', "r.yaml:1:1 — must be printable text; got the character #xd800. Remove it."),
        (HEAD + '  - {name: "r\\0"}',
         "r.yaml:3:12 rules[0].name — must be printable text; got the character #x0000. Remove it."),
        ("? " + "k" * 300 + "\n: 1",
         f'r.yaml:1:3 — must be a plain key of at most 200 characters; got "{"k" * 80}…". '
         "Write a name before the colon."),
        ("rules: [" + "a," * 60_000 + "]",
         "rules[49997] — must be among the first 50000 values of a file; got more. "
         "Split it into several files."),
        (HEAD + RULE * 1001,
         "r.yaml:3:3 rules — must hold at most 1000 rules; got 1001. Run them as several jobs."),
        ("a: !!python/object/apply:os.system [id]",
         "got the tag tag:yaml.org,2002:python/object/apply:os.system. "
         "Aliases, anchors and tags are not read here."),
        ("a: &a [x]\nb: [*a, *a]",
         "r.yaml:2:5 b[0] — must be written out; got the alias *a. "
         "Aliases, anchors and tags are not read here."),
        (HEAD + RULE.replace("{s: a.s}", "{" + ", ".join(f"f{i}: a.s" for i in range(101)) + "}"),
         "fields; got 101. Compute less, or write several rules."),
        (HEAD + "  - {name: r, partition_by: [" + "s, " * 17 + "], pattern: {sequence: [a: s = 'x']}}",
         "must name at most 16 attributes; got 17. Name fewer."),
        (HEAD.replace("s STRING", ", ".join(f"c{i} STRING" for i in range(1000))) + RULE,
         "1000 attributes; got more. Declare those that rules use."),
    ],
)  # fmt: skip
def test_a_rule_file_beyond_a_limit_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert any(found.endswith(message) for found in problems(tmp_path, text)), problems(tmp_path, text)


MISSPELT = ", ".join(f"attrbute_{i}x" for i in range(16))
WIDE = HEAD.replace("s STRING", "s STRING, " + ", ".join(f"attribute_{i} BIGINT" for i in range(190)))


@pytest.mark.timeout(AT_ONCE_SECONDS)
@pytest.mark.parametrize(
    "text",
    [
        "rules: [&a 1" + ", *a" * 100_000 + "]",
        "rules: [" + "&a 1, " * 40_000 + "1]",
        HEAD + "  - name: r\n" + "".join(f"    patern{i}: 1\n" for i in range(8_000)),
        WIDE
        + "".join(
            f"  - {{name: r{i}, partition_by: [{MISSPELT}], pattern: {{sequence: [a: s = 'x']}}}}\n"
            for i in range(500)
        ),
        HEAD
        + "".join(
            f"  - {{name: r{i}, pattern: {{sequence: [a: '{'nosuch = 1 and ' * 600}true']}}}}\n"
            for i in range(50)
        ),
        "name: job\nevents: {expected_sources: [" + "{}, " * 40_000 + "1]}",
    ],
    ids=["aliases", "anchors", "unknown_keys", "misspelt_attributes", "wrong_expressions", "job"],
)
def test_a_check_ends_after_fifty_problems(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    found = check_files([path])
    assert len(found) == 51
    assert (
        str(found[-1])
        == f"{path} — must have at most 50 problems to be checked to its end; got more. Correct these first."
    )
    with pytest.raises(ConfigError if "job" in text else RuleError) as caught:
        read_job(path) if "job" in text else load_rules(path)
    assert caught.value.problems == tuple(found)


def test_that_there_are_more_problems_is_said_last(tmp_path: Path) -> None:
    """The fifty-first may come after those of another file: here the job's, after those of its rule file."""
    job, rules = tmp_path / "job.yaml", tmp_path / "r.yaml"
    rules.write_text(HEAD + RULE + "  - [x]\n" * 48)
    job.write_text(
        "name: j\nnosuch: 1\nrules: [r.yaml]\nsink: {kind: delta, path: o}\ncheckpoint: c\nalerts: x\n",
        encoding="utf-8",
    )
    found = [str(problem) for problem in check_files([job])]
    assert len(found) == 51
    assert all(f"{rules}:" in problem for problem in found[2:50])
    assert (
        found[50]
        == f"{job} — must have at most 50 problems to be checked to its end; got more. Correct these first."
    )


def test_fifty_problems_are_told_without_another_word(tmp_path: Path) -> None:
    assert len(problems(tmp_path, HEAD + RULE + "  - [x]\n" * 50)) == 50


@pytest.mark.timeout(AT_ONCE_SECONDS)
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "(" * 100_000,
            "e — must be at most 10000 characters long; got 100000 characters. Write a shorter expression.",
        ),
        ("(" * 9_999, "e — must nest at most 20 parentheses and 60 operators"),
        ("- " * 4_000 + "i", "e — must nest at most 20 parentheses and 60 operators"),
        ("not " * 2_400 + "p", "e — must nest at most 20 parentheses and 60 operators"),
        ("nullif(" * 19 + "i" + ", 1)" * 19, "e — must be at most 10000 operations"),
        (
            "concat(" + ", ".join(["concat(" + ", ".join("s" * 99) + ")"] * 2) + ")",
            "e — must be at most 100 texts put together",
        ),
        ("case " + "when p then i " * 101 + "end", "e — must be at most 100 branches of one case"),
        ("1e", 'e — must be a number; got "1e". Write for example 60, 60.5 or 6e1.'),
        ("cast(i as decimal(p))", "e — must be a type of events; got one with parameters"),
        (
            "s[0]",
            'e — must be an expression of the rule language; got "[". '
            "Write for example element_at(x, 1), for places count from 1, or x in ('a', 'b').",
        ),
        (
            "{fn abs(i)}",
            'e — must be an expression of the rule language; got "{". '
            "Only the language of docs/rules/expressions.md is read.",
        ),
        ("reflect('java.lang.System', 'exit')", 'e — must be a known function; got "reflect"'),
        ("java_method('java.lang.System', 'exit')", 'e — must be a known function; got "java_method"'),
        ("__import__('os').system('id')", "e — must be"),
        ("(select max(i) from t)", "e — must be an expression of the rule language"),
        ("s rlike '(?=a+)'", "e — must be a pattern that RE2 and Java read alike"),
        ("s rlike '((a{100}){100}){100}'", "e — must be a pattern that is not too large for RE2"),
        ("s rlike '" + "a" * 1001 + "'", "e — must be a pattern of at most 1000 characters"),
    ],
)
def test_an_expression_outside_the_language_or_its_limits_is_refused_at_once(
    expression: str, message: str
) -> None:
    found = messages(expression)
    assert len(found) == 1
    assert found[0].startswith(message)


def test_a_record_may_not_be_longer_than_16_mib(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.write(b'{"t":"2024-05-01"}\n')
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'\n\n{"t":"2024-05-02"}\n' + b"y" * (MOST_RECORD_BYTES + 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read = read_events(str(path), "json", EVENTS, "long")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 120
    assert read.events["@offset"].to_pylist() == [0, 3]
    assert read.read_rows == 4
    assert read.bad.select(["offset", "reason"]).to_pylist() == [
        {"offset": 1, "reason": "the record — must be at most 16 MiB; got 209715200 bytes, cut here"},
        {"offset": 4, "reason": "the record — must be at most 16 MiB; got 16777217 bytes, cut here"},
    ]
    assert [len(raw) for raw in read.bad["raw"].to_pylist()] == [65536, 65536]


def test_a_csv_header_without_end_refuses_its_records(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes(b"t" * (MOST_RECORD_BYTES + 1) + b"\n2024-05-01,a\n")
    read = read_events(str(path), "csv", EVENTS, "long")
    assert (read.read_rows, read.bad["offset"].to_pylist()) == (1, [0])


def test_a_link_out_of_the_source_is_a_bad_record(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password")
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_text('{"t":"2024-05-01"}\n')
    (source / "b.json").symlink_to("../secret")
    (source / "c.json").symlink_to("a.json")
    os.mkfifo(source / "d.json")
    read = read_all(source, EVENTS)
    assert read.events["@source"].to_pylist() == ["a.json", "c.json"]
    assert read.bad.select(["source", "reason"]).to_pylist() == [
        {"source": "b.json", "reason": "the file — must lie in the source's folder; got a link out of it"},
        {"source": "d.json", "reason": "the file — must be a regular file; got a device, a pipe or a socket"},
    ]
    assert b"password" not in b"".join(read.bad["raw"].to_pylist())


def test_a_link_that_comes_and_goes_is_read_or_refused_as_it_is_opened(tmp_path: Path) -> None:
    """Another process puts a link to a file outside in place of one inside, and that back again, for ever."""
    (tmp_path / "secret").write_text('{"t":"2024-05-01","s":"password"}\n')
    source = tmp_path / "in"
    source.mkdir()
    swaps = subprocess.Popen([sys.executable, "-c", SWAPS, str(tmp_path)])
    outcomes = Counter[str]()
    try:
        while swaps.poll() is None and min(outcomes["inside"], outcomes["refused"]) < 200:
            if (source / "x.json").exists():
                read = read_source_file(source, "x.json", "json", EVENTS)
                outcomes.update(read.events["s"].to_pylist())
                outcomes["refused"] += read.bad.num_rows
    finally:
        swaps.kill()
        swaps.wait()
    assert set(outcomes) == {"inside", "refused"}


def test_a_link_to_a_folder_that_comes_and_goes_is_not_followed(tmp_path: Path) -> None:
    for folder in ("in/sub", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "in" / "sub" / "inside").touch()
    (tmp_path / "outside" / "secret").touch()
    swaps = subprocess.Popen([sys.executable, "-c", SWAPS_OF_FOLDERS, str(tmp_path)])
    looks = Counter[str]()
    try:
        while swaps.poll() is None and (looks["nothing"] < 2_000 or not looks["sub/inside"]):
            looks.update(list(files.listing(tmp_path / "in").look("")) or ["nothing"])
    finally:
        swaps.kill()
        swaps.wait()
    # `sub` alone is a link that led nowhere when it was looked at: it is named, as each such link
    assert {"nothing", "sub/inside"} <= set(looks) <= {"nothing", "sub/inside", "sub"}


@pytest.mark.parametrize("name", ["a'b\"c\nd.json", "..json", "é`.json"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"t":"2024-05-01"}\n{}\n')
    read = read_source_file(tmp_path, name, "json", EVENTS)
    assert (read.events["@source"].to_pylist(), read.bad["source"].to_pylist()) == ([name], [name])


def test_a_file_whose_name_is_no_text_is_a_bad_record(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.json")
    (tmp_path / name).write_text('{"t":"2024-05-01"}\n')
    read = read_source_file(tmp_path, name, "json", EVENTS)
    assert read.bad.select(["source", "reason"]).to_pylist() == [
        {"source": "\\udcff.json", "reason": "the file — must have a name in UTF-8; got other bytes"}
    ]


@pytest.mark.parametrize("name", ["../r", "a/b", "a b", "r;drop", "`r`", "r'", "1r", "r" * 65])
def test_a_rule_has_a_name_that_is_safe_anywhere(tmp_path: Path, name: str) -> None:
    (problem,) = problems(
        tmp_path, HEAD + RULE.replace("name: r", f"name: {name!r}" if "'" not in name else f'name: "{name}"')
    )
    assert "must be a letter, then letters, digits and _ (64 at most)" in problem


def test_the_path_of_a_view_cannot_end_its_quotation(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(HEAD + RULE)
    (rule,) = load_rules(path)
    assert "FROM delta.`a``b/matches` WHERE rule = 'r'" in view_sql(rule, "a`b")


def test_what_a_module_imports_is_not_its_operator() -> None:
    for name, got in (
        ("tests.unit.project.test_security:resource", "module of none"),
        ("tests.unit.project.test_security:read_all", "function of spark_pace.io.replay"),
    ):
        with pytest.raises(
            OperatorError, match=f"must be a function that the package tests defines; got {got}"
        ):
            load_operator(name)


def test_what_events_hold_is_no_markup_and_no_order_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    path.write_text((HEAD + RULE).replace("s = 'x'", "s is not null"))
    rules = load_rules(path)
    events = pa.table({"t": pa.array([0, 1], pa.timestamp("us")), "s": ["[/bold] [red]", "\x1b[2J"]})
    show(replay_table(rules, events).matches, rules)
    shown = capsys.readouterr().out
    assert "s=[/bold] [red]" in shown
    assert "s=\\x1b[2J" in shown
    assert "\x1b" not in shown


def test_an_open_quotation_swallows_no_other_record(tmp_path: Path) -> None:
    path = tmp_path / "open.csv"
    path.write_text(
        't,s\n2024-05-01,"a\n2024-05-01,5" pipe\n2024-05-01,"b ""c"""\n2024-05-01,"d', encoding="utf-8"
    )
    read = read_events(str(path), "csv", EVENTS, "open")
    assert read.events.select(["@offset", "s"]).to_pylist() == [
        {"@offset": 1, "s": '5" pipe'},
        {"@offset": 2, "s": 'b "c"'},
    ]
    reason = "the record — must close its quotation marks in its line; got an open one"
    assert read.bad.select(["offset", "reason"]).to_pylist() == [
        {"offset": 0, "reason": reason},
        {"offset": 3, "reason": reason},
    ]


@pytest.mark.parametrize(
    "record", [b'"' + b"x" * MOST_RECORD_BYTES + b'"', b'""' * (MOST_RECORD_BYTES // 2) + b'"']
)
def test_a_long_quotation_needs_memory_for_its_record_only(record: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (opened,) = CsvParser(EVENTS, ["t", "s"]).refuses([record])
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 120
    assert opened != record.endswith(b'x"')
