"""Settings of Spark whose values come from the environment reach Spark, but not its command line."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SCRIPT = """
import psutil
from spark_pace.spark.session import build_session
settings = {"spark.master": "local[1]", "spark.log.callerContext": "open"}
spark = build_session("test", settings, secret={"spark.hadoop.the.key": "correct-horse"})
line = " ".join(psutil.Process(spark.sparkContext._gateway.proc.pid).cmdline())
print("spark.log.callerContext=open" in line, "correct-horse" in line)
print(spark.sparkContext._jsc.hadoopConfiguration().get("the.key"), spark.sparkContext.master)
spark.stop()
"""


def test_a_secret_setting_is_not_on_the_command_line() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert answer.stdout.splitlines() == ["True False", "correct-horse local[1]"], answer.stderr
