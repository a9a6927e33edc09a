"""The files of a change that is only asked about, made by the functions that would write them. Writes nothing.

Held by tests/portal/views/test_what_if.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from portal.http.errors import bad_parameters, conflict, not_found
from portal.http.names import checked_name
from portal.identity.callers import Caller
from portal.identity.rights import check_admin, seen_slice
from portal.vendor.gpr_filing import asked, file_name, nonce_of
from portal.vendor.what_if_models import (
    AddMaintenance,
    Edit,
    EditRequest,
    EndRequest,
    FileRequest,
    MoveRequest,
    WhatIfAsk,
)
from portal.views.view import View
from portal.writes import gpr_changes, queue_moves
from portal.writes.base_content import authors_of
from portal.writes.write_request import Changes
from reconciler.changes.reinstate import held_by_path, versions_of
from reconciler.changes.yaml_list import with_item
from reconciler.documents.restored_files import last_read
from reconciler.store.store_port import Store
from schemas.reading.manifest_paths import path_of
from schemas.reading.strict_yaml import Refused
from schemas.rules.view import cluster_path
from schemas.status.gpr_status import HOLDING


@dataclass(slots=True)
class ProposedTree:
    """`write_request.Tree`: main of a view, with the change so far on top."""

    view: View
    store: Store
    above: dict[str, bytes | None] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        if path in self.above:
            return self.above[path]
        hold = held_by_path(self.view.facts.trust).get(path)
        return versions_of(path, self.store.read_path(self.view.main, path), hold, self._blob).data

    def _blob(self, oid: str | None) -> bytes | None:
        return None if oid is None else self.store.read([oid])[oid]

    def last(self, path: str) -> bytes | None:
        return last_read(self.store, self.view.main, path)

    def below(self, folder: str) -> Sequence[str]:
        documents = self.view.documents
        there = () if documents is None else documents.repository.documents
        return sorted(path for path in there if path.startswith(f"{folder}/"))

    def authors(self, path: str) -> Collection[str]:
        return authors_of(self.store, self.view.main, path)


def proposed_files(view: View, store: Store, caller: Caller, ask: WhatIfAsk) -> Changes:
    """All files of the change. ApiError 403, 404, 409 and 422, as the paths that write them would answer.

    Files and manifests are taken as they are: `portal.views.what_if.check_files` says whether they may be asked about.
    """
    tree = ProposedTree(view, store)
    tree.above |= {path: None if text is None else text.encode() for path, text in ask.files.items()}
    for number, text in enumerate(ask.manifests, 1):
        tree.above[_place_of(text.encode(), number)] = text.encode()
    for number, edit in enumerate(ask.changes):
        tree.above |= _written(edit, number, caller, tree)
    return tree.above


def _place_of(data: bytes, number: int) -> str:
    try:
        path = path_of(data)
    except Refused as error:
        raise bad_parameters(f"manifest {number}: line {error.line}: {error}") from error
    if path is None:
        raise bad_parameters(
            f"manifest {number}: its kind and metadata.name make its path, for a GPR also spec.slice"
        )
    return path


def _written(edit: Edit, number: int, caller: Caller, tree: ProposedTree) -> Changes:
    match edit:
        case FileRequest():
            return _filed(edit, number, caller, tree)
        case EditRequest():
            return _edited(edit, caller, tree)
        case EndRequest():
            return _ended(edit, caller, tree)
        case MoveRequest():
            return _moved(edit, caller, tree)
        case AddMaintenance():
            return _maintained(edit, caller, tree)


def _filed(edit: FileRequest, number: int, caller: Caller, tree: ProposedTree) -> Changes:
    seen_slice(tree.view, caller, edit.slice_name)
    nonce = nonce_of(caller.email, f"asked {number}")
    key = f"{edit.slice_name}/{checked_name('name', file_name(edit, nonce))}"
    return gpr_changes.filed(tree.view, tree, key, nonce, asked(edit))


def _edited(edit: EditRequest, caller: Caller, tree: ProposedTree) -> Changes:
    found, fields = gpr_changes.seen(tree.view, caller, edit.gpr_id), asked(edit).fields
    if not fields:
        raise bad_parameters("name at least one field to change: priority, gprName, earlyRelease, …")
    return gpr_changes.edited(tree.view, tree, found.key, fields)


def _ended(edit: EndRequest, caller: Caller, tree: ProposedTree) -> Changes:
    found = gpr_changes.seen(tree.view, caller, edit.gpr_id)
    if found.status is not None and found.status.phase in HOLDING:
        return gpr_changes.edited(tree.view, tree, found.key, {("earlyRelease",): True})
    return gpr_changes.cancelled(tree.view, tree, found.key)


def _moved(edit: MoveRequest, caller: Caller, tree: ProposedTree) -> Changes:
    check_admin(caller, "move requests")
    return queue_moves.moved(tree.view, tree, caller, edit)


def _maintained(edit: AddMaintenance, caller: Caller, tree: ProposedTree) -> Changes:
    check_admin(caller, "plan maintenance")
    path = cluster_path(edit.cluster_name)
    data = tree.read(path)
    if data is None:
        raise not_found("cluster", edit.cluster_name)
    window = {"begin": edit.begin, "end": edit.end, "pools": edit.pools, "nodes": edit.nodes}
    given = {name: value for name, value in window.items() if value}
    try:
        return {path: with_item(data, ("spec", "maintenance"), given)}
    except Refused as error:
        raise conflict(f"{path}:{error.line}: {error}; first repair the file in the repository") from error
