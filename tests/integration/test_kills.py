"""Jobs that are killed at chosen moments and at random ones: nothing shows in what they write.

One reads a real broker, which is killed too. The other has random graphs of rules.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from examples.cluster.store_server import StoreServer
from examples.kafka.broker import Broker
from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.io.query import read_table
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from tests.long.chaos.check import differences, tables_of
from tests.long.chaos.moments import WITH_THE_FIRST_BATCH
from tests.long.chaos.series import RANDOM, Kill, Series
from tests.long.chaos.stream import in_core, make_stream
from tests.long.chaos.topic import kill_for, produce, write_topic_job
from tests.long.levels.kills import EVENTS, FILES_FOR_A_KILL, TOLD, killed
from tests.support.both_places import Kept
from tests.support.graph_jobs import drawn_graphs, make_graph_job

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

A_FEW = [  # each that ends the job costs a start
    Kill("all", "chunk half written"),
    Kill("worker", RANDOM),
    Kill("broker", RANDOM),
]
A_FEW_IN_A_STORE = [Kill("all", "chunk written"), Kill("worker", RANDOM), Kill("jvm", "state committed")]
OF_EACH_KIND = [  # `make chaos` has all others
    Kill("driver", "query unstarted"),
    Kill("driver", WITH_THE_FIRST_BATCH),
    Kill("all", "chunk half written"),
    Kill("all", "chunk written"),
    Kill("group", "numbers unwritten"),  # the levels are written
    Kill("driver", "old chunk removed"),  # the numbers are written
    Kill("worker", RANDOM),
    Kill("daemon", RANDOM),
    Kill("operator", RANDOM),
    Kill("group", "quarantine written"),  # late and quarantine come before matches and metrics
    Kill("broker", RANDOM),
    Kill("driver", "metrics written"),
    Kill("group", "end half written"),
]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Where the job in `tmp_path`/job keeps its tables and its checkpoint."""
    if request.param == "folder":
        return Kept(tmp_path / "job")
    server: StoreServer = request.getfixturevalue("server")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return Kept.in_store(server, tmp_path.name)


@pytest.mark.parametrize(
    ("kills", "batches", "size", "place"),  # how many batches pass before a kill from outside is chance
    [
        pytest.param(A_FEW, 8, 2000, "folder", id="a few"),
        pytest.param(A_FEW_IN_A_STORE, 8, 2000, "store", id="a few, in a store", marks=pytest.mark.long),
        pytest.param(OF_EACH_KIND, 24, 1000, "folder", id="one of each kind", marks=pytest.mark.long),
    ],
    indirect=["place"],
)
def test_a_job_that_is_killed_again_and_again_ends_as_an_undisturbed_one(
    tmp_path: Path, own_broker: Broker, kills: list[Kill], batches: int, size: int, place: Kept
) -> None:
    stream = make_stream(size * batches, 3, 2 * size)
    source_of = produce(own_broker, "kills", stream)
    job = write_topic_job(tmp_path / "job", own_broker, "kills", size)
    spec = place.for_job(job)
    outcome = Series(job, tmp_path / "logs", 1, lambda seconds: kill_for(own_broker, seconds), told=TOLD).run(
        kills
    )
    assert (
        list(differences(tables_of(spec.sink_path), stream, in_core(spec, stream, source_of), source_of))
        == []
    )
    assert outcome.complaints == []
    assert outcome.unspent == []
    assert len(outcome.survived) == len(kills)
    changes = read_table(spec.sink_path, "rule_changes", ["rule", "batch_id", "change"]).to_pylist()
    names = sorted(rule.name for rule in every_rule(spec.rules) if not rule.hands_on)
    assert sorted(row["rule"] for row in changes) == names
    assert all((row["batch_id"], row["change"]) == (0, "added") for row in changes)
    checkpoint = Checkpoint(spec.checkpoint_folder)
    begins = [read_begin(checkpoint, batch_id) for batch_id in range(checkpoint.next_batch() + 1)]
    assert any(begin is not None and begin.chunks for begin in begins), "what waits was never in files"


@pytest.mark.long
@pytest.mark.parametrize("place", ["folder", "store"], indirect=True)
def test_random_graphs_of_rules_in_a_job_that_is_killed_find_what_the_oracle_finds(
    tmp_path: Path, place: Kept
) -> None:
    kills = [Kill("driver", "lookup unwritten"), Kill("jvm", RANDOM)]
    sizes = FILES_FOR_A_KILL * (len(kills) + 1), EVENTS
    job = make_graph_job(tmp_path / "job", drawn_graphs(4), Random(4), sizes, place)
    outcome = killed(job, tmp_path / "job", 4, kills)
    assert list(job.differences()) == []
    assert outcome.complaints == []
    assert outcome.unspent == []
