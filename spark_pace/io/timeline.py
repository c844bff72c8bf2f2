"""A page that draws matches on a time axis: for a browser, without a server, or in a notebook.

All pages for a browser share a template with places, data for its scripts, and what draws plots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.time_functions import us_of
from spark_pace.core.operate.match_table import TAKEN_COLUMNS
from spark_pace.errors import ConfigError, one_line


def filled(template: Path, parts: Mapping[str, str]) -> str:
    """The text of a template, with a part in each place ``{{ name }}``."""
    text = template.read_text(encoding="utf-8")
    return re.sub(r"\{\{ (\w+) \}\}", lambda place: parts[place[1]], text)


def json_in_script(told: Any) -> str:
    """JSON of a value for a script of type ``application/json``."""
    text = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # so no text from events can end the script that holds it


def require_plotly() -> None:
    """Raise ConfigError if plotly is not installed."""
    if find_spec("plotly") is None:
        must, do = "must be installed to draw a page", "Install it: pip install 'spark-pace[html]'."
        raise ConfigError.of("plotly", must, "no such package", do)


def plotly() -> str:
    """The source of plotly.js, which the package plotly brings.

    Raises:
        ConfigError: plotly is not installed.
    """
    require_plotly()
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def write_page(page: str, path: Path, where: str) -> None:
    """Write a page to a file.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        must, do = "must be a file that can be written", "Choose another."
        raise ConfigError.of(f"{where} {path}", must, error.strerror or str(error), do) from error


MOST_EVENTS = 200_000  # how many events of matches one page draws
_MOST_CHARACTERS = 300  # of the text about a match
_HEIGHT = 800  # of the frame in a notebook, in pixels
_PAGE = Path(__file__).with_suffix(".html")


@dataclass(frozen=True)
class Timeline:
    """Matches on a time axis: each is a bar from `opened_at` to `matched_at`, its events are marks on it.

    Above them stands how many matches each rule has over time. The page filters by rule and by key, and needs
    nothing beside itself. A notebook shows it in a frame.

    Attributes:
        matches: a table with the columns that all matches have; its other columns are fields of rules.
        title: the heading of the page.
        rules: the names of rules in the order in which the page lists them; others come behind, by name.
        newest_us: the time of the newest record; the text about a match behind it says that the match is
            there because the input ends. None: no match says so.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> drawn = spark_pace.replay(rules, [{"time": "2024-01-01T00:00:00Z", "x": 9.0}]).timeline()
        >>> drawn.title, drawn.matches.num_rows
        ('matches', 1)
        >>> "<title>matches</title>" in drawn.html()
        True
    """

    matches: pa.Table
    title: str
    rules: tuple[str, ...] = ()
    newest_us: int | None = None

    def write(self, path: str | Path) -> Path:
        """Write the page to a file, and return its path.

        Raises:
            ConfigError: the file cannot be written, or plotly is not installed.
        """
        page, path = self.html(), Path(path)
        write_page(page, path, "timeline")
        return path

    def html(self) -> str:
        """The page.

        Raises:
            ConfigError: plotly is not installed.
        """
        told = json_in_script(_told(self.matches, self.rules, self.newest_us))
        return filled(_PAGE, {"title": escape(self.title), "told": told, "plotly": plotly()})

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose styles and scripts touch nothing else of the notebook."""
        page = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="{_HEIGHT}" style="border: 0"></iframe>'


def _told(matches: pa.Table, rules_first: tuple[str, ...], newest_us: int | None) -> dict[str, Any]:
    """What the page draws: a list for each column of the matches, and for each column of their events.

    Times are milliseconds since 1970; `rule`, `key` and `component` are numbers of texts in `rules`, `keys`
    and `components`; `match` is the number of an event's match. Matches stand in their order, rule by rule.
    """
    listed = pa.array(rules_first, pa.string())
    place = pc.fill_null(pc.index_in(matches["rule"], listed), len(listed))
    placed = matches.select(["rule", "out_seq"]).append_column("place", place)
    order = pc.sort_indices(placed, [("place", "ascending"), ("rule", "ascending"), ("out_seq", "ascending")])
    matches = matches.take(order).combine_chunks()
    keys, key = _numbered(matches["key"])
    rules, rule = _numbered(matches["rule"])
    told = {"rules": rules, "rule": rule, "keys": keys, "key": key}
    told |= {"opened": _ms(matches["opened_at"]), "matched": _ms(matches["matched_at"])}
    return {**told, "about": _about(matches, newest_us), **_events(matches)}


def _events(matches: pa.Table) -> dict[str, Any]:
    """The first events of the matches, and how many there are in all."""
    lists = matches["events"].combine_chunks()
    events = pc.list_flatten(lists)
    of_match = pc.list_parent_indices(lists)
    shown = events.slice(0, MOST_EVENTS)
    # components of two rules that have one name are two
    rules = matches["rule"].take(of_match.slice(0, MOST_EVENTS)).combine_chunks()
    names = pc.fill_null(pc.struct_field(shown, "component"), "")
    components, component = _numbered(pc.binary_join_element_wise(rules, names, " · "))
    return {
        "components": components,
        "component": component,
        "match": of_match.slice(0, MOST_EVENTS).to_pylist(),
        "time": _ms(pc.struct_field(shown, "event_time")),
        "seq": pc.struct_field(shown, "seq").to_pylist(),
        "events": len(events),
    }


def _numbered(texts: pa.Array | pa.ChunkedArray) -> tuple[list[str | None], list[int]]:
    """The distinct texts as they come, and for each text which of them it is."""
    coded = pc.dictionary_encode(texts, null_encoding="encode")
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return coded.dictionary.to_pylist(), coded.indices.to_pylist()


def _ms(times: pa.Array | pa.ChunkedArray) -> list[float | None]:
    """Milliseconds since 1970 with three decimals, as plotly wants times in UTC."""
    us = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return [None if value is None else value / 1_000 for value in us.to_pylist()]


def _about(matches: pa.Table, newest_us: int | None) -> list[str]:
    """A text about each match: its number, whether the end of the input made it, key columns and fields.

    Columns that are null are left out.
    """
    fields = [name for name in matches.column_names if name not in TAKEN_COLUMNS]
    texts = list[str]()
    for row in matches.select([*fields, "out_seq", "matched_at"]).to_pylist():
        by_end = newest_us is not None and us_of(row["matched_at"]) > newest_us
        said = ["because the input ends"] if by_end else []
        said += [f"{name} = {row[name]}" for name in fields if row[name] is not None]
        texts.append(one_line(", ".join([f"match {row['out_seq']}", *said]))[:_MOST_CHARACTERS])
    return texts
