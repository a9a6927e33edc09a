"""Who may change what: one table of files and fields, and the function that applies it. Pure.

An actor's rights come from the tree *before* the change (`reconciler.trust.authority`); a signature or the
forge identified the actor. An unreadable file is judged by its path only: it has no effect, so changing it
needs the same right as deleting it. Anyone may change files that are not documents: they have no effect.

Held by tests/reconciler/trust/test_verdict.py and tests/reconciler/trust/test_policy_matrix.py;
docs/explain/security.md has the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.model.differing import differing
from reconciler.model.evidence import Actor, Denial
from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.gpr import GPR
from schemas.documents.notifications import Profile
from schemas.documents.slice import Slice
from schemas.documents.workspace import WorkspaceRequest
from schemas.reading.reader import rule_of
from schemas.rules.problems import quoted

What = Literal["create", "change", "delete"]

OWNERS_FIELDS = ("members", "description", "notifications")
"""The fields of a slice.yaml that its owners may change; all others need an admin: quota, limits, clusters,
owners, …
"""

Own = ApiKey | Profile
"""Documents that belong to the person they name."""

_SCOPE = (
    " (made by a service that may act for people on requests only: make this change yourself, or have the "
    "operator list the service's key as `service:<name>/all`)"
)


@dataclass(frozen=True, slots=True)
class Change:
    """What one change does to one file, compared with what was authorised before it."""

    path: str
    what: What
    old: Document | None = None  # as authorised before; None: missing or unreadable
    new: Document | None = None  # None: deleted or unreadable
    signed_by: str = ""
    """For an approval: handle of the admin whose signature in the file is valid; empty: none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: files, operations, and who may do them."""

    kind: str
    path: str
    what: str
    who: str


TABLE = (
    Row(
        "GPR",
        "slices/<slice>/gprs/<name>.yaml",
        "create, change, delete",
        "members and owners of the slice, admins",
    ),
    Row("GPR", "", "the field `move`", "admins"),
    Row(
        "Workload",
        "slices/<slice>/workloads/<name>.yaml",
        "everything",
        "members and owners of the slice, admins",
    ),
    Row(
        "Endpoint",
        "slices/<slice>/endpoints/<name>.yaml",
        "everything",
        "members and owners of the slice, admins",
    ),
    Row(
        "Slice",
        "slices/<name>/slice.yaml",
        "the fields `members`, `description` and `notifications`",
        "owners of the slice, admins",
    ),
    Row("Slice", "", "create, delete, every other field", "admins"),
    Row(
        "Approval",
        "approvals/<slice>/<gpr>/<name>.yaml",
        "create",
        "the admin whose handle it is; anyone, if the file has that admin's signature",
    ),
    Row("Approval", "", "change to another statement", "the admin whose handle it is"),
    Row("Approval", "", "delete one that approves", "members and owners of the slice, admins"),
    Row("Approval", "", "delete one that rejects", "admins"),
    Row("WorkspaceRequest", "requests/<name>.yaml", "create, change", "admins; until then it waits for one"),
    Row("WorkspaceRequest", "", "the field `members`", "the owner of the slice that it made, admins"),
    Row("WorkspaceRequest", "", "delete", "the owner of the slice that it made, admins"),
    Row("Project", "project.yaml", "everything", "admins"),
    Row("Cluster", "clusters/<name>.yaml", "everything", "admins"),
    Row("GPRTemplate", "templates/<name>.yaml", "everything", "admins"),
    Row("GPRTemplateBinding", "bindings/<name>.yaml", "everything", "admins"),
    Row(
        "ApiKey",
        "keys/<name>.yaml",
        "everything, for keys whose `email` is theirs before and after",
        "that person; a person listed only in slices: keys for those slices",
    ),
    Row("ApiKey", "", "delete, set `revoked`", "admins, for every key"),
    Row(
        "ApiKey", "", "everything else, up to the role Editor and where no admin's `email` is named", "admins"
    ),
    Row(
        "Profile",
        "people/<name>.yaml",
        "everything, where `email` is theirs before and after",
        "that person, admins; a person listed only in slices: routes for events of those slices",
    ),
    Row("Profile", "", "everything else", "admins"),
    Row("", "every other file", "everything", "anyone; they have no effect"),
)
"""The policy for readers; `denial` is the policy itself, and tests keep the two in step."""


def is_governed(path: str) -> bool:
    """True if a file there can have an effect, so that its changes need an entitled person."""
    return rule_of(path) is not None


def denial(actor: Actor, change: Change) -> Denial | None:
    """Why this actor may not make this change; None: allowed."""
    found = rule_of(change.path)
    if found is None or (actor.is_admin and found[0].kind not in ("Approval", "ApiKey")):
        return None
    kind, names = found[0].kind, found[1]
    if actor.is_admin and kind == "ApiKey":
        return _of_key_by_admin(actor, change)
    match kind:
        case "GPR" | "Workload" | "Endpoint":
            return _of_request(actor, change, names["slice"])
        case "Slice":
            return _of_slice(actor, change, names["name"])
        case "Approval":
            return _of_approval(actor, change, names)
        case "WorkspaceRequest":
            return _of_workspace(actor, change, names["name"])
        case "ApiKey" | "Profile":
            return _of_own(actor, change)
    return _refused(change, "NotAnAdmin", actor, "is not an admin, and only admins change this file")


def _of_request(actor: Actor, change: Change, slice_: str) -> Denial | None:
    if slice_ not in actor.member_of:
        why = f"is not a member of slice {slice_}; an owner of the slice must add them first"
        return _refused(change, "NotAMember", actor, why)
    if isinstance(change.new, GPR) and change.new.spec.move != _move(change.old):
        why = "may create and change requests here, but only admins set `move`; leave it unchanged"
        return _refused(change, "MoveIsForAdmins", actor, why)
    return None


def _move(document: Document | None) -> int:
    return document.spec.move if isinstance(document, GPR) else 0


def _of_slice(actor: Actor, change: Change, name: str) -> Denial | None:
    if name not in actor.owns:
        why = f"is neither owner of slice {name} nor an admin"
        return _refused(change, "NotAnOwner", actor, why)
    if change.what == "change" and isinstance(change.old, Slice) and isinstance(change.new, Slice):
        fields = _beyond(change.old, change.new, OWNERS_FIELDS)
        if not fields:
            return None
        why = f"owns the slice, but {', '.join(fields)} {'is' if len(fields) == 1 else 'are'} only for admins to change"
    else:
        why = f"owns the slice, but only admins may {change.what} its file or make it unreadable"
    return _refused(change, "NotAnAdmin", actor, why)


def _beyond(old: Document, new: Document, free: Collection[str]) -> list[str]:
    """Changed fields that need an admin, by their names in the file; fields of spec in `free` do not."""
    before, after = _fields(old, free), _fields(new, free)
    return sorted(differing(before, after))


def _fields(document: Document, free: Collection[str]) -> Mapping[str, Any]:
    content = document.model_dump(mode="json", by_alias=True)
    spec = {f"spec.{name}": value for name, value in content.pop("spec").items() if name not in free}
    return {**content, **spec}


def _of_approval(actor: Actor, change: Change, names: Mapping[str, str]) -> Denial | None:
    name = names["name"]
    if change.what == "delete":
        # Without the approval the slice has less: a person who may withdraw the request may withdraw its approval.
        approves = isinstance(change.old, Approval) and change.old.spec.decision == "approve"
        if actor.is_admin or (approves and names["slice"] in actor.member_of):
            return None
        return _refused(change, "NotAnAdmin", actor, "is not an admin")
    if actor.is_admin and actor.handle == name:
        return None
    if change.signed_by != name:
        why = f"is not the admin {name}, and no signature of {name} is in the file; `egs approve` makes one"
        return _refused(change, "NotTheApprover", actor, why)
    if change.what == "create" or _is_same_statement(change):
        return None
    # The signatures do not show which of two signed decisions is newer: only their author may replace one.
    why = (
        f"may add a decision of {name}, but only {name} may replace an existing one; either {name} "
        "makes this change, or an entitled person deletes the old file first"
    )
    return _refused(change, "NotTheApprover", actor, why)


def _is_same_statement(change: Change) -> bool:
    old, new = change.old, change.new
    return isinstance(old, Approval) and isinstance(new, Approval) and _unsigned(old) == _unsigned(new)


def _unsigned(approval: Approval) -> Approval:
    return approval.edited(spec=approval.spec.edited(signature=None))


def _of_key_by_admin(actor: Actor, change: Change) -> Denial | None:
    """A key acts in its person's name: with a key in another admin's name, one admin could act as two."""
    new = change.new
    if not isinstance(new, ApiKey) or _only_ends(change.old, new):
        return None
    named = {each.spec.email for each in (change.old, new) if isinstance(each, ApiKey)}
    others = sorted(named & actor.admins - {actor.email})
    if others:
        why = f"cannot create a key for {others[0]}: admins create their keys themselves"
        return _refused(change, "NotYours", actor, why)
    if new.spec.role == "Owner" and new.spec.email != actor.email:
        why = (
            f"may create keys for {new.spec.email} up to the role Editor; only that person may create one with "
            "the role Owner"
        )
        return _refused(change, "NotYours", actor, why)
    return None


def _only_ends(old: Document | None, new: ApiKey) -> bool:
    return isinstance(old, ApiKey) and new.spec.revoked and _revoked(old) == _revoked(new)


def _revoked(key: ApiKey) -> ApiKey:
    return key.edited(spec=key.spec.edited(revoked=True))


def _of_own(actor: Actor, change: Change) -> Denial | None:
    """A key or a profile belongs to the person whose address it names, before and after the change."""
    first = change.new if change.what == "create" else change.old
    if actor.is_narrowed:
        why = "cannot change keys and profiles"
    elif not isinstance(first, Own):
        why = "is not an admin, and the file is unreadable, so its owner is unknown"
    else:
        whys = (_not_own(actor, each) for each in (change.old, change.new) if isinstance(each, Own))
        why = next(filter(None, whys), "")
    return _refused(change, "NotYours", actor, why) if why else None


def _not_own(actor: Actor, document: ApiKey | Profile) -> str:
    """Why that document does not belong to this person; empty: it does."""
    if document.spec.email != actor.email:
        return f"is neither its owner {document.spec.email} nor an admin"
    if actor.own_in is None:
        return ""
    within, scopes = actor.own_in & _rights(actor, document), _scopes(document)
    if scopes and all(scope and within.issuperset(scope) for scope in scopes):
        return ""
    what = "a key of this role" if isinstance(document, ApiKey) else "routes"
    if not within:
        return (
            f"may not create {what}: their address is not confirmed here; have an admin create it, or log "
            "in to the API"
        )
    where = ", ".join(sorted(within))
    return f"may create {what} for {where} only; list just those in `slices`, or have an admin create it"


def _rights(actor: Actor, document: ApiKey | Profile) -> frozenset[str]:
    is_owners = isinstance(document, ApiKey) and document.spec.role == "Owner"
    return actor.owns if is_owners else actor.member_of


def _scopes(document: ApiKey | Profile) -> tuple[tuple[str, ...], ...]:
    """The slices of each of its parts; empty: everything that the person may see."""
    if isinstance(document, ApiKey):
        return (document.spec.slices,)
    return tuple(route.slices for route in document.spec.notifications)


def _of_workspace(actor: Actor, change: Change, name: str) -> Denial | None:
    if name in actor.owns and (change.what == "delete" or _is_about_members(change)):
        return None
    return _refused(
        change, "NeedsAdmin", actor, "requested a slice, which counts once an admin merges or commits it"
    )


def _is_about_members(change: Change) -> bool:
    old, new = change.old, change.new
    if not (isinstance(old, WorkspaceRequest) and isinstance(new, WorkspaceRequest)):
        return False
    return not _beyond(old, new, ("members",))


def _refused(change: Change, rule: str, actor: Actor, why: str) -> Denial:
    return Denial(
        change.path, rule, f"{quoted(change.path)}: {actor.email} {why}{_SCOPE if actor.is_narrowed else ''}"
    )
