"""Reads lines with JSON after some text, such as ``May 01 10:00:00 web1 app: {"kind": "login"}``."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.io.text.line_bounds import filled_lines, lines_at
from spark_pace.io.text.lines import PartlyParsed
from spark_pace.io.text.parsers import JsonParser
from spark_pace.io.text.utf8 import in_utf8

_BEFORE = re.compile(rb"^[^{\n]+(?=\{)", re.MULTILINE)


class JsonInTextParser(JsonParser):
    """Parses the JSON of a line, from the first brace to the end of the line."""

    def plain(self, chunk: bytes) -> PartlyParsed:
        """Let compiled code read; lines without a brace are left over, or ignored if the form says so."""
        bounds, numbers = filled_lines(chunk)
        lines = len(numbers)
        if self.form.ignores_unmatched:
            has_brace = self.matching(lines_at(np.frombuffer(chunk, np.uint8), bounds))
            has_brace = has_brace.to_numpy(zero_copy_only=False)
            bounds, numbers = bounds[:, has_brace], numbers[has_brace]
        read = super().plain(_json(chunk))
        left = numbers if read is None else numbers[~np.isin(numbers, read.rows)]
        among = np.ascontiguousarray(bounds[:, np.isin(numbers, left)])
        if read is None:
            read = PartlyParsed(super().parse(b""), np.empty(0, np.int64), left, among)
        return replace(read, left=left, bounds=among, ignored=lines - len(numbers))

    def matching(self, values: pa.BinaryArray) -> pa.BooleanArray:
        """bool[n]: which values have a brace; null for a null."""
        return pc.match_substring(values, "{")

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines if each has one JSON object at its end, else None."""
        return super().plain_rows(_json(chunk))

    def parse(self, chunk: bytes) -> pa.Table:
        """Parse the JSON of lines into the declared attributes, in the types of the core."""
        return super().parse(_json(chunk))

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The JSON of the lines, in UTF-8."""
        return super().records(in_utf8(pc.replace_substring_regex(lines, r"\A[^{]+\{", "{")))


def _json(chunk: bytes) -> bytes:
    """The lines without the text before their first brace."""
    return _BEFORE.sub(b"", chunk)
