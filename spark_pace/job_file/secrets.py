"""Replaces references such as ``${env:KAFKA_PASSWORD}`` in a job file, and hides their values.

The values are read from the environment when the job starts, and masked in everything that the job prints.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote, unquote

from spark_pace.errors import SparkPaceError, UnfitError, one_line

MASK = "***"
_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")


@dataclass
class Secrets:
    """Reads values from the environment, and remembers them so that they can be masked."""

    _values: set[str] = field(default_factory=set, repr=False)

    def resolve(self, text: str, where: str) -> str:
        """Return `text` with each reference replaced by its value from the environment.

        Args:
            text: a value of the job file.
            where: the key of the value, for the error.

        Raises:
            SetupError: a variable is not set.
        """

        def value(reference: re.Match[str]) -> str:
            found = os.environ.get(reference[1])
            if found is None:
                must, got = "must name a variable of the environment", f"{reference[0]}, which is not set"
                do = f"Set {reference[1]} and start the job again."
                raise UnfitError(f"{where} — {must}; got {got}. {do}")
            self._values.add(found)
            return found

        return _REFERENCE.sub(value, text)

    def resolve_all(self, texts: Mapping[str, str], where: str) -> dict[str, str]:
        """Resolve each value of `texts`, the mapping under the key `where` of the job file."""
        return {key: self.resolve(text, f"{where}.{key}") for key, text in texts.items()}

    def mask(self, text: str) -> str:
        """Return `text` with ``***`` in place of each value that was read, as others may write it too."""
        for form in sorted({form for value in self._values for form in _forms(value)}, key=len, reverse=True):
            text = text.replace(form, MASK)
        return text

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Mask the text of errors that leave the block.

        If there are secrets, such an error loses its causes, because their texts may hold secrets too.
        """
        try:
            yield
        except Exception as error:
            if not self._values:
                raise
            is_ours = isinstance(error, SparkPaceError) and not hasattr(error, "problems")
            kind = type(error) if is_ours else SparkPaceError
            raise kind(self.mask(str(error))) from None


def _forms(value: str) -> set[str]:
    """A value as it is, in an address, in JSON, in HTML, and as a line of a message."""
    in_json = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1].replace("/", "\\/")
    return {
        value,
        quote(value, safe=""),
        unquote(value),
        *in_json,
        escape(value),
        one_line(value, len(value)),
    } - {""}
