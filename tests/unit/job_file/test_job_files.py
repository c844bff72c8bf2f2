"""What a right job file becomes."""

import json
import re
from pathlib import Path

import pytest

from spark_pace.core.order import OrderSpec
from spark_pace.errors import ConfigError
from spark_pace.job_file import FilesSource, JobSpec, KafkaSource, Parallelism, check_files, read_job
from spark_pace.job_file.pace import Admission
from spark_pace.job_file.spec import event_settings
from spark_pace.rules.document import quote

RULES = """events: {schema: "time TIMESTAMP, kind STRING", event_time: time}
rules:
  - {name: r, pattern: {sequence: [a: kind = 'a']}}
"""
JOB = """name: job
source: {kind: files, format: json, path: ../events}
rules: [../rules/rules.yaml]
sink: {kind: delta, path: "s3://bucket/out"}
checkpoint: out/_checkpoint
"""
KAFKA = """name: job
source:
  kind: kafka
  servers: ${env:BROKERS}
  topics: [a, b.c]
  format: json
  starting_offsets: latest
  max_offsets_per_trigger: 1000
  columns: {kind: headers.kind}
  options: {kafka.security.protocol: SASL_SSL, kafka.ssl.truststore.password: "${env:TRUST}", \
minPartitions: 4}
rules: [../rules/rules.yaml]
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
"""
UNCUT = KAFKA.replace(", minPartitions: 4", "")
OPERATOR = """events: {schema: "time TIMESTAMP", event_time: time}
rules:
  - {name: r, span: {every: 1 s, size: 1 s}, operator: stats.sums:total}
"""


def read(tmp_path: Path, more: str = "", rules: str = RULES, job: str = JOB) -> JobSpec:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rules.yaml").write_text(rules)
    (tmp_path / "jobs" / "job.yaml").write_text(job + more)
    return read_job(tmp_path / "jobs" / "job.yaml")


def test_the_shortest_job_has_the_defaults(tmp_path: Path) -> None:
    spec = read(tmp_path)
    assert spec.trigger_us == "available_now"
    assert (spec.finish, spec.operators, spec.spark) == (False, (), {})
    assert spec.parallelism == Parallelism(None, None, "auto", None)
    assert (spec.events.order, spec.events.source_column) == (OrderSpec(before="files"), None)
    assert spec.events.heartbeat is None
    assert spec.events.on_bad_record == spec.events.on_operator_error == "quarantine"
    assert spec.events.operator_timeout_us == 600_000_000
    assert spec.events.schema == spec.rules[0].schema


def test_paths_are_relative_to_the_job_file_and_addresses_stay(tmp_path: Path) -> None:
    spec = read(tmp_path)
    assert spec.source == FilesSource("json", str(tmp_path / "events"), None)
    assert spec.sink_path == "s3://bucket/out"
    assert spec.checkpoint_path == str(tmp_path / "jobs" / "out" / "_checkpoint")


@pytest.mark.parametrize(("sink", "checkpoint", "key"), [
    ("../events", "out", "sink"), ("../events/out", "out", "sink"), ("out", "../events/a/b", "checkpoint"),
])  # fmt: skip
def test_a_job_does_not_write_where_it_reads(tmp_path: Path, sink: str, checkpoint: str, key: str) -> None:
    job = JOB.replace("s3://bucket/out", sink).replace("out/_checkpoint", checkpoint)
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, job=job)
    (problem,) = refused.value.problems
    assert problem.where.endswith(f" {key}") and problem.must == "must not lie in the folder of the source"


def test_a_job_may_write_beside_what_it_reads(tmp_path: Path) -> None:
    assert read(tmp_path, job=JOB.replace("s3://bucket/out", "../events_out")).sink_path.endswith(
        "events_out"
    )


NASTY = "a b #?&+:;=@$,!~'\"`{}()<>*äé日 100%, %zz"
SINK = 'path: "s3://bucket/out"'


def test_paths_may_have_any_characters_in_their_names(tmp_path: Path) -> None:
    job = (
        JOB.replace(SINK, f"path: {json.dumps(NASTY)}")
        .replace("../events", json.dumps(f"../%20[|]{NASTY}"))
        .replace("out/_check", "'%20[|]/_check'")
    )
    spec = read(tmp_path, job=job.replace("'%20[|]/_check'point", "'%20[|]/_checkpoint'"))
    assert spec.sink_path == str(tmp_path / "jobs" / NASTY)
    assert spec.files.path == str(tmp_path / f"%20[|]{NASTY}")
    assert spec.checkpoint_path == str(tmp_path / "jobs" / "%20[|]" / "_checkpoint")


@pytest.mark.parametrize(
    ("before", "part"),
    [
        *(("", part) for part in ("%20", "%2F", "%e4", "\\", "[", "]", "|", "^")),
        *(("s3a://bucket/", part) for part in ("#", "?", "%20", "[")),
        *((f"{scheme}://node/", part) for scheme in ("hdfs", "viewfs") for part in (" ", "ü", "#", "%", "{")),
    ],
)
def test_a_sink_whose_tables_could_not_be_written_or_read_again_is_refused(
    tmp_path: Path, before: str, part: str
) -> None:
    path = f"{before}a{part}b/out"
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, job=JOB.replace(SINK, f"path: {json.dumps(path)}"))
    got = f"got {quote(part)} in {quote(path if before else f'{tmp_path}/jobs/{path}')}. Choose another name."
    assert re.fullmatch(
        rf".*job\.yaml:4:27 sink\.path — must lead to a folder without .*; {re.escape(got)}",
        str(caught.value),
    )


@pytest.mark.parametrize("path", ["s3a://bucket/my data/ü+{x}", "hdfs://node:8020/a/B_c-d.e=1~(2)"])
def test_a_sink_at_an_address_may_have_the_characters_that_its_store_takes(tmp_path: Path, path: str) -> None:
    assert read(tmp_path, job=JOB.replace(SINK, f"path: {json.dumps(path)}")).sink_path == path


def test_every_key_is_read(tmp_path: Path) -> None:
    more = """events: {delay: 10 min, ordering: watermark, on_bad_record: fail, on_operator_error: fail}
trigger: 2 s
operators: [my_rules]
parallelism: {slots: 4, buckets: 8, lanes: 3, latency_bound: 2 s}
spark: {spark.sql.shuffle.partitions: 2, spark.ui.enabled: false}
"""
    spec = read(tmp_path, more)
    assert (spec.events.order, spec.events.on_bad_record, spec.events.on_operator_error) == (
        OrderSpec(600_000_000, before="files"),
        "fail",
        "fail",
    )
    assert spec.parallelism == Parallelism(4, 8, 3, 2_000_000)
    assert (spec.trigger_us, spec.operators) == (2_000_000, ("my_rules",))
    assert spec.spark == {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", Admission(5.0, 5, 0.25)),
        ("admission: off", "off"),
        ("admission: {batch_seconds: 1500 ms, warm_up: 0, max_deviation: 1}", Admission(1.5, 0, 1.0)),
        ("admission: {warm_up: 3}", Admission(5.0, 3, 0.25)),
    ],
)
def test_admission_is_on_unless_it_is_off(tmp_path: Path, written: str, expected: Admission | str) -> None:
    assert read(tmp_path, f"{written}\n").admission == expected


def test_kafka_is_read_and_secrets_stay_unresolved(tmp_path: Path) -> None:
    options = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.password": "${env:TRUST}",
        "minPartitions": "4",
        "kafka.isolation.level": "read_committed",
    }
    source = KafkaSource(
        "json", "${env:BROKERS}", ("a", "b.c"), "latest", 1000, (("kind", "headers.kind"),), options
    )
    assert read(tmp_path, job=KAFKA).source == source


def test_the_order_of_events_is_read(tmp_path: Path) -> None:
    more = """events: {delay: 1 s, ordering: sources, source_column: kind, \
expected_sources: [n, s], idle_after: 5 min, heartbeat: kind is null,
  deduplicate_on: [kind, time], operator_timeout: 30 s}
"""
    events = read(tmp_path, more).events
    order = OrderSpec(1_000_000, True, 300_000_000, ("n", "s"), ("kind", "time"), "files")
    assert events.order == order
    assert (events.source_column, events.operator_timeout_us) == ("kind", 30_000_000)
    assert events.heartbeat is not None and events.heartbeat.type == "BOOLEAN"


def test_a_checkpoint_knows_the_types_of_what_repeats_are_told_by(tmp_path: Path) -> None:
    """With another type, no event that waits could be told from the others."""
    spec = read(tmp_path, "events: {deduplicate_on: [kind, time]}\n")
    assert event_settings(spec)["deduplicate_on"] == "kind STRING, time TIMESTAMP"


def test_a_partition_of_kafka_is_a_source(tmp_path: Path) -> None:
    assert read(tmp_path, "events: {ordering: sources}\n", job=UNCUT).events.source_column is None


@pytest.mark.parametrize(
    ("job", "ordering", "before"),
    [
        (JOB, "watermark", "files"),
        (JOB, "sources, source_column: kind", "files"),
        (KAFKA, "watermark", "batches"),
        (UNCUT, "sources", "records"),
        (UNCUT, "sources, source_column: kind", "records"),
    ],
)
def test_source_and_ordering_say_what_decides_which_events_are_late(
    tmp_path: Path, job: str, ordering: str, before: str
) -> None:
    assert read(tmp_path, f"events: {{ordering: {ordering}}}\n", job=job).events.order.before == before


@pytest.mark.parametrize(("job", "before"), [(JOB, "files"), (KAFKA, "batches")])
def test_so_does_the_source_alone(tmp_path: Path, job: str, before: str) -> None:
    assert read(tmp_path, job=job).events.order.before == before


def test_the_job_may_declare_the_events(tmp_path: Path) -> None:
    events, rules = RULES.split("\n", 1)
    spec = read(tmp_path, f"{events}\n", rules=rules)
    assert spec.rules[0].schema.event_time == "time"


@pytest.mark.parametrize("module", ["stats", "stats.sums"])
def test_a_module_stands_for_what_is_inside_it(tmp_path: Path, module: str) -> None:
    assert read(tmp_path, f"operators: [{module}]\n", rules=OPERATOR).rules[0].operator == "stats.sums:total"


def test_a_module_does_not_stand_for_others_that_begin_alike(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must name the modules of all operators"):
        read(tmp_path, "operators: [stat]\n", rules=OPERATOR)


def test_problems_of_the_job_and_of_its_rules_come_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "triger: 2 s\n", rules=RULES.replace("kind = 'a'", "knd = 'a'"))
    assert ["triger" in str(problem) or "knd" in str(problem) for problem in caught.value.problems] == [
        True,
        True,
    ]
    assert check_files([tmp_path / "jobs" / "job.yaml"]) == list(caught.value.problems)


def test_a_rule_file_in_the_place_of_a_job_file_is_one_problem(tmp_path: Path) -> None:
    read(tmp_path)
    with pytest.raises(ConfigError) as caught:
        read_job(tmp_path / "rules" / "rules.yaml")
    (problem,) = map(str, caught.value.problems)
    assert problem.endswith("must be a job file; got a rule file. Name the job file that has it under rules.")
