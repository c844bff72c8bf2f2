"""How records that are text say what an event is."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.expr.time_formats import has_year


@dataclass(frozen=True)
class RecordForm:
    """How text says what an event is, where it is not said as the format has it.

    Attributes:
        regex: of ``format: text``: an expression of RE2 that a line must match as a whole, whose named groups
            are attributes; None: no source may have this format, unless `has_json`.
        has_json: whether a line of ``format: text`` is JSON from its first brace on, instead.
        ignores_unmatched: whether a line that does not match is no record, instead of a bad one.
        time_formats: of a TIMESTAMP, tried in this order; none: it is written by ISO 8601.
        year: of times whose format has none; None: see `newest_us`.
        newest_us: where times have no year, each is in the last year that puts it at most a day after this,
            in microseconds since 1970.
        zone: of times whose format has none; None: UTC.
        empty_is_null: whether an empty text is null.
    """

    regex: str | None = None
    has_json: bool = False
    ignores_unmatched: bool = False
    time_formats: tuple[str, ...] = ()
    year: int | None = None
    newest_us: int | None = None
    zone: str | None = None
    empty_is_null: bool = False

    @property
    def reads_text(self) -> bool:
        """True if a source may be text."""
        return self.regex is not None or self.has_json

    @property
    def lacks_year(self) -> bool:
        """True if nothing but the time of a file can say in which year a time is."""
        return self.year is None and not all(map(has_year, self.time_formats))


ORDINARY = RecordForm()
