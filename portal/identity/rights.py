"""What a caller may do with slices and what belongs to all of them, as refusals with a way on. Pure.

What a caller may not see answers 404, as if it were not there; what they see and may not change 403.
Held by tests/portal/identity/test_rights.py and tests/portal/test_matrix.py.
"""

from __future__ import annotations

from portal.http.errors import forbidden, not_found
from portal.identity.callers import Caller
from portal.views.view import View
from schemas.documents.slice import SliceSpec

WORKSPACE = "workspace"
"""What the API calls a slice."""


def seen_slice(view: View, caller: Caller, name: str) -> SliceSpec:
    """The slice, for whoever may look into it; ApiError 404."""
    spec = view.wanted.slices.get(name)
    if spec is None or not caller.may_see(name):
        raise not_found(WORKSPACE, name)
    return spec


def check_admin(caller: Caller, doing: str) -> None:
    """ApiError 403 unless an admin asks; `doing` ends the sentence "only admins …"."""
    if not caller.is_admin:
        raise forbidden(f"only admins {doing}; {_who(caller)}")


def check_owner(caller: Caller, name: str, doing: str) -> None:
    """ApiError 403 unless an owner of that slice or an admin asks."""
    if not caller.is_admin and name not in caller.actor.owns:
        raise forbidden(f"only owners of workspace {name} and admins {doing}; {_who(caller)}")


def check_member(caller: Caller, name: str, doing: str) -> None:
    """ApiError 403 unless somebody asks who works in that slice, with a key that is for more than reading."""
    if name not in caller.actor.member_of:
        raise forbidden(f"only members of workspace {name} {doing}; {_who(caller)}")


def _who(caller: Caller) -> str:
    """By what the caller is less than that: the key's role counts where there is a key."""
    if not caller.key:
        return f"you are {caller.email}"
    roles = ", ".join(sorted({grant.role for grant in caller.grants})) or "none"
    return f"you are {caller.email} with the key {caller.key} of role {roles}"
