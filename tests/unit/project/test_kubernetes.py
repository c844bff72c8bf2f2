"""conf/kubernetes: its files fit each other, the package, its pins and PySpark's own Kubernetes classes."""

from __future__ import annotations

import re
import shlex
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

import spark_pace
from spark_pace.job_file import read_job
from spark_pace.preflight import JAVA_VERSIONS, PYTHON_VERSIONS
from spark_pace.spark.java.jars import SCALA
from tests.unit.project.test_house import pins

ROOT = Path(__file__).parents[3]
PLACE = ROOT / "conf" / "kubernetes"
DOCKERFILE = (PLACE / "Dockerfile").read_text()
ENTRYPOINT = (PLACE / "entrypoint.sh").read_text()
PAGE = (ROOT / "docs" / "cluster.md").read_text()
IMAGE = f"REGISTRY/spark-pace:{spark_pace.__version__}"

Manifest = dict[str, Any]


def manifests(name: str) -> list[Manifest]:
    return list(yaml.safe_load_all((PLACE / name).read_text()))


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each as its name and the rest, on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def given(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


(DRIVER,), (EXECUTOR,), (APPLICATION,) = map(
    manifests, ("driver.yaml", "executor.yaml", "spark-application.yaml")
)
RESOURCES = {one["kind"]: one for one in manifests("resources.yaml")}
SETTINGS = dict(
    line.split(None, 1)
    for line in (PLACE / "spark-submit.conf").read_text().splitlines()
    if not line.startswith("#")
)
JOB = read_job(PLACE / "job" / "job.yaml")


def container(pod: Manifest) -> Manifest:
    (only,) = pod["spec"]["containers"]
    return only


def test_the_image_has_pinned_versions_that_the_package_takes():
    bases = given("FROM")
    assert len(bases) == 2 and bases[0] == f"{bases[1]} AS wheel"
    python = re.fullmatch(r"python:(\d+)\.(\d+)-slim-\w+", bases[1])
    assert python and PYTHON_VERSIONS[0] <= (int(python[1]), int(python[2])) <= PYTHON_VERSIONS[1]
    java = re.search(r"\bopenjdk-(\d+)-jre-headless\b", DOCKERFILE)
    assert java and int(java[1]) in JAVA_VERSIONS
    assert '--constraint /tmp/requirements.txt "$wheel[html,kafka]"' in DOCKERFILE
    setup = (ROOT / "setup.py").read_text()
    assert all(f'"{extra}": ' in setup for extra in ("html", "kafka"))
    assert APPLICATION["spec"]["sparkVersion"] == pins()["pyspark"]
    assert {APPLICATION["spec"]["image"], SETTINGS["spark.kubernetes.container.image"]} == {IMAGE}
    assert f"-t {IMAGE} ." in DOCKERFILE and f"-t {IMAGE} ." in PAGE


def test_the_dockerfile_copies_what_is_there_and_runs_modules_that_exist():
    copied = [shlex.split(line) for line in given("COPY") if "--from=" not in line]
    sources = [source for line in copied for source in line[:-1] if not source.startswith("--")]
    assert len(sources) == 8
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (PLACE / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(sources)
    modules = re.findall(r"python -m ([\w.]+)", DOCKERFILE)
    assert modules == ["spark_pace.spark.java.jars", "spark_pace.cli.kernels"]
    assert all(find_spec(module) for module in modules)


def test_no_process_of_the_image_or_of_the_pods_is_root():
    user = given("USER")[-1]
    assert int(user) > 0 and f"useradd --system --uid {user} --gid {user} " in DOCKERFILE
    for pod in (DRIVER, EXECUTOR):
        context = pod["spec"]["securityContext"]
        assert context["runAsNonRoot"] is True
        assert {context[key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {int(user)}
        assert container(pod)["securityContext"]["allowPrivilegeEscalation"] is False


def test_the_entry_point_starts_what_spark_asks_for():
    """By the names in the classes of PySpark's own Kubernetes jar."""
    assert given("ENTRYPOINT") == ['["tini", "--", "/opt/entrypoint.sh"]']
    assert "--chmod=755 conf/kubernetes/entrypoint.sh /opt/entrypoint.sh" in given("COPY")
    assert (PLACE / "entrypoint.sh").stat().st_mode & 0o111 == 0o111
    version = pins()["pyspark"]
    jar = Path(pyspark.__path__[0], "jars", f"spark-kubernetes_{SCALA}-{version}.jar")
    with zipfile.ZipFile(jar) as classes:
        (main,) = re.findall(r"org\.apache\.spark\.scheduler\.[\w.]+", ENTRYPOINT)
        assert f"{main.replace('.', '/')}.class" in classes.namelist()
        names = [name for name in classes.namelist() if "/k8s/" in name and name.endswith(".class")]
        constants = b"\n".join(classes.read(name) for name in names)
    variables = set(re.findall(r"\bSPARK_[A-Z_]+\b", ENTRYPOINT)) - {"SPARK_HOME", "SPARK_CONF_DIR"}
    options = set(re.findall(r"--(?:[a-z]+-)*[a-zA-Z]+", ENTRYPOINT.split("KubernetesExecutorBackend")[1]))
    assert len(variables) > 9 and len(options) > 6
    assert [name for name in sorted({*variables, *options}) if name.encode() not in constants] == []


@pytest.mark.parametrize("pod", [DRIVER, EXECUTOR], ids=["driver", "executor"])
def test_a_pod_mounts_the_volumes_that_its_job_and_the_resources_name(pod: Manifest):
    mounts = {mount["name"]: mount["mountPath"] for mount in container(pod)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert set(mounts) == set(volumes)
    claim = RESOURCES["PersistentVolumeClaim"]
    assert volumes["tables"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for path in (JOB.sink_path, str(JOB.checkpoint_folder)):
        assert path.startswith(f"{mounts['tables']}/")
    options = JOB.source.options
    assert options["kafka.ssl.truststore.location"] == f"{mounts['kafka']}/ca.pem"
    assert volumes["kafka"]["secret"]["items"] == [{"key": "ca.pem", "path": "ca.pem"}]


def test_the_driver_finds_its_job_its_secrets_and_its_ports():
    mounts = {mount["name"]: mount["mountPath"] for mount in container(DRIVER)["volumeMounts"]}
    assert APPLICATION["spec"]["arguments"] == [f"{mounts['job']}/job.yaml"]
    main = APPLICATION["spec"]["mainApplicationFile"].removeprefix("local:///opt/spark-pace/")
    assert main == "jobs/run.py" and (ROOT / main).is_file()
    assert "jobs /opt/spark-pace/jobs" in given("COPY")
    text = (PLACE / "job" / "job.yaml").read_text()
    assert {one["name"] for one in container(DRIVER)["env"]} == set(re.findall(r"\$\{env:(\w+)\}", text))
    assert JOB.page and JOB.metrics
    ports = {port["name"]: port["containerPort"] for port in container(DRIVER)["ports"]}
    assert ports == {"page": JOB.page.port, "metrics": JOB.metrics.port}
    assert {JOB.page.host, JOB.metrics.host} == {"0.0.0.0"}
    for probe in ("startupProbe", "livenessProbe"):
        assert container(DRIVER)[probe]["httpGet"] == {"path": "/healthz", "port": "page"}
    annotations = DRIVER["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(JOB.metrics.port)
    assert annotations["prometheus.io/path"] == "/metrics"


def test_both_ways_start_the_same_pods_with_the_same_settings():
    spec = APPLICATION["spec"]
    of_spark = {
        "spark.kubernetes.namespace": APPLICATION["metadata"]["namespace"],
        "spark.kubernetes.container.image": spec["image"],
        "spark.kubernetes.authenticate.driver.serviceAccountName": spec["driver"]["serviceAccount"],
        "spark.kubernetes.driver.podTemplateFile": "conf/kubernetes/driver.yaml",
        "spark.kubernetes.executor.podTemplateFile": "conf/kubernetes/executor.yaml",
        "spark.kubernetes.driver.podTemplateContainerName": container(DRIVER)["name"],
        "spark.kubernetes.executor.podTemplateContainerName": container(EXECUTOR)["name"],
        "spark.kubernetes.driver.pod.name": f"{APPLICATION['metadata']['name']}-driver",
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.driver.memory": spec["driver"]["memory"],
        "spark.driver.memoryOverhead": spec["driver"]["memoryOverhead"],
        **{f"spark.executor.{key}": str(spec["executor"][key]) for key in ("instances", "cores", "memory")},
        "spark.executor.memoryOverhead": spec["executor"]["memoryOverhead"],
        **spec["sparkConf"],
    }
    assert of_spark == SETTINGS
    for pod, role in ((DRIVER, "driver"), (EXECUTOR, "executor")):
        assert spec[role]["template"] == {"metadata": pod["metadata"], "spec": pod["spec"]}


def test_the_role_is_bound_to_the_account_of_the_driver():
    account = SETTINGS["spark.kubernetes.authenticate.driver.serviceAccountName"]
    namespace = SETTINGS["spark.kubernetes.namespace"]
    assert RESOURCES["ServiceAccount"]["metadata"] == {"name": account, "namespace": namespace}
    binding = RESOURCES["RoleBinding"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
    assert binding["roleRef"]["name"] == RESOURCES["Role"]["metadata"]["name"]
    assert RESOURCES["Namespace"]["metadata"]["name"] == namespace
    (rule,) = RESOURCES["Role"]["rules"]
    assert set(rule["resources"]) == {"pods", "services", "configmaps", "persistentvolumeclaims"}
    assert {"get", "list", "watch", "create", "delete", "deletecollection"} <= set(rule["verbs"])


def test_the_page_makes_what_the_pods_ask_for():
    """Secrets and the ConfigMap, which are in no file, and the files that its commands name."""
    asked = {
        *re.findall(r"secretRef: \{name: ([\w-]+)", (PLACE / "driver.yaml").read_text()),
        *(one["valueFrom"]["secretKeyRef"]["name"] for one in container(DRIVER)["env"]),
    }
    made = set(re.findall(r"^kubectl create secret generic ([\w-]+) ", PAGE, re.MULTILINE))
    assert asked == made == {"spark-pace-kafka", "spark-pace-store"}
    maps = {volume["configMap"]["name"] for volume in DRIVER["spec"]["volumes"] if "configMap" in volume}
    assert maps == set(re.findall(r"^kubectl create configmap ([\w-]+) ", PAGE, re.MULTILINE))
    named = set(re.findall(r"\bconf/kubernetes(?:/[\w.-]+)*", PAGE))
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
