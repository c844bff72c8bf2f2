"""Commands and Python's functions on events, and side tables, in an object store: as in a folder."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import spark_pace
from examples.cluster.store_server import NAME, SECRET
from spark_pace.cli.main import commands
from spark_pace.core.plan.rule import EventSchema, Field, SideTable
from spark_pace.errors import ConfigError, SetupError
from spark_pace.io.query import store_options, tables_in
from spark_pace.io.side_tables import read_side_table, stamp_of
from tests.support.both_places import Both, Pair
from tests.support.watched import BEGAN, pairs_of_events, watched_job

JOB = """
name: doors
source: {{kind: files, format: text, path: {path}}}
events:
  schema: "t TIMESTAMP, k STRING, x BIGINT"
  event_time: t
  delay: 1 min
  text: {{regex: '(?P<t>20\\S+) (?P<k>\\w) (?P<x>\\d+)', unmatched: ignore}}
  lookup: {{owners: {{path: {owners}, on: k, schema: "owner STRING"}}}}
rules: [rules.yaml]
sink: {{kind: delta, path: out}}
checkpoint: checkpoint
spark: {access}
"""
RULES = """
rules:
  - {name: rise, partition_by: [k], pattern: {sequence: [a: owners is not null, b: x > 1]}, where: b.x > a.x,
     within: 10 min, emit: {owner: a.owners.owner}}
"""
LINES = {
    "1.log": "2024-01-01T00:00:00Z a 1\nnoise\n2024-01-01T00:01:00Z b 1\n",
    "2/b.log.gz": "2024-01-01T00:02:00Z a 3\n2024-01-01T00:03:00Z b 2\n",
    "3.log": "2023-01-01T00:00:00Z a 9\n",
    "_SUCCESS": "no events",
}


def jobs(pair: Pair, folder: Path, access: dict[str, str]) -> tuple[Path, Path]:
    """The same job over the folder and over the other place, which its file alone names how to reach."""
    for name, text in LINES.items():
        pair.put(name, gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    owners = b"k,owner\na,ann\nb,bob\n"
    (folder / "owners.csv").write_bytes(owners)
    pair.put_at("side/owners.csv", owners)
    (folder / "rules.yaml").write_text(RULES)
    settings = {
        "local": JOB.format(path=pair.folder, owners="owners.csv", access="{}"),
        "far": JOB.format(
            path=f'"{pair.address}"',
            owners=f"{pair.base}/side/owners.csv",
            access=json.dumps({f"spark.hadoop.fs.s3a.{key}": value for key, value in access.items()}),
        ),
    }
    for name, text in settings.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / "local.yaml", folder / "far.yaml"


def said(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[str, str]:
    commands([*map(str, words)], standalone_mode=False)
    return capfd.readouterr()


def test_replay_why_and_check_say_of_a_store_what_they_say_of_a_folder(
    pair: Pair, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    access = {}
    if isinstance(pair, Both):
        access = {
            "endpoint": os.environ["AWS_ENDPOINT_URL"],
            "access.key": NAME,
            "secret.key": SECRET,
        }
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
    local, far = jobs(pair, tmp_path, access)
    assert said(capfd, "check", far) == ("1 file: no problems\n", "")
    replayed = said(capfd, "replay", far, f"{pair.address}/", "--list", 9)
    assert replayed == said(capfd, "replay", local, pair.folder, "--list", 9)
    assert "matches: rise 2; 4 selections" in replayed[1] and "late: 3.log:L1 " in replayed[1]
    for place in ("2/b.log.gz:L1", "1.log:L2", "3.log:L1"):
        asked = ["--rule", "rise", "--at", place]
        answer = said(capfd, "why", far, pair.address, *asked)
        assert answer == said(capfd, "why", local, pair.folder, *asked)
        assert ("noise" in answer[0] or "ignored" in answer[0]) == (place == "1.log:L2")
    one = spark_pace.replay(far, f"{pair.address}/2/b.log.gz")
    assert repr(one) == repr(spark_pace.replay(local, pair.folder / "2" / "b.log.gz"))
    asked_of = {"rule": "rise", "at": "1.log:0"}
    here, there = (
        spark_pace.why(*given, **asked_of) for given in ((local, pair.folder), (far, pair.address))
    )
    assert here == there
    rows = [{"t": "2024-01-01T00:00:00Z", "k": "a", "x": 1}, {"t": "2024-01-01T00:00:01Z", "k": "a", "x": 2}]
    found = [spark_pace.replay(job, rows).matches.table for job in (local, far)]
    assert found[0].equals(found[1]) and found[1]["owner"].to_pylist() == ["ann"]


def test_what_cannot_be_read_at_an_address_is_told_in_one_line(both: Both, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text('events: {schema: "t TIMESTAMP", event_time: t}\nrules: []\n'.replace("[]", RULE))
    both.put("notes.md", b"nothing")
    wrong = {
        f"{both.address}/gone": "must be a file or directory of events; got nothing there",
        f"{both.address}/notes.md": "must be a file that ends in .json, .*; got .md",
        "s3a://no-such-bucket/x": "must be a place in a store .*NoSuchBucket",
    }
    for address, words in wrong.items():
        with pytest.raises((ConfigError, SetupError), match=f"^{address} — {words}") as caught:
            spark_pace.replay(rules, address)
        assert "\n" not in str(caught.value)
    told = r'^the address — must be a path, or the address of a store \(s3, .*\); got "ftp://host/x"\.'
    with pytest.raises(ConfigError, match=told):
        spark_pace.replay(rules, "ftp://host/x")
    for words in (["check", "s3a://x/rules.yaml"], ["replay", "s3a://x/rules.yaml", str(tmp_path)]):
        with pytest.raises(
            ConfigError, match=r"^s3a://x/rules\.yaml — must be a path of this machine; got an"
        ):
            commands(words, standalone_mode=False)


RULE = "[{name: one, pattern: {sequence: [a: t is not null]}}]"
OWNER = (Field("owner", "STRING"),)


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "delta"])
def test_a_side_table_in_a_store_is_that_in_a_folder_and_is_seen_to_change(pair: Pair, kind: str) -> None:
    name, of_bucket = f"owners.{kind}", pair.base
    far = of_bucket if kind == "delta" else pair.address  # delta-rs takes no address of HDFS with a space
    sides = [SideTable("hosts", f"{at}/{name}", (("host", "host"),), OWNER) for at in (pair.folder, far)]
    schema = EventSchema((Field("t", "TIMESTAMP"), Field("host", "STRING"), *OWNER), "t")
    stamps = []
    for owner in ("ann", "barbara"):
        rows = pa.table({"host": ["a"], "owner": [owner], "more": [1]})
        if kind == "delta":
            for side in sides:
                place = tables_in(side.path)
                options = store_options(place)
                write_deltalake(str(place), rows, mode="overwrite", storage_options=options)
        elif kind == "parquet":
            pq.write_table(rows, pair.folder / "rows.parquet")
            pair.put(name, (pair.folder / "rows.parquet").read_bytes())
        else:
            pair.put(name, gzip.compress(f"host,owner\na,{owner}\n".encode()))
        here, there = (read_side_table(side, schema) for side in sides)
        assert here.equals(there) and there.to_pydict() == {"host": ["a"], "hosts.owner": [owner]}
        stamps.append(stamp_of(sides[1]))
        assert stamp_of(sides[1]) == stamps[-1]
    assert stamps[0] != stamps[1]
    gone = SideTable("hosts", f"{of_bucket}/gone.{kind}", (("host", "host"),), OWNER)
    for of_it in (lambda: read_side_table(gone, schema), lambda: stamp_of(gone)):
        with pytest.raises(
            SetupError, match=rf"lookup\.hosts: {gone.path} — must be a .*; got .*(nothing|No such)"
        ):
            of_it()


def test_what_looks_at_a_job_reads_its_tables_at_an_address_too(
    pair: Pair, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = f"{pair.base}/{'my data ü' if isinstance(pair, Both) else 'my-data'}"  # what tables may have
    watched = watched_job(tmp_path, 1, pairs_of_events(4), {"sink": {"kind": "delta", "path": out}})
    for _ in range(2):
        watched.batch({"rule_0": 1})
        watched.rows("late", {"event_time": BEGAN, "lateness_us": 5, "source": "in.json", "offset": 7})
        watched.rows("quarantine", {"kind": "record", "reason": "no JSON", "source": "in.json", "offset": 3})
    page = tmp_path / "page.html"
    for place in {out, out.replace("s3a://", "s3://"), tmp_path / "job.yaml"}:
        page.unlink(missing_ok=True)
        assert said(capfd, "report", place, "-o", page) == (f"{page}: written\n", "")
        told = json.loads(page.read_text().partition('type="application/json">')[2].partition("</script>")[0])
        assert [one["events"] for one in told["late"]["by_source"]] == [2]
        assert [one["rows"] for one in told["reasons"]] == [2]
        assert "rule_0" in said(capfd, "watch", place)[0]
        assert json.loads(said(capfd, "status", place, "--json")[0])["sums"]["matches"] == 2
        assert said(capfd, "sql", place, "SELECT reason FROM quarantine", "--format", "csv")[0]
    assert "with 2 slots" in said(capfd, "plan", tmp_path / "job.yaml", "--slots", 2)[0]
