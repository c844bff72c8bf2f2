"""The folder of a session that is started here: Spark's home, and Spark's temporary files.

Spark's home links to the Spark that pip has installed, but for its archive of Python modules. Spark puts that
archive, `python/lib/pyspark.zip`, first on the path of every Python worker. Modules in an archive are
compiled anew in every process, which costs each start of a worker half a second; the installed package beside
it has them compiled.

A process that is killed leaves its folder behind, which may hold gigabytes. The next start removes it: each
process holds its folder locked, so a folder that nobody holds belongs to nobody.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

_VARIABLE = "SPARK_HOME"
_PREFIX = "spark-pace-session-"
_FOLDER = re.compile(re.escape(_PREFIX) + r"\w{8}", re.ASCII)
# Spark's own default warns at every start. If the gateway had no level here, Spark would give its default to
# all loggers and say so.
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
"""
# Spark's scripts read this as bash. Java takes classes from an archive only if its class path is the one that
# the archive was made with and has no folder with files in it: so they take the jars from the installed
# package and the settings from a folder that is not there, while the JVM has this home. The script's own
# small JVM, which only puts the command together, compiles quickly. At every start Java warns of a module
# that Spark asks for (for MLlib): an option that changes nothing takes its place. `set +a` keeps the function
# out of the environment of what the scripts start.
_ENVIRONMENT = """
SPARK_HOME={package}
SPARK_CONF_DIR={package}/jars/no-settings
SPARK_LAUNCHER_OPTS="-XX:TieredStopAtLevel=1 $SPARK_LAUNCHER_OPTS"
SPARK_SUBMIT_OPTS={options}" $SPARK_SUBMIT_OPTS"
set +a
exec() {{
  export SPARK_HOME={home}
  builtin exec "${{@/#--add-modules=jdk.incubator.vector/-Xshare:auto}}"
}}
"""
_OF_SPARK = (
    "SparkContext",  # of a setting that it refuses
    "api.python.PythonRunner",
    "broadcast",
    "executor",
    "scheduler",
    "sql.execution",
    "storage",
    "util",
)
_SILENT = (  # we tell of a failure in our words, not by traces; what a stop interrupts is no failure
    "kafka.clients.NetworkClient",
    "kafka.common.security",
    *(f"spark.{part}" for part in _OF_SPARK),
)


@cache
def session_folder() -> Path:
    """A new folder in the directory for temporary files, which is removed at the end of the process.

    Folders of processes that were killed are removed now.
    """
    temporary = tempfile.gettempdir()
    for entry in os.scandir(temporary):
        if _FOLDER.fullmatch(entry.name):
            with suppress(OSError):  # its process lives, or it is another user's
                _remove_if_free(entry.path)
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=temporary)
    with suppress(OSError):  # no locks there: then it is never taken for free
        fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = Path(temporary, os.path.basename(made)[1:])
    os.rename(made, folder)  # locked before others look for it
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_if_free(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)


def make_home(options: Sequence[str] = ()) -> None:
    """Set `SPARK_HOME` to a folder with quiet logging and links to what Spark needs, but for its modules.

    Nothing is done where `SPARK_HOME` is set already or Spark was not installed by pip.

    Args:
        options: of the JVM. Those in `SPARK_SUBMIT_OPTS` and in settings of Spark come behind them, and win.
    """
    found = find_spec("pyspark")  # not imported, for that takes a while
    assert found is not None and found.origin is not None
    package = Path(found.origin).resolve().parent
    if _VARIABLE in os.environ or not (package / "jars").is_dir():
        return
    home = session_folder() / "home"
    home.mkdir()
    for part in ("bin", "sbin", "jars", "licenses"):
        if (package / part).is_dir():
            (home / part).symlink_to(package / part)
    configuration = home / "conf"
    configuration.mkdir()
    logging = configuration / "log4j2.properties"
    logging.write_text(_LOGGING + _silenced(), encoding="ascii")
    own = " ".join(f'"{option}"' for option in (f"-Dlog4j2.configurationFile={logging}", *options))
    environment = _ENVIRONMENT.format(package=quote(str(package)), home=quote(str(home)), options=quote(own))
    (configuration / "spark-env.sh").write_text(environment, encoding="utf-8")
    os.environ[_VARIABLE] = str(home)


def _silenced() -> str:
    lines = (
        f"logger.silent{number}.name = org.apache.{part}\nlogger.silent{number}.level = off\n"
        for number, part in enumerate(_SILENT)
    )
    return "".join(lines)
