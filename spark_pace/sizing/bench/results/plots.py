"""Plots as SVG for a page of HTML; and pages, in which everything but plots is escaped."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure


def svg(figure: Figure) -> Markup:
    """A figure as an element of a page."""
    file = io.StringIO()
    figure.savefig(file, format="svg")
    _, opening, rest = file.getvalue().partition("<svg")
    return Markup(opening + rest)


def page(template: Path, values: Mapping[str, Any], plots: Sequence[Markup]) -> str:
    """A page of a template, which shows `values` and, under the name `plots`, the plots."""
    environment = Environment(
        loader=FileSystemLoader(template.parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(template.name).render(**values, plots=plots)
