"""Python runs this as it starts (see its module `site`): Spark's modules come from the installed package.

Spark puts an archive of the same modules, `pyspark.zip`, first on the path of its Python processes. Modules
in an archive are compiled anew in each process, which takes it two thirds of a second.
"""

import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(__file__)
sys.path[:] = [path for path in sys.path if not path.endswith("/python/lib/pyspark.zip")]

# Python runs only the first module of this name, so this runs the one that it hides
_hidden = PathFinder.find_spec(__name__, [path for path in sys.path if path != _HERE])
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(sys.modules[__name__])
