"""The caller of a request and their rights. Pure.

A key carries a role and a scope. Its caller has at most the rights that the manifests give the person, limited by role
and scope: a stolen Viewer key can only read, and a robot that is not a member files nothing. A person who logs in has
all rights that the manifests give them, plus those that `groups` of project.yaml gives their groups.

Held by tests/portal/identity/test_callers.py and tests/portal/test_matrix.py:
  * a key never gives more than the person, the role and the scope allow;
  * a group never makes an admin, and never gives more than its role in its slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from reconciler.model.evidence import Actor
from reconciler.store.trailers import person_name
from schemas.documents.apikey import Role
from schemas.documents.project import GroupGrant
from schemas.status.judgements import TrustRecord

EVERYWHERE: frozenset[str] | None = None
"""Scope: the whole project."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The role and scope of a key or a group."""

    role: Role
    slices: frozenset[str] | None = EVERYWHERE

    def covers(self, slice_: str) -> bool:
        return self.slices is None or slice_ in self.slices

    def includes(self, scope: Collection[str]) -> bool:
        """Whether it covers that scope of a key; an empty one is the whole project."""
        return self.slices is None or (bool(scope) and self.slices.issuperset(scope))


_OWNING: tuple[Role, ...] = ("Owner",)
_WORKING: tuple[Role, ...] = ("Owner", "Editor")
_READING: tuple[Role, ...] = ("Owner", "Editor", "Viewer")

ALL_OF_ONES_OWN = (Grant("Owner"),)
"""The grant of a person's own login: all that the manifests allow them."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An identified caller."""

    email: str
    name: str
    grants: tuple[Grant, ...]
    actor: Actor
    """What the API allows them: the rights below, plus those of their groups."""
    judged: Actor
    """The rights by which their change counts on main by itself. A verified main knows people, not groups: a change
    that only a group allows is brought as a proposal."""
    sees: frozenset[str] | None
    """Slices they may see; None: all."""
    key: str = ""
    """Name of the API key; empty: a person who logged in."""
    expires: datetime | None = None
    is_handed: bool = False
    """By an ID token that the client brought, not by a login that began here."""
    again: Callable[[Any, datetime], Caller] | None = field(default=None, compare=False, repr=False)
    """The caller that the same evidence shows in another view at another time; ApiError 401 if it is not valid then.
    None: only this value is known."""

    @property
    def is_admin(self) -> bool:
        return self.actor.is_admin

    @property
    def counted(self) -> str:
        """The name under which requests are counted for rate limits."""
        return f"key {self.key}" if self.key else self.email

    @property
    def sees_any(self) -> bool:
        """Whether they may see any slice."""
        return self.sees is None or bool(self.sees)

    def may_see(self, slice_: str) -> bool:
        return self.sees is None or slice_ in self.sees


def caller_of(
    person: Actor,
    name: str,
    grants: Collection[Grant],
    known: Collection[str],
    key: str = "",
    expires: datetime | None = None,
) -> Caller:
    """A person's rights as far as the grants allow them; `known` are all slices.

    An admin with an Editor key has a member's rights in every slice of its scope; only an Owner key for the whole
    project makes an admin.
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
    # A key makes other keys only if it has all rights of its person: a stolen Editor key makes no Owner key.
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
    """The intersection; None is everything."""
    return other if one is None else one if other is None else one & other


def _where(roles: Collection[Role], grants: Collection[Grant], slices: Collection[str]) -> Iterator[str]:
    """The slices in which one of the grants has one of these roles."""
    return (s for s in slices if any(g.role in roles and g.covers(s) for g in grants))


def with_groups(
    caller: Caller, groups: Collection[Grant], known: Collection[str], trust: TrustRecord | None
) -> Caller:
    """The caller plus the rights of their groups; a group never makes an admin. `trust`: `facts.trust`."""
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
    """What the project grants to the members of these groups."""
    return tuple(
        Grant(rule.role, frozenset(rule.slices) if rule.slices else EVERYWHERE)
        for rule in rules
        if rule.group in groups
    )


def rights_of(caller: Caller) -> tuple[Grant, ...]:
    """The caller's rights, strongest first; each slice is in one of them."""
    if caller.is_admin:
        return (Grant("Owner"),)
    owns, works = caller.actor.owns, caller.actor.member_of - caller.actor.owns
    reads = None if caller.sees is None else caller.sees - caller.actor.member_of
    found = (Grant("Owner", owns), Grant("Editor", works), Grant("Viewer", reads))
    return tuple(grant for grant in found if grant.slices is None or grant.slices)


def called(name: str, email: str) -> str:
    """A name fit for a commit: one printable line without `<` and `>`; else the local part of the address."""
    return person_name(name) or email.partition("@")[0]


Way = Literal["pushed", "pull-request", "branch", "accepted"]
"""How a change reaches the repository: on main; as a proposal; or accepted and still to be pushed."""
