"""The command line. Each command imports what it needs when it runs, so that `replay` starts no JVM."""

from spark_pace.cli.main import main

__all__ = ["main"]
