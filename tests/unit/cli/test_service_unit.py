"""The unit for systemd starts a job again after failures that may pass, and after no other."""

from __future__ import annotations

from configparser import RawConfigParser
from pathlib import Path
from signal import SIGTERM

from tests.support.commands import message_of, spark_pace

UNIT = Path(__file__).parents[3] / "conf" / "systemd" / "spark-pace@.service"


def test_a_wrong_file_is_not_started_again_and_a_stop_is_no_failure(tmp_path: Path) -> None:
    unit = RawConfigParser()
    unit.read(UNIT, encoding="utf-8")
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
