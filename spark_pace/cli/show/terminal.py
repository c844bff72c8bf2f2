"""The console on which tables and lines are shown."""

from __future__ import annotations

from rich.console import Console


def console_of(width: int) -> Console:
    """A console as wide as the terminal; for a file or a pipe, with lines of at most `width` characters."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)
