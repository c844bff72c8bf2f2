"""A new job says at its start that there are no files yet, and says it no more once it has read one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import obstore
import pytest

from examples.cluster.store_server import StoreServer
from spark_pace.cli.run import run_shown
from tests.spark.jobs import job, random_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_a_folder_without_files_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = replace(job(tmp_path, slots=1, buckets=1, finish=False), trigger_us="available_now")
    told = f"no files yet in {spec.files.path}: check this place if some should be there."
    assert run_shown(spec, in_lines=True).records == 0
    assert [line.endswith(told) for line in capsys.readouterr().out.splitlines()].count(True) == 1
    write_files(tmp_path, random_events(1), 1)
    assert run_shown(spec, in_lines=True).records > 0
    for path in Path(spec.files.path).iterdir():
        path.unlink()
    run_shown(spec, in_lines=True)
    assert "no files yet" not in capsys.readouterr().out


@pytest.mark.stores
def test_a_misspelt_prefix_of_a_store_is_told_in_the_same_line(
    reached_store: StoreServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = reached_store.bucket("no-files-yet")
    obstore.put(bucket, "events/1.json", b"{}")
    spec = job(tmp_path, slots=1, buckets=1, finish=False)
    spec = replace(spec, source=replace(spec.files, path="s3a://no-files-yet/event"))
    assert run_shown(spec, in_lines=True).records == 0
    told = "no files yet in s3a://no-files-yet/event: check this place if some should be there."
    assert told in capsys.readouterr().out
