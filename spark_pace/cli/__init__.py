"""The command line. Each command imports what it needs when it runs: `replay` takes a second and no JVM."""

from spark_pace.cli.main import main

__all__ = ["main"]
