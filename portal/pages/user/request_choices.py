"""What a caller may do with a request now: the actions that the API would not refuse for its state. Pure.

Held by tests/portal/pages/test_request_choices.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from portal.http.errors import ApiError
from portal.identity.callers import Caller
from portal.identity.rights import check_member
from portal.vendor.gpr_answers import Found
from portal.vendor.gpr_filing import Path
from portal.views.view import View
from portal.writes.gpr_changes import check_edit

Choice = Literal["edit", "extend", "stop", "start", "release", "cancel", "restore", "again"]
_SPOILT = frozenset({"FileMissing", "InvalidFile", "EditRefused"})
"""Conditions that restoring the file ends."""
_TERMS: Mapping[Path, Any] = {("nodes",): 1}
_END: Mapping[Path, Any] = {("earlyRelease",): True}


def choices_of(view: View, caller: Caller, found: Found) -> frozenset[Choice]:
    """Empty for a caller who may only look."""
    if not _passes(check_member, caller, found.slice, "change requests there"):
        return frozenset()
    choices: set[Choice] = {"again"}
    waits, holds = _passes(check_edit, found, _TERMS), _passes(check_edit, found, _END)
    if waits or holds:
        choices.add("edit")
    if not ends(view, found):
        choices |= {"cancel"} if waits else {"release", "extend"} if holds else set()
        if holds and not found.spec.stopped:
            choices.add("stop")
    if waits and found.spec.stopped:
        choices.add("start")
    conditions = () if found.status is None else found.status.conditions
    if (waits or holds) and any(one.type in _SPOILT for one in conditions):
        choices.add("restore")
    return frozenset(choices)


def ends(view: View, found: Found) -> bool:
    """Whether its file on main asks for its end, which the controller may not have seen yet."""
    filed = view.wanted.filed.get(found.key)
    return filed is not None and (filed.ends or (filed.spec is not None and filed.spec.early_release))


def _passes(check: Callable[..., None], *about: Any) -> bool:
    try:
        check(*about)
    except ApiError:
        return False
    return True
