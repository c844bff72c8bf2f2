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
_LEAST_BEGUN = 4  # characters of a value: fewer at the end of a text may be anything
_OF_HTML_IN_JSON = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&"})
_HEX = re.compile(r"%[0-9A-F]{2}")
_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")


@dataclass
class Secrets:
    """Reads values from the environment, and remembers them so that they can be masked."""

    _forms: set[str] = field(default_factory=set, repr=False)

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
            self._forms |= _forms(found)
            return found

        return _REFERENCE.sub(value, text)

    def resolve_all(self, texts: Mapping[str, str], where: str) -> dict[str, str]:
        """Resolve each value of `texts`, the mapping under the key `where` of the job file."""
        return {key: self.resolve(text, f"{where}.{key}") for key, text in texts.items()}

    def mask(self, text: str) -> str:
        """Return `text` with ``***`` in place of each value that was read, as others may write it too.

        The text may have been cut: it may end in the beginning of a value.
        """
        for form in sorted(self._forms, key=len, reverse=True):
            text = text.replace(form, MASK)
            begun = (form[:length] for length in range(len(form) - 1, _LEAST_BEGUN - 1, -1))
            text = next((text.removesuffix(one) + MASK for one in begun if text.endswith(one)), text)
        return text

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Mask the text of errors that leave the block.

        If there are secrets, such an error loses its causes, because their texts may hold secrets too.
        """
        try:
            yield
        except Exception as error:
            if not self._forms:
                raise
            is_ours = isinstance(error, SparkPaceError) and not hasattr(error, "problems")
            kind = type(error) if is_ours else SparkPaceError
            raise kind(self.mask(str(error))) from None


def _forms(value: str) -> set[str]:
    """A value as it is, in an address, in JSON, in HTML and in a message, as libraries write it."""
    in_address = {quote(value, safe=safe) for safe in ("", "/")}
    in_json = {json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    in_json |= {one.translate(_OF_HTML_IN_JSON) for one in in_json}
    in_json |= {one.replace("/", "\\/") for one in in_json}
    in_html = escape(value), escape(value).replace("&#x27;", "&#39;")
    return {
        *(value, unquote(value), one_line(value, len(value))),
        *in_address,
        *(_HEX.sub(lambda found: found[0].lower(), one) for one in in_address),
        *in_json,
        *(json.dumps(one)[1:-1] for one in in_json),
        *in_html,
        in_html[1].replace("&quot;", "&#34;"),
    } - {""}
