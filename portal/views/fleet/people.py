"""Everybody that the documents name: what each may do, and with which keys. Pure.

Held by tests/portal/pages/test_admin_pages.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from portal.vendor.key_models import KeyShown
from portal.views.view import View
from schemas.documents.base import Person


@dataclass(slots=True)
class Known:
    """One person, by address."""

    email: str
    handle: str = ""
    """Of an admin: the name of their approval files; empty: no admin."""
    signing_keys: int = 0
    """By which commits are known as theirs."""
    owns: list[str] = field(default_factory=list)
    member_of: list[str] = field(default_factory=list)
    keys: list[KeyShown] = field(default_factory=list)

    @property
    def may_approve(self) -> bool:
        """Requests that break a rule; never their own, unless the project says so."""
        return bool(self.handle)


def people(view: View, keys: Iterable[KeyShown]) -> list[Known]:
    """Admins first, then by address; `keys` without their secrets."""
    found: dict[str, Known] = {}

    def known(person: Person) -> Known:
        one = found.setdefault(person.email.lower(), Known(person.email))
        one.signing_keys = max(one.signing_keys, len(person.keys))
        return one

    for admin in view.wanted.project.admins:
        known(admin).handle = admin.handle
    for name, spec in sorted(view.wanted.slices.items()):
        for owner in spec.owners:
            known(owner).owns.append(name)
        for member in spec.members:
            known(member).member_of.append(name)
    for key in keys:
        found.setdefault(key.email.lower(), Known(key.email)).keys.append(key)
    return sorted(found.values(), key=lambda one: (not one.handle, one.email.lower()))
