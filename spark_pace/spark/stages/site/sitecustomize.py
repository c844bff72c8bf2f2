"""Lets a Python process of Spark import PySpark from the installed package; Python runs this when it starts.

It also keeps the process of a streaming source quiet when its query ends, and takes the working folder from
the front of its path: `python -m` puts it there, so that a `pandas.py` in it would be imported.

Spark puts an archive of the same modules, `pyspark.zip`, first on the path of its Python processes. Each
process compiles modules from an archive anew, which takes two thirds of a second.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.realpath(os.path.dirname(__file__))
_ARCHIVE = "/python/lib/pyspark.zip"


def _is_of_a_package(path: str) -> bool:
    """True if a path is the archive inside an installed package; False for one of a separate Spark."""
    return path.endswith(_ARCHIVE) and os.path.isfile(path.removesuffix(_ARCHIVE) + "/__init__.py")


def _untold(kind, error, trace):  # type: ignore[no-untyped-def]
    """Print an error that nobody has caught, unless it says that Spark has closed the connection, or is gone.

    Spark closes it to end the process, with its query. Whether the process can still answer then is chance,
    and whether it has connected yet.
    """
    if not issubclass(kind, ConnectionError) and not str(error).startswith("[CANNOT_OPEN_SOCKET]"):
        sys.__excepthook__(kind, error, trace)


class _WithoutWorkingFolder:
    """Takes away the first entry of the path, which Python adds before it imports `runpy` for ``-m``."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]
        """Find nothing."""
        if name == "runpy":
            sys.meta_path.remove(_WithoutWorkingFolder)
            if sys.path and sys.path[0] == os.getcwd() and not getattr(sys.flags, "safe_path", False):
                del sys.path[0]


if any(word.startswith(("pyspark.", "spark_pace.spark.")) for word in sys.orig_argv):
    sys.meta_path.insert(0, _WithoutWorkingFolder)
if "pyspark.sql.streaming.python_streaming_source_runner" in sys.orig_argv:
    sys.excepthook = _untold
sys.path[:] = [path for path in sys.path if not _is_of_a_package(path)]

# Python runs only the first `sitecustomize` on the path, so this runs the one after it
_hidden = PathFinder.find_spec(__name__, [path for path in sys.path if os.path.realpath(path) != _HERE])
if _hidden is not None and _hidden.loader is not None:
    _module = module_from_spec(_hidden)
    sys.modules[__name__] = _module
    _hidden.loader.exec_module(_module)
