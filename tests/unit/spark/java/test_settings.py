"""The settings of a Spark that runs a job on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_pace.io.files.addresses import StorePath, StoreSettings
from spark_pace.spark.java.launch import MANAGER, settings_here, store_settings

HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine whose user has named no address; the path of workers is put back at the end."""
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    for name in ("SPARK_LOCAL_IP", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("master", [{}, {"spark.master": "local[2]"}])
@pytest.mark.usefixtures("here")
def test_other_machines_do_not_reach_a_spark_that_needs_none(master: dict[str, str]) -> None:
    found = settings_here(master, {}, quick=True)
    assert (found[HOST], found[BIND]) == ("127.0.0.1", "127.0.0.1")


@pytest.mark.parametrize(
    "settings",
    [{"spark.master": "spark://one:7077"}, {"spark.master": "local-cluster[1,1,1024]"}, {HOST: "10.0.0.5"}],
)
@pytest.mark.usefixtures("here")
def test_who_has_executors_elsewhere_or_names_an_address_is_reached(settings: dict[str, str]) -> None:
    found = settings_here(settings, {}, quick=True)
    assert (found.get(HOST), found.get(BIND)) == (settings.get(HOST), None)


@pytest.mark.parametrize("name", ["SPARK_LOCAL_IP", "SPARK_CONF_DIR"])
def test_an_address_in_the_environment_or_in_files_of_spark_holds(
    here: pytest.MonkeyPatch, name: str
) -> None:
    here.setenv(name, "10.0.0.5")
    assert HOST not in settings_here({}, {}, quick=True)


@pytest.mark.parametrize("manager", [{}, {MANAGER: "org.own.Manager"}])
def test_a_checkpoint_in_s3_takes_the_jars_for_it_whatever_writes_spark_s_files(
    here: pytest.MonkeyPatch, tmp_path: Path, manager: dict[str, str]
) -> None:
    (tmp_path / "s3a").mkdir()
    for name in ("delta.jar", "s3a/hadoop-aws.jar"):
        (tmp_path / name).touch()
    here.setenv("SPARK_PACE_JARS", str(tmp_path))
    place = StorePath.of("s3a://bucket/ck", StoreSettings())
    for checkpoint, jars in ((place, ["delta.jar", "hadoop-aws.jar"]), (tmp_path, ["delta.jar"])):
        found = settings_here(manager, store_settings(checkpoint), quick=True)["spark.driver.extraClassPath"]
        assert [Path(jar).name for jar in found.split(os.pathsep)] == jars
