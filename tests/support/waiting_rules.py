"""Rules of which many matches wait: from seeds, so that there are as many of each kind."""

from __future__ import annotations

from random import Random

from spark_pace.core.plan.rule import Rule
from tests.support.grammar import Words, symbols_of
from tests.support.loaded_rules import loaded

# `waiting` is an a and a b whose values fit, by chance with a group, or a c that may not, or need not, come;
# or spans from an event to one that has an equal value. In `forbidden` a negated component behind may forbid
# several candidates at a time. <length> is one number of seconds; a semicolon ends a line.
WAITING = symbols_of("""
waiting: 6* <keys>; <alone> | 3* <keys>; <in a span> | <keys>; span: <between>; emit: {n: count(*)}<having>
waiting: <keys>; span: <between>; <operator>
keys: 10* | 4* partition_by: [k] | 4* partition_by: [k, y] | <forgotten>, k] | <forgotten>]
forgotten: forget_key_after: <length> s; partition_by: [y
having: | ; where: sum(x) > min(y)
operator: operator: tests.support.operators:known; emit: {id: STRING, x: BIGINT}
between: {open: "<ab>", close: type = 'b' and x = open.x, within: <length> s}
ab: type = 'a' | type in ('a', 'b')
letter: a | b

alone: 2* <plain>; <open>; <within> | <group>; <any>; <within> | <not>; <open>; <within>
alone: <optional>; <zero>; <within> | pattern: {conjunction: [<a>, <b>]}; where: <fit>; <unordered>; <within>
in a span: 2* <lasting>; span: <between> | 2* <lasting>; span: {every: 2 s, size: <short> s}
in a span: <lasting>; span: {gap: <gap> s, within: <length> s} | <inner>; <within>; span: {gap: <gap> s}
gap: 1 | 2 | 3
lasting: 3* <inner> | 6* <inner>; <within> | <plain>; context: each, zero; close: window; <within>
inner: <plain>; <any> | <group>; <any> | <not>; <any> | <optional>; <zero>
plain: pattern: {sequence: [<a>, <b>]}; where: <fit>
group: pattern: {sequence: [<a>, {name: g, when: type = '<bc>', times: <times>}, <b>]}; where: <fit>
not: pattern: {sequence: [<a>, <negated>]}; where: <fit>
negated: <c>, <b> | 2* <b>, <c>
optional: pattern: {sequence: [<a>, <b>, <last>, times: 0..1<ends>}]}; where: <fit> <taking>
optional: pattern: {sequence: [<a>, <b>, <last>, times: <more><ends>}]}; where: <fit>
a: {name: p, when: "<ab>"} | {name: p, when: type = 'a'}
b: {name: q, when: type = 'b'}
c: {name: c, when: type = 'c', not: true}
bc: b | c
times: 0+ | 1..2 | 1+
last: {name: l, when: type = 'c'
more: 0..2 | 0+
ends: 3* , until: type = '<letter>' | , follows: strict | 2*
fit: 2* p.x <sign> q.x | p.y <sign> q.y | p.k = q.k
sign: 2* = | < | <=
taking: | and first(l.x) <taken> <pq>.x
taken: = | <= | >
pq: p | q
within: within: <window>
window: 3* <length> s | {time: <length> s, events: <events>}
events: 2 | 3 | 4 | 5 | 6 | 7 | 8

open: 2* <any> | context: each, zero; close: window
any: 8* <next> | <zero> | <zero> | context: each, selected | context: latest, selected
any: context: all, selected | context: earliest, selected
next: context: next, selected | context: next, selected; merge: detection
zero: 4* <next> | 2* context: each, zero | 2* context: latest, zero | 2* context: next, zero
zero: context: earliest, zero
unordered: context: each, zero | context: latest, zero | context: earliest, zero | context: each, selected
unordered: context: latest, selected | context: all, selected | context: earliest, selected

forbidden: <merge>; <some keys>; <pattern>; within: <few> s; <context>; <span>
merge: 3* merge: selection | merge: detection
some keys: 2* | partition_by: [k]
pattern: pattern: {sequence: [<a>, <middle><b>, <c>]}; where: <fits>
middle: 2* | {name: m, when: type = '<letter>'},
fits: 2* <fit> | <fit> and c.k = p.k
few: 3 | 5 | 8
context: <unordered> | context: next, zero | context: next, selected | context: latest, zero
span: 3* | span: <between> | span: {every: 2 s, size: <length> s} | span: {gap: 2 s, within: <length> s}
""")


def waiting_rule(random: Random) -> Rule:
    """A rule whose matches may wait, with a key or without, that is not forgotten or is."""
    return rule_of("waiting", random, random.choice([3, 5, 8, 100]))


def forbidden_behind(random: Random) -> Rule:
    """A rule with a negated component in last place, which may forbid several candidates at a time."""
    return rule_of("forbidden", random, random.choice([5, 8, 12]))


def rule_of(symbol: str, random: Random, length: int) -> Rule:
    """One of the symbol, with windows of so many seconds."""
    told = Words(random.choice, WAITING).say(symbol, length=str(length), short=str(min(length, 8)))
    return loaded(told.replace(";", "\n"))
