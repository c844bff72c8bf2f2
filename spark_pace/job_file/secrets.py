"""Values such as ``${env:KAFKA_PASSWORD}`` in a job file: read from the environment when the job starts, and kept out of what it says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from spark_pace.errors import SetupError, SparkPaceError

MASK = "***"
_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")


@dataclass
class Secrets:
    """The values that were read so far."""

    _values: set[str] = field(default_factory=set, repr=False)

    def resolve(self, text: str, where: str) -> str:
        """`text` with the environment's values in place of references.

        Args:
            text: of the job file.
            where: its key there, for the error.

        Raises:
            SetupError: a variable is not set.
        """

        def value(reference: re.Match[str]) -> str:
            found = os.environ.get(reference[1])
            if found is None:
                got = f"{reference[0]}, which is not set"
                raise SetupError(
                    f"{where} — must name a variable of the environment; got {got}. Set {reference[1]} and start the job again."
                )
            self._values.add(found)
            return found

        return _REFERENCE.sub(value, text)

    def resolve_all(self, texts: Mapping[str, str], where: str) -> dict[str, str]:
        """The same for every value of a mapping under the key `where`."""
        return {key: self.resolve(text, f"{where}.{key}") for key, text in texts.items()}

    def mask(self, text: str) -> str:
        """`text` with ``***`` for each value that was read."""
        for value in sorted(filter(None, self._values), key=len, reverse=True):
            text = text.replace(value, MASK)
        return text

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Mask the errors that leave this block; where there are secrets, they leave without their causes, which may name them."""
        try:
            yield
        except Exception as error:
            if not self._values:
                raise
            kind = (
                type(error)
                if isinstance(error, SparkPaceError) and not hasattr(error, "problems")
                else SparkPaceError
            )
            raise kind(self.mask(str(error))) from None
