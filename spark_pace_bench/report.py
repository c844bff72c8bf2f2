"""The report of runs: one page of HTML with plots, and a table of text for a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spark_pace.errors import counted
from spark_pace_bench.latency import KINDS
from spark_pace_bench.summary import Figures

TEMPLATE = Path(__file__).parent / "report.html"
SHOWN = ("p50", "p90", "p99", "p99.9")
NAMES = {"end_to_end": "end to end", "processing": "processing", "scheduled": "from scheduled time"}
# how many matches a percentile needs, so that ten of them lie beyond it; with fewer it is marked
NEEDED = {"p50": 20, "p90": 100, "p99": 1_000, "p99.9": 10_000}
# one color for one thing, in all plots of a page
_COLORS = {
    "end_to_end": "tab:blue",
    "processing": "tab:olive",
    "scheduled": "tab:red",
    "due": "black",
    "sent": "tab:cyan",
    "read": "tab:green",
    "lag": "tab:purple",
    "cores": "tab:brown",
    "phase": "gray",
    "peak": "tab:orange",
}
_SIZE = (12.0, 3.2)
_TEXT_WIDTH = 0.085  # of a letter in a small font, in inches

Draw = Callable[[Axes, Figures], None]


def as_html(runs: Sequence[Figures]) -> str:
    """The page of one run or of the variants of a run file."""
    drawn = [[svg(figure) for figure in figures(run)] for run in runs]
    compared = [svg(comparison(runs))] if len(runs) > 1 else []
    values = {"runs": runs, "shown": SHOWN, "names": NAMES, "drawn": drawn, "needed": NEEDED}
    return page(TEMPLATE, values, compared)


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


def figures(run: Figures) -> Iterator[Figure]:
    """The plots of one run."""
    if run["histogram"]:
        yield _over_time(run, "Latency, by the second in which the match's last event was due", "s", _latency)
        yield _histogram(run["histogram"])
    yield _over_time(run, "Events sent and read", "events a second", _throughput)
    yield _over_time(run, "Lag: events sent, but in no batch that is done", "events", _lag)
    yield _over_time(run, "What the job takes", "cores", _cores)


def _over_time(run: Figures, title: str, unit: str, draw: Draw) -> Figure:
    figure, axes = _empty(title, unit)
    draw(axes, run["series"])
    axes.set(
        xlabel="seconds since the first event of the schedule", xlim=(0, run["series"]["second"][-1] + 1)
    )
    top = axes.get_ylim()[1] * 1.15  # room for the names of the phases
    axes.set_ylim(0, top)
    inches = _SIZE[0] * axes.get_position().width / axes.get_xlim()[1]
    for number, phase in enumerate(run["phases"]):
        begin, end = phase["begins"], phase["begins"] + phase["seconds"]
        color = _COLORS["peak" if phase["role"] == "peak" else "phase"]
        axes.axvspan(begin, end, color=color, alpha=0.06 + 0.06 * (number % 2), linewidth=0)
        letters = int((end - begin) * inches / _TEXT_WIDTH)
        name = phase["name"] if len(phase["name"]) <= letters else phase["name"][: letters - 1] + "…"
        if letters > 1:
            axes.text((begin + end) / 2, top * 0.98, name, ha="center", va="top", fontsize="small")
    _explain(axes)
    return figure


def _empty(title: str, unit: str) -> tuple[Figure, Axes]:
    """An empty plot as wide as the page; all are equally wide, so that times stand below each other."""
    figure = Figure(figsize=_SIZE)
    figure.subplots_adjust(left=0.07, right=0.985, bottom=0.15, top=0.86)
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_ylabel(unit)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _explain(axes: Axes) -> None:
    names = axes.get_legend_handles_labels()[1]
    if len(names) > 1:  # above the plot, beside its title
        axes.legend(
            fontsize="small",
            ncols=3,
            frameon=False,
            columnspacing=1.2,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.2,
        )


def _curve(axes: Axes, series: Figures, name: str, label: str, **style: Any) -> None:
    points = [(x, y) for x, y in zip(series["second"], series[name], strict=True) if y is not None]
    if points:
        axes.plot(*zip(*points, strict=True), label=label, linewidth=1.2, **style)


def _latency(axes: Axes, series: Figures) -> None:
    for kind in KINDS:
        for percent, style in ((50, "-"), (99, ":")):
            label = f"{NAMES[kind]}, p{percent}"
            _curve(axes, series, f"{kind} p{percent}", label, color=_COLORS[kind], linestyle=style)


def _throughput(axes: Axes, series: Figures) -> None:
    for name, line in (("sent", "-"), ("read", "-"), ("due", "--")):
        # counts of whole seconds
        _curve(axes, series, name, name, color=_COLORS[name], linestyle=line, drawstyle="steps-post")


def _lag(axes: Axes, series: Figures) -> None:
    _curve(axes, series, "lag", "lag", color=_COLORS["lag"])


def _cores(axes: Axes, series: Figures) -> None:
    _curve(axes, series, "cores", "cores busy", color=_COLORS["cores"])


def _histogram(histogram: Figures) -> Figure:
    figure, axes = _empty("How many matches took how long", "matches")
    edges = np.array(histogram["edges"])
    for kind in KINDS:
        axes.stairs(histogram[kind], edges, label=NAMES[kind], color=_COLORS[kind], linewidth=1.4)
    axes.set(xlabel="seconds", xscale="log")
    axes.xaxis.set_major_formatter("{x:g}")
    if edges[-1] < 20 * edges[0]:  # else the decades are enough
        axes.xaxis.set_minor_formatter("{x:g}")
    _explain(axes)
    return figure


def comparison(runs: Sequence[Figures]) -> Figure:
    """The latencies of several variants beside each other."""
    figure, axes = _empty("Latency from the scheduled time", "s")
    places = np.arange(len(runs))
    for number, (percent, alpha) in enumerate((("p50", 1.0), ("p99", 0.5))):
        heights = [run["measured"]["scheduled"].get(percent, 0.0) for run in runs]
        axes.bar(places + 0.4 * number, heights, 0.4, label=percent, color=_COLORS["scheduled"], alpha=alpha)
    axes.set_xticks(places + 0.2, [run["variant"] for run in runs], fontsize="small")
    if max(len(run["variant"]) for run in runs) * len(runs) * _TEXT_WIDTH > _SIZE[0]:
        axes.tick_params("x", rotation=15)
        figure.subplots_adjust(bottom=0.3)
    _explain(axes)
    return figure


def as_text(run: Figures) -> str:
    """The figures of a run for a terminal."""
    return "\n".join(_lines(run))


def _lines(run: Figures) -> Iterator[str]:
    title = f"{run['name']}, {run['variant']}" if run["variant"] else run["name"]
    yield f"{title}: {counted(run['rules'], 'rule')}, {counted(run['cores'], 'core')}"
    heads = f"{'due/s':>10}{'sent/s':>10}{'read/s':>10}{'lag':>9}{'cores':>7}{'matches/s':>11}"
    yield f"{'phase':16}{'s':>6}{heads}"
    for phase in run["phases"]:
        lag = "" if phase["lag_most"] is None else f"{phase['lag_most']:,}"
        cores = "" if phase["cores"] is None else f"{phase['cores']:.2f}"
        yield (
            f"{phase['name'][:15]:16}{phase['seconds']:>6g}{phase['rate']:>10,.0f}"
            f"{phase['sent_per_second']:>10,.0f}{phase['read_per_second']:>10,.0f}{lag:>9}{cores:>7}"
            f"{phase['matches_per_second']:>11,.1f}"
        )
    yield f"{'latency, s':22}" + "".join(f"{name:>9}" for name in (*SHOWN, "mean", "greatest", "matches"))
    for what, found in (("all measured", run["measured"]), *run["by_rule"].items()):
        if what != "all measured" and len(run["by_rule"]) == 1:
            continue
        yield f"  {what}"
        for kind in KINDS:
            values = {name: found[kind].get(name) for name in (*SHOWN, "mean", "greatest")}
            few = {name: found["matches"] < NEEDED.get(name, 0) for name in values}
            texts = [
                f"{'' if value is None else '~' * few[name] + format(value, '.3f'):>9}"
                for name, value in values.items()
            ]
            yield f"    {NAMES[kind]:18}" + "".join(texts) + f"{found['matches']:>9,}"
    if any(run["measured"]["matches"] < least for least in NEEDED.values()):
        yield "  ~ fewer than ten matches lie beyond: it tells of single matches"
    yield from _burst_lines(run["burst"])
    yield from (f"saturated: {sentence}" for sentence in run["saturation"])
    yield from (f"note: {sentence}" for sentence in run["notes"])
    if run["unread"]:
        yield f"saturated: {counted(run['unread'], 'record')} not processed within the limit"
    yield (
        f"{counted(run['matches'], 'match')}, {run['at_the_end']:,} of them decided by the end of the input "
        f"only; the core finds {run['expected']:,}; differences: {len(run['differences']) or 'none'}"
    )
    yield from (f"  {sentence}" for sentence in run["differences"])


def _burst_lines(burst: Figures | None) -> Iterator[str]:
    if burst is None:
        return
    recovery, variation = burst["recovery_seconds"], burst["post_peak_variation"]
    yield (
        f"burst: latency at most {burst['maximum_peak_latency']:.2f} s; p99.9 in the peak "
        f"{burst['peak_degradation']:.2f} times that before; "
        + ("not recovered" if recovery is None else f"recovered after {recovery:.1f} s")
        + ("" if variation is None else f"; mean after that {variation:.2f} times that before")
    )
