"""The counters of a job as Prometheus reads them, and the dashboard and alerts that name them."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from examples.ports import free_port
from spark_pace.errors import SetupError
from spark_pace.io.metrics import AlertCounts, BatchReport
from spark_pace.job_file import Endpoint
from spark_pace.prometheus import Offered
from spark_pace.watching.page import served
from tests.support.commands import ROOT

GRAFANA = ROOT / "conf" / "grafana"
HOST = "127.0.0.1"


def batch(number: int, **changed: object) -> BatchReport:
    values: dict[str, object] = {
        "batch_id": number,
        "seconds": 2.0,
        "batch_seconds": 1.5,
        "records": 12,
        "events": 9,
        "late": 1,
        "bad_records": 2,
        "quarantined": 2,
        "matches": {"rise": 3},
        "pending": 4,
        "carry": 5,
        "open": 6,
        "state_bytes": 700,
        "frontier_us": 1_000_000,
        "max_time_us": 3_500_000,
        "idle_sources": 0,
        "slowest_source": None,
        "idle_names": (),
        "unheard_sources": (),
        "waiting_for": (),
        "finished": False,
        "selections": 1,
        "operator_seconds": 0.25,
        "lanes": 1,
        "lane_rows": 5,
        "distinct_rows": 5,
        "longest_lane_seconds": 0.25,
        "longest_lane_predicted": None,
        "over_bound": None,
        "lookups": {},
        "store_requests": 17,
        "stage_seconds": {"tasks": 1.0, "merger": 0.375, "tables": 0.125},
    }
    return BatchReport(**(values | changed))  # type: ignore[arg-type]


def read(offered: Offered) -> dict[str, float]:
    """What a running server answers: the value of each sample, its rule, target or stage behind its name."""
    port = free_port()
    with (
        served("metrics", offered.answer, Endpoint(port)),
        urlopen(f"http://{HOST}:{port}/metrics", timeout=10) as answer,
    ):
        text = answer.read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels["job_name"] == "flights"
            (of,) = [of for label, of in sample.labels.items() if label != "job_name"] or [""]
            found[" ".join([sample.name, *filter(None, [of])])] = sample.value
    return found


def test_counters_are_summed_over_batches_and_gauges_are_of_the_last_one() -> None:
    offered = Offered("flights", ["rise", "fall"])
    offered.after(batch(0, newest_us=9_000_000), 100.0)
    offered.after(batch(1, matches={"fall": 1}, pending=40, newest_us=9_000_000), 101.5)
    found = read(offered)
    assert found["spark_pace_batches_total"] == 2
    assert found["spark_pace_records_total"] == 24
    assert found["spark_pace_late_total"] == 2
    assert found["spark_pace_quarantined_total"] == 4
    assert found["spark_pace_operator_seconds_total"] == 0.5
    assert found["spark_pace_stage_seconds_total tasks"] == 2
    assert found["spark_pace_stage_seconds_total merger"] == 0.75
    assert found["spark_pace_matches_total rise"] == 3
    assert found["spark_pace_matches_total fall"] == 1
    assert found["spark_pace_pending_events"] == 40
    assert found["spark_pace_carried_events"] == 5
    assert found["spark_pace_batch_store_requests"] == 17
    assert found["spark_pace_last_batch_timestamp_seconds"] == 101.5
    assert found["spark_pace_frontier_timestamp_seconds"] == 1
    assert found["spark_pace_newest_event_timestamp_seconds"] == 9


def test_a_batch_that_finds_repeats_of_earlier_ones_lets_no_counter_fall() -> None:
    offered = Offered("flights", ["rise"])
    offered.after(batch(0), 100.0)
    offered.after(batch(1, records=1, events=-5, repeats=6), 101.0)
    found = read(offered)
    assert found["spark_pace_events_total"] == 10
    assert found["spark_pace_repeats_total"] == 6


def test_alerts_are_counted_by_target() -> None:
    assert not [name for name in read(Offered("flights", ["rise"])) if "alerts" in name]
    counts = [AlertCounts("pager", 7, 5, 1, 2), AlertCounts("bus")]
    offered = Offered("flights", ["rise"], lambda: counts)
    assert read(offered)["spark_pace_alerts_sent_total pager"] == 5
    found = read(offered)
    assert found["spark_pace_alerts_waiting pager"] == 7
    assert found["spark_pace_alerts_sent_total pager"] == 5
    assert found["spark_pace_alerts_refused_total pager"] == 1
    assert found["spark_pace_alerts_failures_total pager"] == 2
    assert found["spark_pace_alerts_waiting bus"] == 0


def test_that_the_files_have_other_rules_is_told() -> None:
    offered = Offered("flights", ["rise"])
    assert read(offered)["spark_pace_rules_differ"] == 0
    offered.rules_differ(True)
    assert read(offered)["spark_pace_rules_differ"] == 1


def test_a_host_without_a_name_that_can_be_is_refused() -> None:
    offered = Offered("flights", [])
    with pytest.raises(SetupError), served("metrics", offered.answer, Endpoint(free_port(), "a..b")):
        pass


def test_before_the_first_batch_every_rule_has_no_match_and_no_time_is_known() -> None:
    found = read(Offered("flights", ["rise"]))
    assert found["spark_pace_matches_total rise"] == 0
    assert found["spark_pace_batches_total"] == 0
    assert not [name for name in found if "timestamp" in name]


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        offered = Offered("flights", [])
        with pytest.raises(SetupError) as refused, served("metrics", offered.answer, Endpoint(port)):
            pass
    assert str(refused.value).startswith(
        f"metrics — must be an address of this machine that is free; got {HOST}:{port}, "
    )


def test_the_dashboard_and_the_alerts_name_metrics_that_there_are() -> None:
    offered = Offered("flights", ["rise"], lambda: [AlertCounts("pager")])
    offered.after(batch(0, newest_us=3_500_000), 100.0)
    known = {name.partition(" ")[0] for name in read(offered)}
    dashboard = json.loads((GRAFANA / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = yaml.safe_load((GRAFANA / "alerts.yaml").read_text())
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    named = {name for expr in asked for name in re.findall(r"\bspark_pace_\w+", expr)}
    assert named <= known
    assert {rule["alert"] for group in alerts["groups"] for rule in group["rules"]}
    settings = yaml.safe_load((GRAFANA / "prometheus.yaml").read_text())
    assert settings["rule_files"] == [Path("alerts.yaml").name]
