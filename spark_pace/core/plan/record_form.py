"""The form of text records: the parts of a schema that say how to read an event from text."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.expr.time_formats import has_year


@dataclass(frozen=True)
class RecordForm:
    """How to read an event from text, where that differs from the default of the format.

    Attributes:
        regex: for ``format: text``: an RE2 expression that must match the whole line; its named groups are
            the attributes. None: no source may have this format, unless `has_json`.
        further: more of these; the first that matches a line says what it holds.
        has_json: True if a line of ``format: text`` is JSON from its first brace on.
        ignores_unmatched: True if a line that does not match is skipped instead of reported as bad.
        time_formats: the formats of a TIMESTAMP, tried in this order; empty: ISO 8601.
        year: the year of times whose format has none; None: it follows from `newest_us`.
        newest_us: a time without a year is in the last year that puts it at most a day after this time, in
            microseconds since 1970.
        zone: the time zone of times whose format has none; None: UTC.
        empty_is_null: True if an empty text is null.
        preset: the name of the preset that says what lines are; None: the regex is the user's own.
    """

    regex: str | None = None
    has_json: bool = False
    ignores_unmatched: bool = False
    time_formats: tuple[str, ...] = ()
    year: int | None = None
    newest_us: int | None = None
    zone: str | None = None
    empty_is_null: bool = False
    preset: str | None = None
    further: tuple[str, ...] = ()

    @property
    def regexes(self) -> tuple[str, ...]:
        """`regex`, if there is one, and `further`."""
        return () if self.regex is None else (self.regex, *self.further)

    @property
    def reads_text(self) -> bool:
        """True if a source may be text."""
        return self.regex is not None or self.has_json

    @property
    def omits_year(self) -> bool:
        """True if a time may be written without its year."""
        return not all(map(has_year, self.time_formats))

    @property
    def lacks_year(self) -> bool:
        """True if the year of a time can only be told from the time of its file."""
        return self.year is None and self.omits_year


ORDINARY = RecordForm()
