"""Wrong arguments of the Python API are told in one line, not by an error of Python's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import spark_pace
from spark_pace.arguments import whole
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.errors import ConfigError

TEXT = """
events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
rules: [{name: rise, pattern: {sequence: [a: x < 5, b: x > 5]}, within: 1 min}]
"""
OTHER = TEXT.replace("x DOUBLE", "x DOUBLE, y DOUBLE").replace("rise", "fall")
EVENTS = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
EVENTS_ARE = "a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path of files"
GIVE = "Give what load_rules gave, a path, a text of several lines, a dict, or a list of one of these."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spark_pace.replay(5, EVENTS), f"rules — must be rules, or what says them; got int. {GIVE}"),
        (
            lambda: spark_pace.replay(None, EVENTS),
            f"rules — must be rules, or what says them; got NoneType. {GIVE}",
        ),
        (
            lambda: spark_pace.replay([], EVENTS),
            f"rules — must be one rule at least; got an empty list. {GIVE}",
        ),
        (
            lambda: spark_pace.replay([TEXT, 5], EVENTS),
            f"rules — must be rules, or what says them; got a list that holds int. {GIVE}",
        ),
        (
            lambda: spark_pace.replay([*spark_pace.load_rules(TEXT), TEXT], EVENTS),
            f"rules — must be rules, or what says them; got a list that holds Rule. {GIVE}",
        ),
        (
            lambda: spark_pace.replay(spark_pace.load_rules(TEXT) * 2, EVENTS),
            "rules — must have names of their own; got rise twice. Leave one out.",
        ),
        (
            lambda: spark_pace.replay([*spark_pace.load_rules(TEXT), *spark_pace.load_rules(OTHER)], EVENTS),
            "rules — must be over one schema of events; got 2 schemas. "
            "Load them together, by load_rules([...]).",
        ),
        (
            lambda: spark_pace.timeline(EVENTS),
            "matches — must be a table of matches; got list. "
            "Give the matches of a replay, or read_table(out, 'matches').",
        ),
        (
            lambda: spark_pace.timeline(spark_pace.replay(TEXT, EVENTS).matches, 5),
            "title — must be a text; got int. Leave it out to have the heading matches.",
        ),
        (lambda: spark_pace.load_rules(3), f"rules — must be rules, or what says them; got int. {GIVE}"),
        (lambda: spark_pace.load_rules([]), f"rules — must be one rule at least; got an empty list. {GIVE}"),
        (
            lambda: spark_pace.load_rules(TEXT, events=3),
            "events — must be an EventSchema; got int. Take the `schema` of a rule that was loaded.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule=3, at=0),
            "rule — must be the name of a rule; got int. Give its `name`.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule="fall", at=0),
            "rule — must name a rule of the file; got fall. Choose from rise.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule="rise", at=1.5),
            "at — must be a seq or source:offset; got float. Take it from the events of a match.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule="rise", at=True),
            "at — must be a seq or source:offset; got bool. Take it from the events of a match.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule="rise", at=np.True_),
            f"at — must be a seq or source:offset; got {type(np.True_).__name__}. "
            "Take it from the events of a match.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule="rise", at=0, key={}),
            "key — must be the text of a JSON object; got dict. Write it by json.dumps.",
        ),
        (
            lambda: spark_pace.why(TEXT, EVENTS, rule="rise", at=0, key="{}"),
            "key — must be left out: rule rise has one stream; got {}. Leave key out.",
        ),
        (
            lambda: spark_pace.read_table(3, "matches"),
            "out — must be a path; got int. Name the `path` of a job's sink.",
        ),
        (
            lambda: spark_pace.read_table("out", 3),
            "name — must be the name of a table; got int. "
            "Use one of: matches, late, quarantine, metrics, rule_changes.",
        ),
        (
            lambda: spark_pace.read_table("out", "matches", 3),
            "columns — must be a list of names; got int. Leave it out to have all.",
        ),
        (
            lambda: spark_pace.create_views(None, "out"),
            "spark — must be a SparkSession; got NoneType. "
            "Build one by SparkSession.builder, with Delta's extension and catalog.",
        ),
        (
            lambda: spark_pace.replay([None], EVENTS),
            f"rules — must be rules, or what says them; got a list that holds NoneType. {GIVE}",
        ),
        *(
            (call, f"{name} — must be a path; got {path!r}. Name a file or a folder.")
            for path in ("", "a\0b", "\ud800")
            for name, call in (
                ("rules", lambda path=path: spark_pace.load_rules(path)),
                ("rules", lambda path=path: spark_pace.check([path])),
                ("events", lambda path=path: spark_pace.replay(TEXT, path)),
                ("events", lambda path=path: spark_pace.why(TEXT, path, rule="rise", at=0)),
                ("out", lambda path=path: spark_pace.read_table(path, "matches")),
            )
        ),
        (
            lambda: spark_pace.replay(TEXT, pa.chunked_array([[1]])),
            f"events — must be {EVENTS_ARE}; got ChunkedArray. "
            "Name a file or folder by a path, or build a table.",
        ),
        (
            lambda: spark_pace.timeline(pa.table({"rule": ["r"], "out_seq": [0]})),
            "matches — must have the columns of matches; got a table without "
            f"{', '.join(name for name in FIXED_COLUMNS if name not in ('rule', 'out_seq'))}. "
            "Give the matches of a replay, or read_table(out, 'matches').",
        ),
        (
            lambda: spark_pace.detect([], TEXT),
            "df — must be a streaming DataFrame; got list. "
            "Read one by spark.readStream; for a table in memory there is replay.",
        ),
    ],
)
def test_wrong_arguments_end_in_our_words(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        call()
    assert str(caught.value) == message


class OfConnect:
    """A class of PySpark's that is known by its module; importing it needs packages that we do without."""

    __module__ = "pyspark.sql.connect.session"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("df", lambda: spark_pace.detect(OfConnect(), TEXT)),
        ("spark", lambda: spark_pace.sql(OfConnect(), "SELECT 1")),
        ("spark", lambda: spark_pace.create_views(OfConnect(), "out")),
    ],
)
def test_spark_connect_is_refused_in_our_words(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError) as caught:
        call()
    assert str(caught.value) == (
        f"{name} — must be of a session that runs in this program; got a OfConnect of Spark Connect. "
        "Build one by SparkSession.builder without remote, where SPARK_REMOTE is not set."
    )


def test_a_seq_may_be_an_integer_of_numpy_as_a_frame_of_matches_has_it() -> None:
    seq = spark_pace.replay(TEXT, EVENTS).to_pandas()["seq"][0]
    assert type(seq) is np.int64
    answers = [str(spark_pace.why(TEXT, EVENTS, rule="rise", at=at)) for at in (seq, int(seq), np.int32(seq))]
    assert answers[0].startswith("rule rise, table:1 at 2024-01-01T00:00:10Z")
    assert answers == answers[:1] * 3
    assert [whole("slots", value, 1, "") for value in (np.uint8(3), 3)] == [3, 3]
    with pytest.raises(ConfigError, match="slots — must be at least 1; got 0"):
        whole("slots", np.int64(0), 1, "")
    with pytest.raises(ConfigError, match="slots — must be at most 4611686018427387904; got more"):
        whole("slots", 10**30, 1, "")
