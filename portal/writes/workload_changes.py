"""Changes of a workload's file: a new one, alone or with its request, and its deletion; a new endpoint's file. Pure.

Held by tests/portal/test_workloads.py and test_endpoints.py: request and workload come in one change or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.http.errors import bad_parameters, conflict, not_found
from portal.identity.callers import Caller
from portal.vendor.gpr_filing import RequestedFields, asked
from portal.vendor.gpr_models import GprDetails
from portal.vendor.workload_models import WorkloadAsk
from portal.views.view import View
from portal.writes.gpr_changes import filed as filed_request
from portal.writes.gpr_changes import seen
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Changes, Tree
from reconciler.documents.manifest_text import (
    NotManifests,
    checked,
    endpoint_file,
    manifests_of,
    workload_file,
)
from reconciler.store.store_port import Store
from schemas.documents.endpoint import Endpoint
from schemas.documents.workload import Manifest, Workload
from schemas.rules.view import endpoint_path, gpr_path, workload_path


@dataclass(frozen=True, slots=True)
class NewWorkload:
    """A workload as it was asked for."""

    key: str
    """slice/name."""
    gpr: str
    """slice/name of its request."""
    manifests: Sequence[Manifest]
    namespace: str | None = None
    terms: RequestedFields | None = None
    """Of the new request; None: it exists."""


def new_workload(view: View, caller: Caller, ask: WorkloadAsk) -> NewWorkload:
    """What the caller asked for. ApiError 404 for a request that they may not see, 422 for contradictions."""
    key, manifests = f"{ask.slice_name}/{ask.name}", _manifests(ask)
    if ask.gpr_id is None:
        return NewWorkload(key, key, manifests, ask.namespace, asked(ask.gpr_details or GprDetails()))
    if ask.gpr_details is not None:
        raise bad_parameters("gprId names a request that exists; leave gprDetails, for a new one, out")
    found = seen(view, caller, ask.gpr_id)
    if found.slice != ask.slice_name:
        raise bad_parameters(
            f"gprId: {found.key} is of another workspace; a workload runs on requests of its own"
        )
    return NewWorkload(key, found.key, manifests, ask.namespace)


def request_then(store: Store, commit: str, ask: WorkloadAsk) -> str:
    """slice/name of the request of a workload that this commit of main filed; it may be gone since."""
    path = workload_path(ask.slice_name, ask.name)
    data = store.read_path(commit, path)
    document = None if data is None else read_document(path, data)
    assert isinstance(document, Workload), "the commit was found by its key and content"
    return f"{ask.slice_name}/{document.spec.gpr}"


def filed(view: View, tree: Tree, wanted: NewWorkload, nonce: str) -> Changes:
    """Its file, and that of its new request. ApiError 409 for a name in use, 404 for a request without a file."""
    slice_, _, name = wanted.key.partition("/")
    path, gpr = workload_path(slice_, name), wanted.gpr.partition("/")[2]
    if tree.read(path) is not None:
        raise conflict(
            f"a workload {wanted.key} exists already; choose another name, or delete it",
            "WorkloadAlreadyExists",
        )
    data = workload_file(slice_, name, gpr, wanted.namespace, wanted.manifests)
    document = read_document(path, data)
    if not isinstance(document, Workload):
        problems = document if isinstance(document, tuple) else ()
        raise bad_parameters("; ".join(problem.advice for problem in problems[:5]))
    if wanted.terms is not None:
        return {**filed_request(view, tree, wanted.gpr, nonce, wanted.terms), path: data}
    if tree.read(gpr_path(slice_, gpr)) is None:
        raise not_found("request", wanted.gpr)
    return {path: data}


def filed_endpoint(tree: Tree, key: str, gpr: str, spec: Mapping[str, Any]) -> Changes:
    """Its file. `key` and `gpr`: slice/name. ApiError 409 for a name in use, 404 for a request without a file."""
    slice_, _, name = key.partition("/")
    path, request = endpoint_path(slice_, name), gpr.partition("/")[2]
    if tree.read(path) is not None:
        text = f"an endpoint {key} exists already; choose another name, or edit its file"
        raise conflict(text, "EndpointAlreadyExists")
    try:
        data = endpoint_file(slice_, name, request, spec)
    except NotManifests as error:
        raise bad_parameters(f"spec: {error}") from error
    document = read_document(path, data)
    if not isinstance(document, Endpoint):
        problems = document if isinstance(document, tuple) else ()
        raise bad_parameters("; ".join(problem.advice for problem in problems[:5]))
    if tree.read(gpr_path(slice_, request)) is None:
        raise not_found("request", gpr)
    return {path: data}


def deleted(tree: Tree, key: str) -> Changes:
    """Without its file; its request stays. ApiError 404."""
    path = workload_path(*key.split("/"))
    if tree.read(path) is None:
        raise not_found("workload", key)
    return {path: None}


def text_of(changes: Changes) -> str:
    """The files of a change as YAML documents, by path."""
    texts = (data.decode() for _, data in sorted(changes.items()) if data is not None)
    return "---\n".join(texts).rstrip("\n")


def _manifests(ask: WorkloadAsk) -> list[Manifest]:
    try:
        return manifests_of(ask.manifests) if isinstance(ask.manifests, str) else checked(ask.manifests)
    except NotManifests as error:
        raise bad_parameters(f"manifests: {error}") from error
