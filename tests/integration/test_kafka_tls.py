"""A broker that encrypts: a job shows its certificate or a password, or says in one line what is wrong."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.kafka.broker import Broker
from spark_pace.errors import SetupError
from spark_pace.job import run_job
from spark_pace.spark.sources import kafka
from tests.integration.conftest import PASSWORD
from tests.long.chaos.series import one_line, without_greeting
from tests.spark.jobs import ROOT, matches, random_events
from tests.support.certificates import BROKER, CLIENT, KEY_PASSWORD, TRUST_PASSWORD, Certificates
from tests.support.kafka_jobs import SASL, as_json, dealt, in_core, kafka_job

pytestmark = pytest.mark.integration

TRUST = "source.options — must be what {servers} and Kafka's client accept; got: "
STORE = f"{TRUST}Failed to load SSL keystore "
BOTH = """
import sys
from spark_pace.errors import SetupError
from spark_pace.job import run_job
from spark_pace.job_file import read_job
for job in sys.argv[1:]:
    try:
        run_job(read_job(job))
    except SetupError:
        print("refused")
"""
SECRETS = {"KAFKA_PASSWORD": PASSWORD, "KEY_PASSWORD": KEY_PASSWORD, "TRUST_PASSWORD": TRUST_PASSWORD}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def trusting(certificates: Certificates) -> dict[str, str]:
    return {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PKCS12",
        "kafka.ssl.truststore.location": str(certificates.trust),
        "kafka.ssl.truststore.password": "${env:TRUST_PASSWORD}",
    }


def by_certificate(certificates: Certificates) -> dict[str, str]:
    return {
        **trusting(certificates),
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": str(certificates.key(CLIENT)),
        "kafka.ssl.keystore.password": "${env:KEY_PASSWORD}",
    }


def by_password(certificates: Certificates) -> dict[str, str]:
    trust = {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(certificates.pem(BROKER)),
    }
    return {**SASL, "kafka.security.protocol": "SASL_SSL", **trust}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("protocol", "options"), [("SSL", by_certificate), ("SASL_SSL", by_password)], ids=["mTLS", "SASL_SSL"]
)
def test_a_job_reads_all_events_of_a_broker_that_encrypts(
    broker: Broker,
    certificates: Certificates,
    topic: str,
    send: Any,
    tmp_path: Path,
    protocol: str,
    options: Callable[[Certificates], dict[str, str]],
) -> None:
    events = random_events(7)
    send(topic, *dealt(events, as_json))
    spec = kafka_job(
        tmp_path,
        broker.secure_servers[protocol],
        topic,
        options=options(certificates),
        max_offsets_per_trigger=150,
    )
    assert run_job(spec).events == len(events)
    assert matches(spec) == in_core(spec, topic, events)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert [name for name, value in SECRETS.items() if value.encode() in written] == []


def of_another_broker(certificates: Certificates) -> dict[str, str]:
    trust = {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(certificates.pem(CLIENT)),
    }
    return {**SASL, "kafka.security.protocol": "SASL_SSL", **trust}


def with_a_wrong_password(certificates: Certificates) -> dict[str, str]:
    return {**by_certificate(certificates), "kafka.ssl.keystore.password": "${env:TRUST_PASSWORD}"}


def without_a_file(certificates: Certificates) -> dict[str, str]:
    return {**by_certificate(certificates), "kafka.ssl.keystore.location": "/nowhere/client.p12"}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("protocol", "options", "must", "got"),
    [
        ("SSL", trusting, TRUST, "Received fatal alert: "),
        (
            "SASL_SSL",
            of_another_broker,
            TRUST,
            "SSL handshake failed: SSLHandshakeException: ",
        ),
        (
            "SSL",
            with_a_wrong_password,
            STORE,
            "client.p12 of type PKCS12: IOException: keystore password was incorrect. Correct ",
        ),
        ("SSL", without_a_file, STORE, "/nowhere/client.p12 of type PKCS12: NoSuchFileException: "),
    ],
    ids=["no certificate", "another broker", "wrong password", "no file"],
)
def test_what_is_wrong_with_certificates_is_said_in_one_line(
    broker: Broker,
    certificates: Certificates,
    topic: str,
    tmp_path: Path,
    protocol: str,
    options: Any,
    must: str,
    got: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka, "TIMEOUT_SECONDS", 400)
    began = time.monotonic()
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, broker.secure_servers[protocol], topic, options=options(certificates)))
    said = str(raised.value)
    assert time.monotonic() - began < kafka.TIMEOUT_SECONDS
    assert said.startswith(must.format(servers=broker.secure_servers[protocol]))
    assert got in said
    assert one_line(said)
    assert [name for name, value in SECRETS.items() if value in said] == []


@pytest.mark.long
def test_nothing_but_the_line_is_printed(
    broker: Broker, certificates: Certificates, topic: str, tmp_path: Path
) -> None:
    jobs = []
    for options in (trusting, without_a_file):
        folder = tmp_path / options.__name__
        folder.mkdir()
        kafka_job(folder, broker.secure_servers["SSL"], topic, options=options(certificates))
        jobs.append(str(folder / "job.yaml"))
    answer = subprocess.run(
        [sys.executable, "-c", BOTH, *jobs], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.stdout == "refused\nrefused\n"
    assert without_greeting(answer.stderr) == ""
