"""`egs get requests` and `egs describe request`: requests for a slice, and what became of each."""

from __future__ import annotations

from typing import Any

from reconciler.model.facts import Workspace
from reconciler.queries.details import EVENTS
from reconciler.queries.event_search import Filter, events
from reconciler.queries.state import State, is_name
from reconciler.sources.bare_repository import Bare
from reconciler.sources.command_errors import NotAllowed, NotFound
from reconciler.sources.source import PROPOSED, Source
from reconciler.store.store_port import Store
from schemas.documents.workspace import WorkspaceRequest, WorkspaceRequestSpec
from schemas.reading.reader import read_document
from schemas.reading.units import wire
from schemas.rules.view import workspace_path

Row = dict[str, Any]


def rows(source: Source, state: State) -> list[Row]:
    """Every request for a slice, by name: who asks for what, and its state."""
    return rows_at(source.store, source.commit_of(None), state)


def rows_at(store: Store, base: str, state: State) -> list[Row]:
    return [_row(name, _spec(store, state, base, name), state) for name in sorted(state.facts.workspaces)]


def _spec(store: Store, state: State, base: str, name: str) -> WorkspaceRequestSpec | None:
    """The spec in force; if it waits for an admin, the spec in its file."""
    found = state.wanted.workspaces.get(name, Workspace(None)).spec
    if found is not None:
        return found
    path = workspace_path(name)
    document = read_document(path, store.read_path(base, path) or b"")
    return document.spec if isinstance(document, WorkspaceRequest) else None


def _row(name: str, spec: WorkspaceRequestSpec | None, state: State) -> Row:
    record = state.facts.workspaces[name]
    quota = None if spec is None or spec.quota is None else spec.quota.gpus
    return {
        "name": name,
        "phase": str(record.phase),
        "since": wire(record.since),
        "message": record.message,
        "requester": None if spec is None else spec.requester.email,
        "members": [] if spec is None else [person.email for person in spec.members],
        "clusters": [] if spec is None else list(spec.clusters),
        "namespaces": [] if spec is None else list(spec.namespaces),
        "quotaGpus": quota,
        "reason": "" if spec is None else spec.reason,
    }


def request_data(source: Source, state: State, name: str) -> Row:
    """The data of `egs describe request`. Raises NotFound, or NotAllowed if it is not merged or not read yet."""
    found = {row["name"]: row for row in rows(source, state)}
    if name not in found:
        _not_merged(source, name)
        raise NotFound("request for a slice called", name, found)
    return {
        **found[name],
        "file": workspace_path(name),
        "events": list(events(source, Filter(slice=name), EVENTS)),
    }


def _not_merged(source: Source, name: str) -> None:
    """Raises NotAllowed with the next step if the request is on a branch but not on main, or not processed yet."""
    path = workspace_path(name)
    if is_name(name) and source.store.read_path(source.commit_of(None), path) is not None:
        raise NotAllowed(f"{path} exists, but no controller has processed it yet; try again in a minute")
    remote = source.upstream()
    if not isinstance(remote, Bare) or not is_name(name):
        return
    heads = remote.store.fetch([f"{PROPOSED}*"])
    for branch, oid in sorted(heads.items()):
        if branch.startswith(PROPOSED) and remote.store.read_path(oid, path) is not None:
            raise NotAllowed(
                f"{name} is requested on the branch {branch}, which is not merged yet; an admin merges it into main"
            )
