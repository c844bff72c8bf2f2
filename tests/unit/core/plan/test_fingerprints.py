"""What checkpoints compare of rules stays the same from release to release, text by text."""

from __future__ import annotations

import pytest

from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.rules import load_rules
from tests.support.expression_cases import compiled

EVENTS = 'schema: "t TIMESTAMP, kind STRING, x BIGINT, y DOUBLE, k STRING", event_time: t'
TIES = f"{EVENTS}, tie_break: [x, k]"
SECONDS = 'schema: "t BIGINT, kind STRING, x BIGINT, k STRING", event_time: t, time_unit: s'
PAIR = "pattern: {sequence: [{a: kind = 'a'}, {b: kind = 'b'}]}"
SPAN = "span: {open: kind = 'a', close: kind = 'b' and x > open.x and y < open.y, within: 90 min}"
GROUPS = (
    "pattern: {sequence: [{name: a, when: x > 0, times: 3}, {p: x < 0}, {name: b, when: x > 1, times: 2..5}, "
    "{q: x < 1}, {name: c, when: x > 2, times: 1+}, {r: x < 2}, {name: d, when: x > 3, times: 0..1}, "
    "{s: x < 3}]}"
)
OPERATOR = "operator: 'operators:total', emit: {total: BIGINT}"

# a name: (events, rule, fingerprint)
RULES = {
    "pattern": (EVENTS, PAIR, "81bac4de5cab24cce640f738ce6de7801250196928267a0662d4dd6fd2f64cc2"),
    "one step": (
        EVENTS,
        "pattern: {sequence: [{a: x > 0}]}",
        "d0ae797cbb51b19598cf53e7437422fe6e946f48ec2707e152848d570f58269d",
    ),
    "filter": (
        EVENTS,
        f"{PAIR}, filter: x > 0 and not (y < 1.5 or k is null)",
        "887d76889adefcf6828ea37377803693989f3da09cfe9d1638e3e8af6c93ab49",
    ),
    "keys": (
        EVENTS,
        f"{PAIR}, partition_by: [k, x]",
        "4828cb3dfb41f5dcb301d99043b63e497c5b5dc90b9c07baa8d076b037843125",
    ),
    "forgotten keys": (
        EVENTS,
        f"{PAIR}, partition_by: [k, x], forget_key_after: 90 min",
        "0b8d626ccaf2bec79f9976afa13cc1f4d6cfb437722f0e701479058bdca20ba4",
    ),
    "where": (
        EVENTS,
        f"{PAIR}, where: b.x > a.x and b.y >= a.y + 1, within: 1500 ms",
        "cc3c7a74fa6a6eaa30e70b6ac2ef049c980e0c1cf50428420062f371d8c6a969",
    ),
    "within a time": (
        EVENTS,
        f"{PAIR}, within: 10 min",
        "7c817caa42425196369260bbbe9943d2f3dcc2d9f3f534173ba51000ccc92077",
    ),
    "within events": (
        EVENTS,
        f"{PAIR}, within: 1000 events",
        "f6154effef67dfeee136dd7907039cb4d8e1b41337e01aea4eea93098c1ea76a",
    ),
    "groups": (
        EVENTS,
        f"{GROUPS}, within: 10 min",
        "c2b2bd998659e48c336bb95bcd40596568b0f9283b4097e0055edad75a15c67b",
    ),
    "close": (
        EVENTS,
        f"{PAIR}, within: 1 d, close: window",
        "40adf9b1a1daa368dd63c814da523b37d3e1cb0c2524486e5433d3b1925ae86f",
    ),
    "merge": (
        EVENTS,
        f"{PAIR}, merge: detection",
        "c76423a8ae00ee22687773432107d1d4d3b7d0568ad43b4b200c4647e791e80d",
    ),
    "emit": (
        EVENTS,
        f"{PAIR}, emit: {{rise: b.x - a.x, who: 'concat(a.k, b.k)'}}",
        "9ae475d053ec121d3c1b1114045ab723605b6f29ea542cf4735f90e3a992df05",
    ),
    "tie_break": (TIES, PAIR, "ca5d57416328cae630c5f3f33e9544e8a39e74e777409a537edbd1d23e3d5240"),
    "time unit": (SECONDS, PAIR, "dae6886a1c0f6d385ebb87cdefa8b2999725267df30b94d2717db0f0f679c7e0"),
    "span of predicates": (
        EVENTS,
        f"{SPAN}, {OPERATOR}",
        "8a7f916811473d39f01a33dbb749992da8a48e1d14f14be113cc941c5662976a",
    ),
    "span on a grid": (
        EVENTS,
        f"span: {{every: 10 s, size: 1 min}}, {OPERATOR}",
        "ae15a8b8a5da8f79fa67b83c616f7422c364800bd85090194bb895db28aaba50",
    ),
    "span of events": (
        EVENTS,
        f"span: {{every: 5 events, size: 20 events}}, {OPERATOR}",
        "2e68ff3f8e945e6055884eec098dde924d4a73b6f55e32b5dcbae6cb76b863e1",
    ),
    "pattern in a span": (
        EVENTS,
        f"{SPAN}, {PAIR}, context: 'latest, zero'",
        "df3111523c9ca027a0d13d3b8f0f5cb46023b544627e3e4e28bdcd75a4970181",
    ),
    "aggregates": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'all, selected', emit: {{n: count(b), top: max(b.y)}}",
        "187e2b41069806f3689be070ffafb0effc9822f72d2892728332005163b77fa1",
    ),
    "each, zero": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'each, zero'",
        "3999b1a35d15153d7150e8c3f6d4826840dd5e92e8d2519ce31852c334c2bfeb",
    ),
    "latest, zero": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'latest, zero'",
        "daa619ea71067dbc0b8bb351c75f32b79c1f00c065e8659a93619fe3a3d8715d",
    ),
    "next, zero": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'next, zero'",
        "4c3447654201cf89eb63ab63884c990a4508cc1ad6b04747412272c22d629d14",
    ),
    "earliest, zero": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'earliest, zero'",
        "b76a637e17052598ab14bd38b4e9912831b434a93fda1533dddbee2757ef940f",
    ),
    "each, selected": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'each, selected'",
        "25cd5686af7713292661dc45c779a793f578c82f5094e94e24c4cdc5f560b551",
    ),
    "latest, selected": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'latest, selected'",
        "61a2319af934aca41b027f3ffb12605e66337cb9cb7b24f9fcf5218b141c9039",
    ),
    "next, selected": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'next, selected'",
        "66f62c67d09f7c6350baa5c05f8ad05f428bb56bca48c087dd62e3289c58e008",
    ),
    "earliest, selected": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'earliest, selected'",
        "d2a3691239ffdc434b3db0fc2770508a8eaf294bbe5c3dec759467c206cf65ce",
    ),
    "all, selected": (
        EVENTS,
        f"{PAIR}, within: 1 h, context: 'all, selected'",
        "cfe2d38725e1bdb0aca6a29d3204ce55da051d6c74470e336fe78953ed94c4da",
    ),
}


def plan_of(events: str, *rules: str) -> Plan:
    listed = "".join(f"  - {{name: r{number}, {rule}}}\n" for number, rule in enumerate(rules))
    return build_plan(load_rules(f"events: {{{events}}}\nrules:\n{listed}"), order=OrderSpec())


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_the_fingerprint_that_checkpoints_keep(name: str) -> None:
    events, rule, kept = RULES[name]
    (planned,) = plan_of(events, rule).rules
    assert planned.fingerprint == kept


def test_bits_have_the_names_that_states_keep() -> None:
    plan = plan_of(EVENTS, f"{PAIR}, filter: x > 0", f"{SPAN}, {OPERATOR}")
    assert plan.bit_names == ("kind = 'a'", "kind = 'b'", "x > 0", "rule r0 since 0", "rule r1 since 0")


# as a rule file writes it: as checkpoints keep it
EXPRESSIONS = {
    "i = j": "i = j",
    "i = x": "cast(i as double) = x",
    "i != 3": "i <> 3",
    "x < -0.0": "x < -0.0",
    "x <= y": "x <= y",
    "d < t": "cast(d as timestamp) < t",
    "i <=> j": "i <=> j",
    "i is distinct from j": "not (i <=> j)",
    "x is not null": "not (x is null)",
    "p is true": "p <=> true",
    "p and null": "p and cast(null as boolean)",
    "not (p and q or i > 3)": "not ((p and q) or i > 3)",
    "p and q and i > 3": "p and q and i > 3",
    "i not between j and 60": "not (i >= j and i <= 60)",
    "i not in (1, null)": "not (i in (1, cast(null as bigint)))",
    "s in ('a', 'EWR', '')": "s in ('a', 'EWR', '')",
    "i * 3 - j": "(i * 3) - j",
    "i - (j - 3)": "i - (j - 3)",
    "i / j": "cast(i as double) / cast(j as double)",
    "-5 % 3": "-5 % 3",
    "-(-i)": "-(-i)",
    "-9223372036854775808": "-9223372036854775808",
    "1e300 * x": "1e+300 * x",
    "greatest(i, x, 3)": "greatest(cast(i as double), x, 3.0)",
    "nullif(x, 0)": "case when (x = 0.0) then cast(null as double) else x end",
    "case i when 1 then 'one' else s end": "case when (i = 1) then 'one' else s end",
    "if(p, i, j)": "case when p then i else j end",
    "s || z": "concat(s, z)",
    "substring(s, 1, 2)": "substring(s, 1, 2)",
    "s not like 'E_R'": "not (s like 'E_R')",
    r"s = 'it\'s'": r"s = 'it\'s'",
    r"concat(s, '\\')": r"concat(s, '\\')",
    "year(d)": "year(d)",
    "timestamp '2013-01-01T12:00:00.5+02:00'": "timestamp '2013-01-01 10:00:00.500000'",
    "date '1969-12-31'": "date '1969-12-31'",
    "null is null": "null is null",
    "`odd ``name```": "`odd ``name```",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_has_the_text_that_checkpoints_keep(text: str) -> None:
    assert canonical_text(compiled(text)) == EXPRESSIONS[text]


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        *((0, "0 d"), (1, "1 us"), (1_500, "1500 us"), (2_000, "2 ms"), (90_000_000, "90 s")),
        *((5_400_000_000, "90 min"), (3_600_000_000, "1 h"), (604_800_000_000, "7 d")),
    ],
)
def test_a_duration_has_the_text_that_checkpoints_keep(time_us: int, text: str) -> None:
    assert canonical_duration(time_us) == text
