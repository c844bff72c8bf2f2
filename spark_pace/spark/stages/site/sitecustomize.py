"""Python runs this as it starts (see its module `site`): Spark's modules come from the installed package.

Spark puts an archive of the same modules, `pyspark.zip`, first on the path of its Python processes. Modules
in an archive are compiled anew in each process, which takes two thirds of a second.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.realpath(os.path.dirname(__file__))
_ARCHIVE = "/python/lib/pyspark.zip"


def _is_of_a_package(path: str) -> bool:
    """Tell whether a path is the archive inside an installed package, not in a Spark installed by itself."""
    return path.endswith(_ARCHIVE) and os.path.isfile(path.removesuffix(_ARCHIVE) + "/__init__.py")


sys.path[:] = [path for path in sys.path if not _is_of_a_package(path)]

# Python runs only the first module of this name, so this runs the one that it hides
_hidden = PathFinder.find_spec(__name__, [path for path in sys.path if os.path.realpath(path) != _HERE])
if _hidden is not None and _hidden.loader is not None:
    _module = module_from_spec(_hidden)
    sys.modules[__name__] = _module
    _hidden.loader.exec_module(_module)
