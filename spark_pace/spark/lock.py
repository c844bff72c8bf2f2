"""One process per checkpoint: two would both run a batch before Spark notices."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_pace.errors import SetupError


@contextmanager
def checkpoint_lock(checkpoint: Path) -> Iterator[None]:
    """Hold the checkpoint; the kernel lets go of it when the process ends, however it ends.

    Raises:
        SetupError: another process holds it; the message names its pid.
    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    with open(checkpoint / ".lock", "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            pid = file.read().strip() or "unknown"
            raise SetupError(
                f"{checkpoint} — must be used by one job at a time; got a second while process {pid} runs. "
                "Wait for it or stop it, or give this job a checkpoint of its own."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
