"""Rule files that change while their job runs: what can be taken over is, of the rest the job tells."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job, reader
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, read_note
from spark_pace.spark.checkpoint.layout import read_layout
from tests.spark.jobs import RULES, make_job, table
from tests.spark.test_changed_rules_in_spark import changes, expected, feed, found
from tests.support.silent_store import SilentStore

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

HEAD, *PARTS = RULES.split("  - name: ")
PAUSED = "  - {name: pairs, enabled: false, pattern: {sequence: [a: x > 5]}}\n"
TEXTS = {part.partition("\n")[0]: f"  - name: {part}" for part in PARTS}
# has another type for a column of the tables
OTHER = TEXTS["pairs"].replace("name: pairs", "name: other").replace("began: a.t", "began: a.k")


def rules(*names: str, **changes: str) -> str:
    """The text of a rule file with some of the rules; `changes` gives the text of one another window."""
    texts = (TEXTS[name].replace("within: 30 s", changes.get(name, "within: 30 s")) for name in names)
    return HEAD + "".join(texts)


def running_job(folder: Path, refresh: str = "rules_refresh: 100 ms") -> JobSpec:
    path = make_job(folder, finish=False, rules=rules("pairs", "keyed"))
    path.write_text(path.read_text().replace("trigger: available_now", f"trigger: 100 ms\n{refresh}"))
    return read_job(path)


class Watched:
    """A job that runs in the main thread, driven by steps in another."""

    def __init__(self, folder: Path, spec: JobSpec, log: pytest.LogCaptureFixture) -> None:
        self.folder, self.spec, self.log = folder, spec, log
        self.batches = 0
        self.failure: BaseException | None = None

    def run(self, steps: Callable[[Watched], None]) -> None:
        def drive() -> None:
            try:
                steps(self)
            except BaseException as error:
                self.failure = error
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=drive)
        thread.start()
        run_job(self.spec, on_progress=self._note)
        thread.join()
        if self.failure is not None:
            raise self.failure

    def _note(self, _batch: Any) -> None:
        self.batches += 1

    def write(self, text: str) -> None:
        (self.folder / "rules.yaml").write_text(text)

    def wait_for_batches(self, count: int) -> None:
        until(lambda: table(self.spec, "metrics").num_rows >= count)

    def wait_for_rules(self, *names: str) -> None:
        checkpoint = Checkpoint(Path(self.spec.checkpoint_path))
        until(lambda: set(laid_rules(checkpoint)) == set(names))

    def wait_for_message(self, text: str) -> None:
        until(lambda: any(text in message for message in self.log.messages))


def laid_rules(checkpoint: Checkpoint) -> list[str]:
    layout = read_layout(checkpoint)
    return [] if layout is None else list(layout.rules)


def note_of(spec: JobSpec) -> str:
    """What the running job keeps of rules that it does not take over."""
    note = read_note(Checkpoint(Path(spec.checkpoint_path)))
    return "" if note is None else note.rules


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except Exception:  # a table or file that is not there yet
            logging.debug("not yet")
        threading.Event().wait(0.1)
    raise AssertionError("waited in vain")


def test_rules_come_and_go_while_the_job_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = running_job(tmp_path)

    def steps(job: Watched) -> None:
        feed(tmp_path, spec, 0, 1)
        job.wait_for_batches(1)
        job.write(rules("keyed", "sums") + PAUSED)
        job.wait_for_rules("keyed", "sums")
        feed(tmp_path, spec, 1, 2)
        job.wait_for_batches(2)
        job.write(rules("keyed", "sums") + PAUSED + OTHER)
        job.wait_for_message("must have a column began of type")
        job.write(rules("keyed", "sums", keyed="within: 31 s") + PAUSED)
        job.wait_for_message("rule keyed — must be as the checkpoint knows it; got a changed within: 31 s")
        until(lambda: "rule keyed — must be as" in note_of(spec))
        job.write(rules("keyed", "sums") + "  - nam: other\n")
        job.wait_for_message('must be a known key; got "nam"')
        feed(tmp_path, spec, 2, 3)
        job.wait_for_batches(3)
        job.write(rules("sums", "keyed", "pairs"))
        job.wait_for_rules("sums", "keyed", "pairs")
        feed(tmp_path, spec, 3, 4)
        job.wait_for_batches(4)
        assert note_of(spec) == ""

    Watched(tmp_path, spec, caplog).run(steps)
    every = read_job(tmp_path / "job.yaml")
    early = expected(every, "pairs", 0, 1, finish=False)
    late = expected(every, "pairs", 3, 4, finish=False, base=len(early))
    assert found(every, "keyed") == expected(every, "keyed", 0, 4, finish=False)
    assert found(every, "sums") == expected(every, "sums", 1, 4, finish=False)
    assert found(every, "pairs") == early + late
    assert early and late
    told = [message.partition(". They")[0] for message in caplog.messages if message.startswith("rules — ")]
    assert len(told) == 5 and {"rules — added: sums; paused: pairs", "rules — resumed: pairs"} < set(told)
    assert changes(spec) == [
        *((0, "keyed", "added"), (0, "pairs", "added")),
        *((1, "pairs", "paused"), (1, "sums", "added"), (3, "pairs", "resumed")),
    ]


def test_rules_in_a_table_are_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = running_job(tmp_path)
    texts = {name: dedent(text.replace("  - name", "    name")) for name, text in TEXTS.items()}

    def write(names: dict[str, bool], mode: Literal["append", "overwrite"] = "append") -> None:
        rows = {"name": [*names], "text": [texts[name] for name in names], "enabled": [*names.values()]}
        write_deltalake(tmp_path / "rules", pa.table(rows), mode=mode)

    write({"pairs": True, "keyed": True, "sums": False})
    path, schema = tmp_path / "job.yaml", yaml.safe_load(HEAD)["events"]
    of_job = yaml.safe_load(path.read_text())
    path.write_text(
        json.dumps({**of_job, "rules": {"table": "rules"}, "events": {**schema, **of_job["events"]}})
    )
    spec = read_job(path)

    def steps(job: Watched) -> None:
        feed(tmp_path, spec, 0, 1)
        job.wait_for_batches(1)
        write({"pairs": True, "keyed": False, "sums": True}, "overwrite")
        job.wait_for_rules("pairs", "sums")
        texts["keyed"] = texts["keyed"].replace("30 s", "30 parsecs")
        write({"keyed": True, "pairs": False}, "overwrite")
        job.wait_for_message(f"{tmp_path}/rules[keyed]:4:9 within — must be a length")
        feed(tmp_path, spec, 1, 2)
        job.wait_for_batches(2)

    Watched(tmp_path, spec, caplog).run(steps)
    for name, last in (("pairs", 2), ("keyed", 1)):
        assert found(spec, name) == expected(spec, name, 0, last, finish=False)
    assert changes(spec) == [
        *((0, "keyed", "added"), (0, "pairs", "added")),
        *((1, "keyed", "paused"), (1, "sums", "added")),
    ]


def test_without_a_refresh_a_change_is_told_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_LOOK_US", 100_000)
    spec = running_job(tmp_path, refresh="")
    assert spec.rules_refresh_us is None

    def steps(job: Watched) -> None:
        feed(tmp_path, spec, 0, 1)
        job.wait_for_batches(1)
        job.write(rules("keyed"))
        job.wait_for_message("rules — removed: pairs. To take them over, start the job again or set")
        job.wait_for_rules("pairs", "keyed")

    Watched(tmp_path, spec, caplog).run(steps)


def test_a_signal_is_answered_while_the_table_of_rules_is_at_a_silent_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, path = running_job(tmp_path), tmp_path / "job.yaml"
    signalled: list[float] = []

    def steps(job: Watched) -> None:
        feed(tmp_path, spec, 0, 1)
        job.wait_for_batches(1)
        path.write_text(path.read_text().replace("[rules.yaml]", "{table: 's3://bucket/rules'}"))
        assert store.asked.wait(120)
        signalled.append(time.monotonic())

    with SilentStore() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        Watched(tmp_path, spec, caplog).run(steps)
    assert time.monotonic() - signalled[0] < 60
