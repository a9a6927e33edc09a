"""Checks of a caller's rights in a slice or the whole project, as refusals with advice. Pure.

What a caller may not see is 404, as if it did not exist; what they see but may not change is 403.
Held by tests/portal/identity/test_rights.py and tests/portal/test_matrix.py.
"""

from __future__ import annotations

from portal.http.errors import forbidden, not_found
from portal.identity.callers import Caller
from portal.views.view import View
from schemas.documents.slice import SliceSpec

WORKSPACE = "workspace"
"""The API's name for a slice."""


def seen_slice(view: View, caller: Caller, name: str) -> SliceSpec:
    """The slice, if the caller may see it; else ApiError 404."""
    spec = view.wanted.slices.get(name)
    if spec is None or not caller.may_see(name):
        raise not_found(WORKSPACE, name)
    return spec


def check_admin(caller: Caller, doing: str) -> None:
    """ApiError 403 unless the caller is an admin; `doing` completes the sentence "only admins …"."""
    if not caller.is_admin:
        raise forbidden(f"only admins {doing}; {_who(caller)}")


def check_owner(caller: Caller, name: str, doing: str) -> None:
    """ApiError 403 unless the caller is an owner of that slice or an admin."""
    if not caller.is_admin and name not in caller.actor.owns:
        raise forbidden(f"only owners of workspace {name} and admins {doing}; {_who(caller)}")


def check_member(caller: Caller, name: str, doing: str) -> None:
    """ApiError 403 unless the caller works in that slice, with a key that is more than read-only."""
    if name not in caller.actor.member_of:
        raise forbidden(f"only members of workspace {name} {doing}; {_who(caller)}")


def _who(caller: Caller) -> str:
    """The caller for a refusal, with key and role if there is a key: they may be the reason."""
    if not caller.key:
        return f"you are {caller.email}"
    roles = ", ".join(sorted({grant.role for grant in caller.grants})) or "none"
    return f"you are {caller.email} with the key {caller.key} of role {roles}"
