"""Who asks, and what they may. Pure.

A key carries a role and a scope; its caller has what they let through of the rights that the manifests give the person,
never more: whoever steals a Viewer's key reads, and a robot that is no member files nothing. Who logs in through the
identity provider has all that the manifests give them, and beside it what `groups` of project.yaml gives their groups.

Held by tests/portal/identity/test_callers.py and tests/portal/test_matrix.py:
  * by a key nobody may more than the person, nor more than the key's role and scope;
  * a group never makes an admin, and never more than its role in its slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from reconciler.model.evidence import Actor
from schemas.documents.apikey import Role
from schemas.documents.project import GroupGrant
from schemas.status.judgements import TrustRecord

EVERYWHERE: frozenset[str] | None = None
"""Scope of what is good for the whole project."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key or a group carries."""

    role: Role
    slices: frozenset[str] | None = EVERYWHERE

    def covers(self, slice_: str) -> bool:
        """Whether it is good for that slice."""
        return self.slices is None or slice_ in self.slices


_OWNING: tuple[Role, ...] = ("Owner",)
_WORKING: tuple[Role, ...] = ("Owner", "Editor")
_READING: tuple[Role, ...] = ("Owner", "Editor", "Viewer")

ALL_OF_ONES_OWN = (Grant("Owner"),)
"""What somebody's own login carries: whatever the manifests let them do."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose identity was shown."""

    email: str
    name: str
    grants: tuple[Grant, ...]
    actor: Actor
    """What the API lets them do: the rights below, and those of their groups."""
    judged: Actor
    """The rights by which a change of theirs counts on main by itself. Where main is verified its judge knows people
    and no groups: what somebody may by a group alone is brought as a proposal."""
    sees: frozenset[str] | None
    """Slices that they may look into; None: all of them."""
    key: str = ""
    """Name of the API key; empty: a person who logged in."""
    expires: datetime | None = None
    is_handed: bool = False
    """By an ID token that was brought, not by a login that began here."""
    again: Callable[[Any, datetime], Caller] | None = field(default=None, compare=False, repr=False)
    """What the same evidence shows in another view at another instant; ApiError 401 where it opens nothing then.
    None: nothing but this value is known."""

    @property
    def is_admin(self) -> bool:
        """Whether they may do what only admins may."""
        return self.actor.is_admin

    @property
    def counted(self) -> str:
        """As whom they are counted where everybody may do only so much."""
        return f"key {self.key}" if self.key else self.email

    @property
    def sees_any(self) -> bool:
        """Whether they may look into anything; else they are a stranger who shows who they are."""
        return self.sees is None or bool(self.sees)

    def may_see(self, slice_: str) -> bool:
        """Whether they may look into that slice."""
        return self.sees is None or slice_ in self.sees


def caller_of(
    person: Actor,
    name: str,
    grants: Collection[Grant],
    known: Collection[str],
    key: str = "",
    expires: datetime | None = None,
) -> Caller:
    """What the grants let through of a person's rights; `known` are all slices there are.

    An admin's Editor key is a member's of every slice in its scope; only an Owner of the whole project is an admin.
    """
    ordered = tuple(grants)
    works = frozenset(known) if person.is_admin else person.member_of
    sees = (
        None
        if person.is_admin and any(g.slices is None for g in ordered)
        else frozenset(s for s in works if any(g.covers(s) for g in ordered))
    )
    actor = _narrowed(person, ordered, works)
    return Caller(person.email, name, ordered, actor, actor, sees, key, expires)


def _narrowed(person: Actor, grants: Collection[Grant], works: Collection[str]) -> Actor:
    may_own = frozenset(_where(_OWNING, grants, works if person.is_admin else person.owns))
    # A key makes keys only where it carries all of its person: whoever steals an Editor's makes no Owner's.
    whole = [g.slices for g in grants if g.role == "Owner"]
    scope = None if None in whole else frozenset[str]().union(*(s for s in whole if s is not None))
    is_admin = person.is_admin and None in whole
    return replace(
        person,
        own_in=_within(person.own_in, scope),
        is_admin=is_admin,
        owns=may_own,
        member_of=frozenset(_where(_WORKING, grants, works)) | may_own,
        handle=person.handle if is_admin else "",
    )


def _within(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """What is in both; None is everything."""
    return other if one is None else one if other is None else one & other


def _where(roles: Collection[Role], grants: Collection[Grant], slices: Collection[str]) -> Iterator[str]:
    """Of these slices those for which one of the grants has such a role."""
    return (s for s in slices if any(g.role in roles and g.covers(s) for g in grants))


def with_groups(
    caller: Caller, groups: Collection[Grant], known: Collection[str], trust: TrustRecord | None
) -> Caller:
    """The same caller with what their groups give on top; nobody is an admin by a group. `trust`: `facts.trust`."""
    owns = caller.actor.owns.union(_where(_OWNING, groups, known))
    works = caller.actor.member_of.union(_where(_WORKING, groups, known))
    seen = frozenset(_where(_READING, groups, known))
    everywhere = caller.sees is None or any(g.slices is None for g in groups)
    actor = replace(caller.actor, owns=owns, member_of=works)
    return replace(
        caller,
        grants=(*caller.grants, *groups),
        actor=actor,
        judged=actor if trust is None else caller.judged,
        sees=None if everywhere or caller.sees is None else caller.sees | seen,
    )


def grants_of(groups: Collection[str], rules: Collection[GroupGrant]) -> tuple[Grant, ...]:
    """What the project gives to the members of these groups."""
    return tuple(
        Grant(rule.role, frozenset(rule.slices) if rule.slices else EVERYWHERE)
        for rule in rules
        if rule.group in groups
    )


def rights_of(caller: Caller) -> tuple[Grant, ...]:
    """What a caller may, from most to least; no slice stands in two of them."""
    if caller.is_admin:
        return (Grant("Owner"),)
    owns, works = caller.actor.owns, caller.actor.member_of - caller.actor.owns
    reads = None if caller.sees is None else caller.sees - caller.actor.member_of
    found = (Grant("Owner", owns), Grant("Editor", works), Grant("Viewer", reads))
    return tuple(grant for grant in found if grant.slices is None or grant.slices)


def called(name: str, email: str) -> str:
    """A name as a commit can carry it on one line: printable, without `<` and `>`; else the address before its @."""
    kept = "".join(c if c.isprintable() and c not in "<>" else " " for c in name)
    return " ".join(kept.split())[:100].strip() or email.partition("@")[0]


Way = Literal["pushed", "pull-request", "branch", "accepted"]
"""How a change reached the repository: on main; asking to be merged; or it will be, follow it."""
