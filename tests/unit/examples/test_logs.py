"""The rules for the logs of `examples/logs` find who attacked there, and nobody else."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest

from examples.logs.lines import GUESSERS, PROBER, SCANNER, SPRAYER, access_lines, auth_lines
from spark_pace.io.replay import Replay, replay_files
from spark_pace.rules import load_rules
from tests.unit.project.test_docs import ROOT

LOGS = ROOT / "examples" / "logs"
COOKBOOK = ROOT / "examples" / "cookbook"


@pytest.mark.parametrize(("name", "lines"), [("auth", auth_lines()), ("access", access_lines())])
def test_the_logs_are_those_that_the_program_writes(name: str, lines: list[str]) -> None:
    with gzip.open(LOGS / f"{name}.log.gz", "rt") as log:
        assert log.read().splitlines() == lines
    assert len(lines) == 2_000


def replayed(rules: str | Path, log: Path) -> tuple[Replay, dict[str, set[str]]]:
    found = replay_files(load_rules(LOGS / rules), log)
    told: dict[str, set[str]] = {}
    for match in found.result.matches.select(["rule", "key"]).to_pylist():
        told.setdefault(match["rule"], set()).update(json.loads(match["key"]).values())
    return found, told


def test_attacks_are_found_in_the_log_of_sshd_and_the_firewall() -> None:
    found, told = replayed("auth.yaml", LOGS / "auth.log.gz")
    assert told == {
        "brute_force": set(GUESSERS),
        "guessed_password": {list(GUESSERS)[1]},
        "password_spraying": {SPRAYER},
        "port_scan": {SCANNER},
    }
    tried = sum("Failed" in line or "Accepted" in line or "UFW BLOCK" in line for line in auth_lines())
    assert (found.read_rows, found.bad_rows) == (tried, 0)
    users = found.result.matches.filter(found.result.matches["rule"].to_numpy() == "guessed_password")["user"]
    assert users.to_pylist() == ["backup"]


def test_attacks_are_found_in_the_log_of_ones_own_machine(tmp_path: Path) -> None:
    """Its times may be those of ISO 8601, and newer programs of sshd have another name."""
    rules = (LOGS / "auth.yaml").read_text().replace("  year: 2024\n", "")
    (tmp_path / "rules.yaml").write_text(rules)
    newer = [
        f"{datetime.strptime(line[:15], '%b %d %H:%M:%S').replace(year=2024):%Y-%m-%dT%H:%M:%S.000001+02:00}"
        f"{line[15:].replace('sshd[', 'sshd-session[')}"
        for line in auth_lines()
    ]
    told = []
    for name, lines in (("auth.log", auth_lines()), ("auth.log.1", newer)):
        (tmp_path / name).write_text("\n".join(lines))
        told.append(replayed(tmp_path / "rules.yaml", tmp_path / name)[1])
    assert told[0] == told[1] == replayed("auth.yaml", LOGS / "auth.log.gz")[1]


def test_probes_are_found_in_the_log_of_a_web_server() -> None:
    found, told = replayed("web.yaml", LOGS / "access.log.gz")
    assert told == {"probes": {PROBER}}
    assert (found.read_rows, found.bad_rows) == (2_000, 0)


@pytest.mark.parametrize(
    ("example", "rules"),
    [("brute_force", "auth"), ("password_spraying", "auth"), ("port_scan", "auth"), ("web_probes", "web")],
)
def test_the_cookbook_has_the_same_rules(example: str, rules: str) -> None:
    text = (COOKBOOK / example / "rule.yaml").read_text("utf-8")
    events, rule = text.split("rules:\n")
    whole = (LOGS / f"{rules}.yaml").read_text("utf-8")
    assert whole.startswith(events)
    assert rule.strip() in whole
