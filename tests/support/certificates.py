"""Certificates of a broker and of one client, which know each other: made by the JDK's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

from spark_pace.preflight import java_command

KEY_PASSWORD = "staple-of-the-key"
TRUST_PASSWORD = "staple-of-the-trust"
BROKER, CLIENT = "broker", "client"
_VALID = ("-validity", "2", "-keyalg", "EC", "-ext", "SAN=ip:127.0.0.1", "-storetype", "PKCS12")


class Certificates:
    """Self-signed certificates in a folder.

    `NAME.p12` holds a key, `NAME.pem` is for those who trust it, and `trust.p12` holds what the client
    trusts.
    """

    def __init__(self, folder: Path) -> None:
        """Make them."""
        self._folder = folder
        self._tool = Path(str(java_command())).with_name("keytool")
        for name in (BROKER, CLIENT):
            store = ("-alias", name, "-keystore", str(self.key(name)), "-storepass", KEY_PASSWORD)
            self._run("-genkeypair", "-dname", f"CN={name}", *store, *_VALID)
            self._run("-exportcert", "-rfc", "-file", str(self.pem(name)), *store)
        trust = ("-keystore", str(self.trust), "-storepass", TRUST_PASSWORD)
        self._run("-importcert", "-noprompt", "-alias", BROKER, "-file", str(self.pem(BROKER)), *trust)

    def key(self, name: str) -> Path:
        return self._folder / f"{name}.p12"

    def pem(self, name: str) -> Path:
        return self._folder / f"{name}.pem"

    @property
    def trust(self) -> Path:
        return self._folder / "trust.p12"

    def of_the_broker(self) -> dict[str, str]:
        """Kafka's settings of a broker that trusts the client alone."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.key(BROKER)),
            "ssl.keystore.password": KEY_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.pem(CLIENT)),
        }

    def _run(self, *arguments: str) -> None:
        subprocess.run([str(self._tool), *arguments], check=True, capture_output=True)
