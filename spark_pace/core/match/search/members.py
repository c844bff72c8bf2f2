"""Which member of a disjunction each event stands for: as columns of a stream, and in matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_pace.core.match.stream import Found, Stream
from spark_pace.core.plan.members import members_of, stands_column
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.tables import MASK, has_bit, with_column


def with_members(stream: Stream, pattern: Pattern) -> Stream:
    """The stream with a column for each member of a disjunction: which events stand for it.

    A stream without masks has the columns that conditions read.
    """
    members, events = members_of(pattern), stream.events
    if (
        not members
        or MASK not in events.column_names
        or stands_column(members[0].name) in events.column_names
    ):
        return stream
    for member in members:
        events = with_column(events, stands_column(member.name), has_bit(stream.mask, member.bit))
    return Stream(events, stream.starts)


def role_names(pattern: Pattern) -> list[str]:
    """The names of the roles in matches that `in_roles` gives: components, then members."""
    members = [member.name for member in members_of(pattern)]
    return [*(component.name for component in pattern.components), *members]


def roles_by_name(pattern: Pattern) -> Mapping[str | None, tuple[int, ...]]:
    """The roles that events of each component, or of each member, have in such matches."""
    roles: dict[str | None, tuple[int, ...]] = {}
    for index, name in enumerate(role_names(pattern)):
        roles[name] = (index,)
    for component in pattern.components:
        if component.members:
            roles[component.name] = tuple(roles[member.name][0] for member in component.members)
    return roles


def in_roles(found: Found, stream: Stream, pattern: Pattern) -> Found:
    """The matches with a role for each member: those of members follow those of components."""
    members = members_of(pattern)
    if not members:
        return found
    roles, mask = found.roles.copy(), stream.mask[found.members]
    number = {member.name: len(pattern.components) + place for place, member in enumerate(members)}
    for index, component in enumerate(pattern.components):
        for member in component.members:
            roles[(found.roles == index) & has_bit(mask, member.bit)] = number[member.name]
    return replace(found, roles=roles)
