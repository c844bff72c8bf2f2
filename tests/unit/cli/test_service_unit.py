"""The units for systemd start a job again after failures that may pass, and one that hangs, and no other."""

from __future__ import annotations

import os
import shlex
import socket
from configparser import RawConfigParser
from pathlib import Path
from signal import SIGTERM

from examples.ports import free_port
from spark_pace.job_file import Endpoint
from spark_pace.watching.page import Pages, served
from tests.support.commands import called, message_of, spark_pace

UNITS = Path(__file__).parents[3] / "conf" / "systemd"
UNIT = UNITS / "spark-pace@.service"


def test_a_wrong_file_is_not_started_again_and_a_stop_is_no_failure(tmp_path: Path) -> None:
    unit = RawConfigParser()
    unit.read(UNIT)
    service = unit["Service"]
    assert service["restart"] == "on-failure"
    assert int(service["successexitstatus"]) == 128 + SIGTERM
    assert service["killmode"] == "mixed"
    program, *words = service["execstart"].split()
    assert Path(program).name == "spark-pace"
    wrong = tmp_path / "job.yaml"
    wrong.write_text("name: [")
    answer = spark_pace(*(str(wrong) if word.endswith("%i.yaml") else word for word in words))
    assert answer.returncode == int(service["restartpreventexitstatus"])
    assert message_of(answer.stderr).startswith(f"{wrong}:1:")


def test_a_job_is_restarted_only_if_it_hangs_or_does_not_answer(tmp_path: Path) -> None:
    unit = RawConfigParser()
    unit.read(UNITS / "spark-pace-health@.service")
    line = unit["Service"]["execstart"].replace("$$", "$").replace("%i", "cards")
    words = shlex.split(line.replace("--max-time 10", "--max-time 1"))
    (tmp_path / "systemctl").write_text('#!/bin/sh\necho "restarted: $*"\n')
    (tmp_path / "systemctl").chmod(0o755)

    def said(port: int) -> str:
        env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PAGE_PORT": str(port)}
        answer = called(*words, env=env)
        assert answer.returncode == 0
        return answer.stdout.strip().rpartition("\n")[2]

    restarted = "restarted: try-restart spark-pace@cards.service"
    for healthy in (True, False):
        pages = Pages("cards", dict, lambda healthy=healthy: {"healthy": healthy})
        port = free_port()
        with served("page", pages.answer, Endpoint(port)):
            assert (said(port) == restarted) != healthy
    assert said(port) != restarted  # nobody is there
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert said(silent.getsockname()[1]) == restarted
