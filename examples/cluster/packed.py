"""spark_pace and operators as `spark-submit --py-files` sends them: a wheel, which is a zip too, and a zip.

``python -m examples.cluster.packed FOLDER`` makes them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from spark_pace.errors import SetupError

ROOT = Path(__file__).parents[2]
_OF_THE_BUILD = ("setup.py", "pyproject.toml", "README.md", "LICENSE")


def packed_engine(folder: Path) -> Path:
    """Make a wheel of spark_pace in a folder. Under a name that ends in `.zip` it does as well.

    Raises:
        SetupError: it cannot be built.
    """
    with tempfile.TemporaryDirectory() as temporary:  # the build leaves files beside what it builds
        for name in _OF_THE_BUILD:
            shutil.copy(ROOT / name, temporary)
        shutil.copytree(
            ROOT / "spark_pace",
            Path(temporary, "spark_pace"),
            ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc"),
        )
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
        command = [sys.executable, "-m", "pip", "wheel", *options, temporary]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        got = answer.stderr.strip().splitlines()[-1]
        raise SetupError(f"the wheel — must be built by pip; got: {got}. Run `make setup`.")
    return next(folder.glob("spark_pace-*.whl"))


def packed_operators(folder: Path) -> Path:
    """Make a zip of the flights' operators, under the name by which rules know them."""
    with tempfile.TemporaryDirectory() as temporary:
        inside = Path(temporary, "examples", "flights")
        inside.mkdir(parents=True)
        shutil.copy(ROOT / "examples" / "flights" / "operators.py", inside)
        # it has an entry for each folder: without it Python finds no package that has no `__init__.py`
        return Path(shutil.make_archive(str(folder / "operators"), "zip", temporary))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Make a wheel of the engine and a zip of the operators of the flights, in FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    print(packed_engine(folder), packed_operators(folder), sep="\n")


if __name__ == "__main__":
    main()
