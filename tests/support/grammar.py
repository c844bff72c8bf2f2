"""The grammar of random rules: texts of the rule language, which hypothesis or a seed chooses among.

A line has a symbol and its alternatives, of which ``3* x`` counts thrice; several lines may have one symbol.
In an alternative ``<symbol>`` is one of that symbol, or what the caller gives under the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Choose = Callable[[Sequence[str]], str]

# `event` is a condition on one event: mostly one type, and some overlap with others; `rare` is what few are.
# `value` is a number and `key` a text of one component: <g> is its name. `pair` and `triple` compare <a>, <b>
# and <c>, numbers of components, whose texts are <a text> and so on. `back` is how far `prev` goes back.
GRAMMAR = """
n: 0 | 1 | 2
few: 1 | 2 | 3
back: 4* | , 2 | , 2 | , 3
near: | , 2
xy: x | y
mostly x: 3* x | y
letter: a | b | c
type: type = '<letter>'
wide: type in ('a', 'b') | type in ('b', 'c') | type in ('a', 'c', 'd') | type in ('a', 'b', 'c')
typed: <type> | <wide>
event: 6* <type> | 6* <wide> | <typed> and x = <n> | <typed> and x < <n> | <typed> and x >= <n>
event: (x = <n> or y is null)
rare: 4* <type> and x = <n> | 2* <type> | type = 'd'
compared: 3* = | < | > | <= | >= | <>
often: 2* >= | 2* <= | > | < | <> | =
low: = | 2* <= | 3* >= | >
order: < | <= | <>

value of one: 2* <g>.x | <g>.y
value of group: 2* count(<g>) | <total>(<g>.<mostly x>)
total: sum | min | max | first | last
key of one: <g>.k
key of group: first(<g>.k) | last(<g>.k) | min(<g>.k) | max(<g>.k)
value before: <g>.<mostly x> | prev(<g>.<mostly x><back>)
key before: <g>.k | prev(<g>.k<back>)

pair: 4* <a> = <b> | 2* <a text> = <b text> | <a> <order> <b> | <b> <order> <a> | (<a> = <b> or <a> is null)
pair: <a> + <b> <= <few> | abs(<a> - <b>) < <few>
triple: <a> + <b> = <c> | <a> + <b> <compared> <c> | (<a> - <b> <= <c> or <c> is null)
equal pair: <a> = <b>
sum: <a> + <b> <= 3
by columns: coalesce(<pair>, false) | coalesce(<a> <= <b>, true)

whole group: 2* count(<g>) <low> <n> | 2* sum(<g>.<xy>) <low> <n> | first(<g>.x) <compared> last(<g>.x)
whole group: (first(<g>.x) is null or first(<g>.x) >= 1) | avg(<g>.x) <= 1.0 | min(<g>.z) >= <n>.0
whole group: max(<g>.z) >= <n>.0 | <of all> >= 1
of all: count(<g>.y) | stddev(<g>.x) | count(distinct <g>.k) | median(<g>.y) | percentile(<g>.x, 0.75)
of all: mode(<g>.y) | sum(<g>.x + <g>.y) | count(distinct concat(<g>.k, <g>.type))

end: 3* last | first
further: 3* <xy> <often> <end>(<g>.x) | sum(<g>.<xy>) + x <order> <few> | <xy> <often> min(<g>.<xy>)
further: <xy> <often> max(<g>.<xy>) | <xy> <= avg(<g>.<xy>) | <xy> >= avg(<g>.<xy>) | count(<g>) <= <few>
further: type <> <end>(<g>.type) | k = <end>(<g>.k) | id <> <end>(<g>.id) | abs(<xy> - last(<g>.<xy>)) <= 1
further: <of all> <often> 1 | last(<g>.x) <compared> prev(<mostly x><near>)
further: coalesce(x <often> last(<g>.x), true)
further of opened: <further> | last(<g>.<xy>) <> open.x
until: 4* <rare> | 2* y >= <few> | 2* <event> | <before>

before: 6* x <compared> prev(<mostly x><back>)
before: prev(type<back>) = '<letter>' | prev(type<back>) <> '<letter>'
before: prev(id<back>) is null | prev(k<back>) is null | prev(x<back>) is null | 2* k <=> prev(k<back>)
before: 2* x <compared> prev(x<back>) + prev(<mostly x><back>)
opened: 3* x <compared> open.<xy> | k = open.k | id <> open.id | open.<xy> <> 1 | open.<xy> <= 1
opened pair: <a> + <b> <compared> open.<xy> | (<a> = <b> or <a> <compared> open.<xy>)
opened pair: (<a> = <b> or open.k <> 'u')
opened group: <a> <compared> open.<xy> | (<a> <compared> open.<xy> or open.k <> 'u')
joined: 2* <old> and <new> | 2* <new> and <old> | (<old> or <new>) | <new>

same: k | 2* x | y | z | type
equally forbidden: 3* <m>.<attribute> = <p>.<attribute> | <m>.x = <p>.y | <p>.x = <m>.x + 1
forbidden: 2* <equally forbidden> | <m>.<xy> <compared> <p>.<xy> | abs(<m>.<xy> - <p>.<xy>) < <few>
forbidden: (<m>.<xy> = <p>.<xy> or <m>.x is null) | <m>.<xy> + <p>.<xy> <= <n>

seconds: 3* 100 | 3* 8 | 2* 5 | 3 | 2 | 0
events: 2* 12 | 2* 8 | 6 | 5 | 4 | 3 | 2 | 1
window: 4* <seconds> s | 2* <events> events | {time: <seconds> s, events: <events>}
short seconds: 9 | 7 | 5 | 4 | 3 | 12
short events: 9 | 7 | 6 | 5 | 4 | 3
short window: 3* <short seconds> s | <short events> events | {time: <short seconds> s, events: <short events>}
short window: <window>
time: <seconds> s

closing: x = open.x | y = open.y | 2* x > open.y
close: <event> | 2* <closings> | 2* <event> and <closings>
closings: 2* <closing> | <closing> and <closing>
opened span: {open: "<event>", close: "<close>", within: <length> s}
length: 100 | 2* 5 | 3 | 1 | 0
grid span: {every: <few> s, size: <size>} | {every: 5 s, size: <size>}
size: 10 s | 5 s | 2 s | 1 us
count span: {every: <few> events, size: <count> events} | {every: 4 events, size: <count> events}
count: 5 | 6 | 8 | 3 | 1
session span: {gap: <gap> s} | {gap: <gap> s, within: <longest>}
gap: 2* 1 | 2 | 0 | 3 | 5
longest: 5 s | 3 s | 2 s | 1 us | 0 s
span: <opened span> | <grid span> | <count span> | <session span>
opened span of values: {open: "<event> and x >= 0", close: "<close> and x >= 0", within: <length> s}
opened span by columns: {open: "<event>", close: "<closing> and coalesce(<closing>, false)", within: 5 s}

having: 3* <one having> | <having> and <having> | (<having> or <having>) | not (<having>)
one having: count(*) >= <few> | sum(x) <compared> <n> | min(x) < max(y) | first(x) <compared> last(x)
one having: count(x) <compared> count(y) | max(type) <> 'c' | avg(z) < stddev(z) | stddev(y) is null
filter: x < 2 | type <> 'd'
keys: 7* | 2* k | k, y
lasting keys: 3* k | k, y | y, k
times: 2* 1+ | 1..3 | 2+ | 1..2 | 2..3 | 2
optional: 0..1 | 0+ | 0..2
inner times: <times> | <optional>
last times: 2* 0..1 | 0+ | 0..2
moving: 3* <event> | x < prev(x<near>) | x >= prev(x<near>) | x = prev(x<near>)
"""

# what `emit` may have of a group, or of any component in *all, selected*; of a span; and of values of a span
OF_GROUP = """n: count(<g>) | sum_x: sum(<g>.x) | avg_x: avg(<g>.x) | min_y: min(<g>.y) | max_z: max(<g>.z)
max_k: max(<g>.k) | first_y: first(<g>.y) | last_id: last(<g>.id) | known: count(<g>.y)
spread: stddev(<g>.x) | kinds: count(distinct <g>.k) | middle: median(<g>.y) | high: percentile(<g>.x, 0.75)
usual: mode(<g>.y) | both: sum(<g>.x + <g>.y) | pairs: count(distinct concat(<g>.k, <g>.type))
listed: "collect_list(<g>.y, 2)"
"""
OF_SPAN = """n: count(*) | known: count(x) | total: sum(x) | mean: avg(x) | least: min(y) | greatest: max(k)
first_y: first(y) | last: last(id) | last_key: last(k) | began_at: first(time) | spread: stddev(x)
flow: sum(z) | level: avg(z) | noise: stddev(z) | peak: max(z) | both: sum(x + y) | mean_of_both: avg(x + y)
least_of_both: min(x + y) | last_of_both: last(x + y) | n_of_both: count(x + y)
spread_of_both: stddev(x + y)
"""
OF_VALUES = """kinds: count(distinct k) | levels: count(distinct z) | middle: median(x) | usual: mode(k)
high: "percentile(z, 0.9)" | usual_z: mode(z) | first_keys: "collect_list(k, 3)"
pairs: "count(distinct concat(k, type))"
"""


def _alternatives(text: str) -> list[str]:
    found = list[str]()
    for each in text.split("|"):
        times, star, one = each.strip().partition("*")
        found += [one.strip()] * int(times) if star and times.isdigit() else [each.strip()]
    return found


def symbols_of(text: str) -> dict[str, list[str]]:
    """The alternatives of each symbol of a grammar."""
    symbols = dict[str, list[str]]()
    for line in filter(None, text.splitlines()):
        symbol, _, told = line.partition(":")
        symbols.setdefault(symbol, []).extend(_alternatives(told))
    return symbols


SYMBOLS = symbols_of(GRAMMAR)


@dataclass(frozen=True)
class Words:
    """Says what a symbol stands for; `choose` is where chance comes from."""

    choose: Choose
    symbols: dict[str, list[str]] = field(default_factory=lambda: SYMBOLS)

    def say(self, symbol: str, **given: str | Callable[[], str]) -> str:
        """One of a symbol, with what is given in place of names that no symbol has."""
        return self.fill(self.choose(self.symbols[symbol]), **given)

    def fill(self, text: str, **given: str | Callable[[], str]) -> str:
        """The text with what its symbols stand for."""

        def said(found: re.Match[str]) -> str:
            told = given.get(found[1])
            if told is None:
                return self.say(found[1], **given)
            return told if isinstance(told, str) else told()

        return re.sub(r"<(\w[\w ]*)>", said, text)
