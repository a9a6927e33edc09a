"""New contents of workspace files: made, changed and deleted. Pure.

An admin's workspace is a slice file; any other user's is a request for a slice, which waits for an admin.
Held by tests/portal/vendor/test_workspace_models.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from portal.http.errors import ApiError, bad_parameters, conflict, not_found
from portal.http.names import checked_address, checked_name, is_address, listed
from portal.identity.callers import Caller
from portal.vendor.workspace_models import WorkspaceEdit, WorkspaceWish
from portal.views.view import View
from portal.writes.write_request import Changes, Tree
from portal.writes.yaml_files import standing
from reconciler.changes.yaml_list import with_item, without_item
from reconciler.documents.yaml_edit import new_document, with_field
from reconciler.model.facts import Wanted
from reconciler.model.statuses import live
from schemas.documents.apikey import ApiKey
from schemas.documents.base import Person
from schemas.documents.slice import Slice
from schemas.documents.workspace import WorkspaceRequest
from schemas.reading.reader import rule_of
from schemas.rules.view import binding_path, key_path, slice_path, workspace_path
from schemas.status.gpr_status import HOLDING, TERMINAL

Entry = dict[str, Any]
SHOWN = 8
"""Most requests named in one sentence."""


def check_wish(asked: WorkspaceWish, wanted: Wanted) -> None:
    """ApiError 422 with what is not valid in this project."""
    checked_name("workspaceName", asked.workspace_name)
    if asked.max_clusters is not None and len(asked.clusters) > asked.max_clusters:
        raise bad_parameters(
            f"clusters: {len(asked.clusters)} are named, maxClusters allows {asked.max_clusters}"
        )
    check_places(asked.workspace_name, asked.clusters, asked.namespaces or (asked.workspace_name,), wanted)
    for mail in asked.members:
        checked_address("members", mail)


def check_places(name: str, clusters: Sequence[str], namespaces: Sequence[str], wanted: Wanted) -> None:
    """ApiError 422 for unknown clusters, invalid namespaces, and namespaces of other workspaces."""
    unknown = [each for each in clusters if each not in wanted.clusters]
    if unknown:
        raise bad_parameters(
            f"clusters: there is no cluster {', '.join(unknown)}; choose from {listed(wanted.clusters)}"
        )
    for field, given in (("clusters", clusters), ("namespaces", namespaces)):
        twice = sorted({each for each in given if list(given).count(each) > 1})
        if twice:
            raise bad_parameters(f"{field}: {', '.join(twice)} is listed twice")
    for namespace in namespaces:
        checked_name("namespaces", namespace)
    taken = _taken(name, clusters, namespaces, wanted)
    if taken:
        # The caller may not be allowed to see the other workspace, so it is not named.
        raise bad_parameters(
            f"namespaces: {', '.join(taken)} belongs to another workspace; choose another name"
        )


def _taken(name: str, clusters: Sequence[str], namespaces: Sequence[str], wanted: Wanted) -> list[str]:
    found = []
    for other, spec in wanted.slices.items():
        both = set(spec.clusters) & set(clusters)
        if other != name and both:
            found += [
                f"{each} of {', '.join(sorted(both))}" for each in namespaces if each in spec.namespaces
            ]
    return sorted(found)


def check_free(tree: Tree, view: View, name: str) -> None:
    """ApiError 409 if a slice or a request for one has that name."""
    is_there = tree.read(slice_path(name)) is not None or name in view.wanted.slices
    if is_there or tree.read(workspace_path(name)) is not None:
        what = "exists already" if is_there else "is requested already, and waits for an admin"
        raise conflict(
            f"workspace {name} {what}; choose another name, or ask its owner to add you",
            "WorkspaceAlreadyExists",
        )


def made(asked: WorkspaceWish, caller: Caller) -> Changes:
    """The file of a new workspace: a slice for an admin, else a request for one."""
    name, owner = asked.workspace_name, owner_of(asked, caller)
    rest = [
        {"email": mail} for mail in dict.fromkeys(asked.members) if mail.lower() != owner["email"].lower()
    ]
    places = {
        "clusters": list(asked.clusters),
        "namespaces": list(asked.namespaces) or [name],
        "quota": None if asked.quota_gpus is None else {"gpus": asked.quota_gpus},
    }
    if caller.is_admin:
        people = {"members": [owner, *rest], "owners": [owner]}
        spec = {"description": asked.description or None, **people, **places}
        return {slice_path(name): new_document("Slice", name, spec)}
    spec = {"requester": owner, "members": rest or None, **places, "reason": asked.description or None}
    return {workspace_path(name): new_document("WorkspaceRequest", name, spec)}


def owner_of(asked: WorkspaceWish, caller: Caller) -> Entry:
    """The new owner: `email`, or `username` if it is an address, else the caller. ApiError 422."""
    if asked.email:
        return {"email": checked_address("email", asked.email)}
    return {"email": asked.username if is_address(asked.username) else caller.email}


# -- changes -----------------------------------------------------------------------------------------------------------


def file_of(tree: Tree, name: str) -> tuple[str, bytes, Slice | WorkspaceRequest]:
    """The file of this slice: its own, else the request for it; ApiError 404."""
    own = standing(tree, slice_path(name), Slice)
    if own is not None:
        return slice_path(name), *own
    asked = standing(tree, workspace_path(name), WorkspaceRequest)
    if asked is None:
        raise not_found("workspace", name)
    return workspace_path(name), *asked


def changed(asked: WorkspaceEdit, view: View, tree: Tree) -> Changes:
    """The workspace's file with the given changes; None stays, and so does every other byte."""
    name = asked.workspace_name
    path, data, document = file_of(tree, name)
    clusters = document.spec.clusters if asked.clusters is None else asked.clusters
    namespaces = document.spec.namespaces if asked.namespaces is None else asked.namespaces
    check_places(name, clusters, namespaces, view.wanted)
    check_left(view, name, set(document.spec.clusters) - set(clusters))
    for field, new, old in (
        ("clusters", clusters, document.spec.clusters),
        ("namespaces", namespaces, document.spec.namespaces),
    ):
        if tuple(new) != old:
            data = with_field(data, ("spec", field), list(new))
    data = _with_words(data, document, asked)
    data = _with_people(data, document, asked)
    return {path: data}


def _with_words(data: bytes, document: Slice | WorkspaceRequest, asked: WorkspaceEdit) -> bytes:
    field = "description" if isinstance(document, Slice) else "reason"
    if asked.description is not None and asked.description != getattr(document.spec, field):
        data = with_field(data, ("spec", field), asked.description or None)
    quota = document.spec.quota
    if asked.quota_gpus is not None and (quota is None or quota.gpus != asked.quota_gpus):
        data = with_field(data, ("spec", "quota", "gpus"), asked.quota_gpus)
    return data


def _with_people(data: bytes, document: Slice | WorkspaceRequest, asked: WorkspaceEdit) -> bytes:
    if isinstance(document, WorkspaceRequest):
        if asked.owners is not None:
            raise bad_parameters(
                f"owners: the workspace is made by {workspace_path(asked.workspace_name)}, and its requester owns it"
            )
        requester = document.spec.requester.email.lower()
        wanted = None if asked.members is None else [m for m in asked.members if m.lower() != requester]
        return _with_list(data, "members", document.spec.members, wanted)
    data = _with_list(data, "members", document.spec.members, asked.members)
    return _with_list(data, "owners", document.spec.owners, asked.owners)


def _with_list(data: bytes, field: str, old: Sequence[Person], new: Iterable[str] | None) -> bytes:
    """Removed people are taken out, new ones come last; entries of the others keep their keys and accounts."""
    if new is None:
        return data
    wanted = {checked_address(field, mail).lower(): mail for mail in new}
    for place in reversed(range(len(old))):
        if old[place].email.lower() not in wanted:
            data = without_item(data, ("spec", field), place)
    there = {person.email.lower() for person in old}
    for key, mail in wanted.items():
        if key not in there:
            data = with_item(data, ("spec", field), {"email": mail})
    return data


def detached(view: View, tree: Tree, name: str, cluster: str) -> Changes:
    """The workspace without that cluster. ApiError 422 if it does not span it, or it is the last one."""
    path, data, document = file_of(tree, name)
    left = [each for each in document.spec.clusters if each != cluster]
    if len(left) == len(document.spec.clusters):
        raise bad_parameters(
            f"clusterName: workspace {name} does not span {checked_name('clusterName', cluster)}; it spans "
            f"{listed(document.spec.clusters)}"
        )
    if not left:
        raise bad_parameters(
            f"clusterName: {cluster} is the last cluster of workspace {name}; delete the workspace instead"
        )
    check_left(view, name, {cluster})
    return {path: with_field(data, ("spec", "clusters"), left)}


def check_left(view: View, name: str, clusters: set[str]) -> None:
    """ApiError 409 while a request of that workspace holds nodes in one of these clusters."""
    holders = sorted(
        key
        for key, status in live(view.facts.requests).items()
        if key.startswith(f"{name}/")
        and status.phase in HOLDING
        and status.assignment is not None
        and status.assignment.cluster in clusters
    )
    if holders:
        raise _in_use(f"workspace {name} holds nodes in {', '.join(sorted(clusters))}", holders)


def removed(view: View, tree: Tree, name: str) -> Changes:
    """Deletes every file of the workspace. ApiError 409 while one of its requests is not over, 404 if there is none."""
    prefix = f"{name}/"
    filed = {path.rpartition("/")[2].removesuffix(".yaml") for path in tree.below(f"slices/{name}/gprs")}
    known = {key.removeprefix(prefix) for key in live(view.facts.requests) if key.startswith(prefix)}
    waiting = sorted(known | {each for each in filed if not _is_over(view, prefix + each)})
    if waiting:
        raise _in_use(f"workspace {name} is in use", [prefix + each for each in waiting])
    below = [*tree.below(f"slices/{name}"), *tree.below(f"approvals/{name}")]
    paths = [path for path in below if rule_of(path) is not None]  # other files have no effect, and stay
    paths += [path for path in (workspace_path(name), binding_path(name)) if tree.read(path) is not None]
    if not paths:
        raise not_found("workspace", name)
    return {**dict.fromkeys(paths), **_keys_without(view, tree, name)}


def _keys_without(view: View, tree: Tree, name: str) -> Changes:
    """API keys for the workspace: a key for this one alone is deleted, because an empty list means everywhere."""
    found: dict[str, bytes | None] = {}
    for key, spec in view.wanted.keys.items():
        there = standing(tree, key_path(key), ApiKey) if name in spec.slices else None
        if there is not None:
            data, document = there
            left = [each for each in document.spec.slices if each != name]
            found[key_path(key)] = with_field(data, ("spec", "slices"), left) if left else None
    return found


def _is_over(view: View, key: str) -> bool:
    """Whether it never holds nodes again; a refused request never did."""
    status, filed = view.facts.requests.get(key), view.wanted.filed.get(key)
    if status is None:
        return filed is not None and filed.spec is None
    return status.phase in TERMINAL


def _in_use(what: str, keys: Sequence[str]) -> ApiError:
    named = ", ".join(keys[:SHOWN]) + (", …" if len(keys) > SHOWN else "")
    return conflict(
        f"{what}: {named} not over yet; release or cancel first",
        "WorkspaceInUse",
        {"requests": list(keys[:1000])},
    )
