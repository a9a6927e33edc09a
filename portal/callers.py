"""Who asks, and what they may. Pure.

A key or a group carries a role and a scope; a caller has what that role lets through of the rights that the manifests
give the person, never more: whoever steals a Viewer's key reads, and a robot that is no member files nothing.

Held by tests/portal/test_callers.py and tests/portal/test_matrix.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from reconciler.trust.model import Actor
from schemas.apikey import Role

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


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose identity was shown."""

    email: str
    name: str
    grants: tuple[Grant, ...]
    actor: Actor
    """The person's rights to change files, narrowed to what the grants let through."""
    sees: frozenset[str] | None
    """Slices that they may look into; None: all of them."""
    key: str = ""
    """Name of the API key; empty: a person who logged in."""
    expires: datetime | None = None

    @property
    def is_admin(self) -> bool:
        """Whether they may do what only admins may."""
        return self.actor.is_admin

    def may_see(self, slice_: str) -> bool:
        """Whether they may look into that slice."""
        return self.sees is None or slice_ in self.sees


def caller_of(
    person: Actor, name: str, grants: Collection[Grant], known: Collection[str], **more: str | datetime | None
) -> Caller:
    """What the grants let through of a person's rights; `known` are all slices there are.

    An admin's Editor key is a member's of every slice in its scope; only an Owner of the whole project is an admin.
    """
    ordered = tuple(grants)
    works = frozenset(known) if person.is_admin else person.member_of
    may_edit = frozenset(s for s in works if any(g.role != "Viewer" and g.covers(s) for g in ordered))
    may_own = frozenset(
        s
        for s in (works if person.is_admin else person.owns)
        if any(g.role == "Owner" and g.covers(s) for g in ordered)
    )
    is_admin = person.is_admin and any(g.role == "Owner" and g.slices is None for g in ordered)
    sees = (
        None
        if person.is_admin and any(g.slices is None for g in ordered)
        else frozenset(s for s in works if any(g.covers(s) for g in ordered))
    )
    actor = replace(
        person,
        is_admin=is_admin,
        owns=may_own,
        member_of=may_edit | may_own,
        handle=person.handle if is_admin else "",
    )
    return Caller(person.email, name, ordered, actor, sees, **more)  # type: ignore[arg-type]  # key and expires


Way = Literal["pushed", "pull-request", "branch", "accepted"]
"""How a change reached the repository: on main; asking to be merged; or it will be, follow it."""
