"""A look into a job file that tells how Spark's JVM is to be started, before the file is read and checked."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from spark_pace.errors import SparkPaceError
from spark_pace.spark.java.early import Asked, early_jvm


def start_early(job: Path) -> None:
    """Start the JVM for a job, if the file tells enough. What is wrong is for the reader to tell."""
    with suppress(OSError, ValueError, yaml.YAMLError, SparkPaceError):
        asked = _asked(yaml.load(job.read_text(encoding="utf-8"), yaml.BaseLoader))
        if asked is not None:
            early_jvm().start(asked)


def _asked(root: Any) -> Asked | None:
    """What the session of a job asks for, as far as it can be seen; None where it cannot, or has secrets."""
    match root:
        case {"name": str(name), "source": {"kind": str(kind)}, **rest}:
            settings = rest.get("spark", {})
            if isinstance(settings, dict) and all(
                isinstance(value, str) and "${" not in value for value in settings.values()
            ):
                return Asked(name, settings, quick=kind == "files")
    return None
