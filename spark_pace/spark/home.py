"""Spark's home for a session that is started here: a pip-installed Spark without its archive of Python modules.

Spark puts `python/lib/pyspark.zip` first on every Python worker's path. Modules in an archive are compiled anew in
every process, which costs each start of a worker half a second; the installed package beside it has them compiled.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pyspark

_VARIABLE = "SPARK_HOME"
_LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""  # Spark's own default warns of every start; the gateway's level would become that of all, and Spark would say so
# Java warns of a module that Spark asks for at every start (MLlib would use it): an option that changes nothing takes its place.
# Spark's scripts read this as bash; `set +a` keeps the function out of the environment of what they start.
_ENVIRONMENT = """
set +a
exec() { builtin exec "${@/#--add-modules=jdk.incubator.vector/-Xshare:auto}"; }
"""
_SILENT = (  # a job's failure is told in our words, not by traces
    "kafka.clients.NetworkClient",
    "kafka.common.security",
    *(f"spark.{part}" for part in ("api.python.PythonRunner", "executor", "scheduler", "sql.execution", "storage", "util")),
)


def without_archive() -> None:
    """Set `SPARK_HOME` to a folder of links to all that Spark needs of its package but the archive, with quiet logging.

    Nothing is done where `SPARK_HOME` is set already or Spark was not installed by pip.
    """
    package = Path(pyspark.__file__).parent
    if _VARIABLE in os.environ or not (package / "jars").is_dir():
        return
    home = tempfile.mkdtemp(prefix="spark-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for part in ("bin", "sbin", "jars", "licenses"):
        if (package / part).is_dir():
            os.symlink(package / part, os.path.join(home, part))
    configuration = Path(home, "conf")
    configuration.mkdir()
    (configuration / "log4j2.properties").write_text(_LOGGING + _silenced(), encoding="ascii")
    (configuration / "spark-env.sh").write_text(_ENVIRONMENT, encoding="ascii")
    os.environ[_VARIABLE] = home


def _silenced() -> str:
    lines = (f"logger.silent{number}.name = org.apache.{part}\nlogger.silent{number}.level = off\n" for number, part in enumerate(_SILENT))
    return "".join(lines)
