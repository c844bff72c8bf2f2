"""What the ending of a file's name says: whether it is packed, what it holds, on which line records begin."""

from __future__ import annotations

from pathlib import Path

# endings of compressed text, with the names of their codecs in pyarrow
CODECS = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
ARCHIVES = tuple(CODECS)


def first_line(name: str) -> int:
    """The line number, in an editor, of the first record of a text file of this name."""
    return 2 if ending(name) == ".csv" else 1


def position(name: str, offset: int) -> str:
    """The place of a record as `why` takes it: the line where the file is text, else the offset."""
    return f"{name}:{offset}" if ending(name) == ".parquet" else f"{name}:L{offset + first_line(name)}"


def ending(name: str) -> str:
    """The ending of a file's name, without that of an archive."""
    path = Path(name)
    return (path.with_suffix("") if path.suffix in ARCHIVES else path).suffix
