"""What spark-submit makes of conf/kubernetes: the pods, and a job in them, as processes of this machine."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from examples.ports import free_port
from spark_pace.job_file import read_job
from tests.spark.jobs import in_core, make_job, matches, random_events, write_files
from tests.support.containers import ROOT, SMALL, spark_home
from tests.support.kubernetes import ApiServer, Kubelet, Manifest

pytestmark = pytest.mark.integration

PLACE = ROOT / "conf" / "kubernetes"
ENTRYPOINT = [str(PLACE / "entrypoint.sh")]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
LONG_S = 500
MAIN_AND_JOB = ["local:///opt/spark-pace/jobs/run.py", "/etc/spark-pace/job.yaml"]


def documented() -> list[str]:
    """The command of the page about clusters."""
    text = (ROOT / "docs" / "cluster.md").read_text()
    (command,) = re.findall(r"^spark-submit --master k8s:.*?(?<!\\)$", text, re.MULTILINE | re.DOTALL)
    return shlex.split(command.replace("\\\n", " "))


def submit(server: ApiServer, settings: Sequence[str] = ()) -> Manifest:
    """Submit by the documented command, in the checkout; the driver's pod."""
    name, *options = documented()
    assert options[-2:] == MAIN_AND_JOB
    master = options.index("--master") + 1
    options[master] = f"k8s://{server.address}"
    more = [part for setting in settings for part in ("--conf", setting)]
    answer = subprocess.run(
        [name, *more, *options],
        cwd=ROOT,
        env={**os.environ, "PATH": PATH, "KUBECONFIG": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return server.objects["pods", "cards-driver"]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.close()


def template(name: str) -> Manifest:
    """What one of the files says."""
    return yaml.safe_load((PLACE / f"{name}.yaml").read_text())


def test_the_driver_s_pod_has_all_that_the_template_and_the_settings_say(server: ApiServer) -> None:
    pod, said = submit(server), template("driver")
    assert pod["metadata"]["namespace"] == "spark-pace"
    assert said["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
    assert said["metadata"]["annotations"].items() <= pod["metadata"]["annotations"].items()
    assert pod["spec"]["serviceAccountName"] == "spark-pace"
    assert pod["spec"]["securityContext"] == said["spec"]["securityContext"]
    assert all(volume in pod["spec"]["volumes"] for volume in said["spec"]["volumes"][:2])
    (container,), (of_template,) = pod["spec"]["containers"], said["spec"]["containers"]
    for part in ("name", "securityContext", "startupProbe", "livenessProbe", "envFrom"):
        assert container[part] == of_template[part]
    for part in ("volumeMounts", "env"):
        assert all(one.items() <= found(container[part], one).items() for one in of_template[part])
    assert {4050, 9464} <= {port["containerPort"] for port in container["ports"]}
    assert container["image"] == template("spark-application")["spec"]["image"]
    assert container["resources"]["limits"]["memory"] == "3072Mi"
    assert container["args"][:1] == ["driver"] and container["args"][-2:] == MAIN_AND_JOB


def found(items: Sequence[Manifest], one: Manifest) -> Manifest:
    return next(item for item in items if item["name"] == one["name"])


@pytest.mark.long
def test_a_job_in_the_pods_finds_what_the_core_finds(server: ApiServer, tmp_path: Path) -> None:
    """The server is ours, and pods are processes; Spark's driver, scheduler and executor are real."""
    job = make_job(tmp_path)
    write_files(tmp_path, random_events(50), 2)
    spark = spark_home(tmp_path / "spark")
    image = {"PATH": PATH, "SPARK_HOME": str(spark), "PYTHONPATH": str(ROOT), **SMALL}
    kubelet = Kubelet(tmp_path, server, image)
    places = {"/opt/spark-pace": str(ROOT), "/etc/spark-pace": str(tmp_path)}
    server.on_pod = lambda pod: (
        "executor" in pod["metadata"]["labels"]["spark-role"] and kubelet.start(pod, ENTRYPOINT, places)
    )
    try:
        in_pods = [f"spark.kubernetes.driver.master={server.address}", "spark.executor.instances=1"]
        in_pods += [f"spark.driver.port={free_port()}", f"spark.driver.blockManager.port={free_port()}"]
        pod = submit(server, in_pods)
        kubelet.start(pod, ENTRYPOINT, places)
        code = kubelet.processes["cards-driver"].wait(LONG_S)
        logs = {name: kubelet.log(name) for name in kubelet.processes}
    finally:
        kubelet.close()
    assert code == 0, logs
    assert len(logs) == 2
    assert matches(read_job(job)) == in_core(read_job(job)).matches.to_pylist() != []
