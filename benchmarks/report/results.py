"""The results of a run as JSON: the rows, and what they were measured with."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.rows import Row
from spark_pace import __version__

ROOT = Path(__file__).parents[2]
PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "numpy", "numba")


@dataclass(frozen=True)
class Results:
    """The rows of a run.

    Attributes:
        machine: what `machine` gives.
        sizes: how large the measurements were made.
        rows: in the order in which they were measured.
    """

    machine: dict[str, Any]
    sizes: dict[str, Any]
    rows: list[Row]

    @classmethod
    def read(cls, path: Path) -> Results:
        """What `write` has written."""
        found = json.loads(path.read_text(encoding="utf-8"))
        return cls(found["machine"], found["sizes"], [Row(**row) for row in found["rows"]])

    def write(self, path: Path) -> Path:
        """Write them to `path`, a row a line."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f'"machine": {json.dumps(self.machine)},\n"sizes": {json.dumps(self.sizes)},\n'
        lines = ",\n".join(json.dumps(asdict(rounded(row))) for row in self.rows)
        path.write_text(f'{{{head}"rows": [\n{lines}\n]}}\n', encoding="utf-8")
        return path


def rounded(row: Row) -> Row:
    """The row with four digits of its figures."""
    ratio = None if row.ratio is None else float(f"{row.ratio:.4g}")
    return Row(**{**asdict(row), "value": float(f"{row.value:.4g}"), "ratio": ratio})


def machine() -> dict[str, Any]:
    """What the run is measured with: versions, machine, date, commit, and how busy the machine is."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "spark_pace": __version__,
        "commit": commit.stdout.strip(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 1024**3, 1),
        "load": round(os.getloadavg()[0], 1),
        **{name: version(name) for name in PACKAGES},
    }


def processor() -> str:
    """The processor's name, where Linux tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
