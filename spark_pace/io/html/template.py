"""What all pages for a browser share: a template with places, data for its scripts, and what draws plots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spark_pace.errors import ConfigError


def filled(template: Path, parts: Mapping[str, str]) -> str:
    """The text of a template, with a part in each place ``{{ name }}``."""
    head, *rest = template.read_text(encoding="utf-8").split("{{ ")
    texts = [head]
    for piece in rest:
        name, _, after = piece.partition(" }}")
        texts += [parts[name], after]
    return "".join(texts)


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
