"""The versions of PySpark that jobs run on, 4.0 to 4.3, and what an older one needs."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spark_pace.errors import UnfitError

ADVICE = "Use PySpark 4.0 to 4.3."
_PYARROW = (26, 0)  # before 4.2 PySpark's workers cannot read the rows of a group with it


def pyspark_version() -> tuple[int, ...]:
    """The first two numbers of PySpark's version, which is not imported; ``(0,)`` if it is not there."""
    found = find_spec("pyspark")
    read: Any = getattr(found and found.loader, "get_data", None)  # PySpark may be in an archive
    if found is None or found.origin is None or read is None:
        return (0,)
    text: bytes = read(str(Path(found.origin).with_name("version.py")))
    stated = re.search(r"^__version__.*=(.*)", text.decode(), re.MULTILINE)
    return _numbers(stated[1]) if stated else (0,)


def require_fitting_pyarrow(spark_version: str, pyarrow_version: str) -> None:
    """Raise `UnfitError` if this Spark's workers cannot use this pyarrow."""
    if _numbers(spark_version) < (4, 2) and _numbers(pyarrow_version) >= _PYARROW:
        must, do = f"must be older than {_PYARROW[0]} for Spark {spark_version}", "pip install 'pyarrow<26'"
        raise UnfitError(f"pyarrow — {must}; got {pyarrow_version}. `{do}` mends it.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
