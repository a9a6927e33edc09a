"""Changes of an endpoint's file: a new one. Pure.

Held by tests/portal/test_endpoints.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.http.errors import bad_parameters, conflict, not_found
from portal.writes.parsed_files import read_document
from portal.writes.write_request import Changes, Tree
from reconciler.documents.manifest_text import NotManifests, endpoint_file
from schemas.documents.endpoint import Endpoint
from schemas.rules.view import endpoint_path, gpr_path


def filed(tree: Tree, key: str, gpr: str, spec: Mapping[str, Any]) -> Changes:
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
