"""Rules for what runs inside a request, a workload or an endpoint: its slice, its namespace and the request."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.documents.endpoint import EndpointSpec
from schemas.documents.workload import WorkloadSpec
from schemas.rules.findings import Finding
from schemas.rules.view import View, gpr_path


def of_surroundings(file: str, kind: str, spec: WorkloadSpec | EndpointSpec, view: View) -> Iterator[Finding]:
    """The slice must exist and have the namespace; the request may still come. `kind`: a word for the message."""
    slice_ = view.slice(spec.slice)
    if slice_ is None:
        if view.no_slice(spec.slice):
            yield Finding(file, "UnknownSlice", f"there is no slice {spec.slice}", ("spec", "slice"))
        return
    if spec.namespace is not None and spec.namespace not in slice_.spec.namespaces:
        message = f"slice {spec.slice} has no namespace {spec.namespace}"
        fix = f"choose among {', '.join(slice_.spec.namespaces)}, or leave namespace out"
        yield Finding(file, "NamespaceNotInSlice", message, ("spec", "namespace"), fix)
    if view.absent(gpr_path(spec.slice, spec.gpr)):
        message = f"slice {spec.slice} has no request {spec.gpr}: the {kind} waits for one"
        yield Finding(file, "RequestMissing", message, ("spec", "gpr"))
