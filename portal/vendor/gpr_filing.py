"""From the vendor's fields to the fields of a GPR's file. Pure.

Held by tests/portal/vendor/test_gpr_filing.py: every field of a request comes back as sent; contradictions are
refused, never resolved by guessing; an edit touches only the fields that it names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from portal.http.durations import checked_duration
from portal.http.errors import bad_parameters
from portal.http.names import nearest
from portal.vendor.gpr_models import GprAsk, GprDetails, GprEdit, Model, Terms
from reconciler.documents.yaml_edit import new_document
from reconciler.queries.quotes import shape_field
from schemas.documents.gpr import MAX_PRIORITY
from schemas.documents.identity import NONCE
from schemas.reading.units import format_duration, format_instant, memory_gb, parse_instant

Path = tuple[str, ...]
"""Path of a field below `spec`."""

ANY = frozenset({"", "any"})
"""Values by which the vendor's clients say "any"."""
UNNAMED = "gpr"
"""File name prefix for requests without a name."""
_NAME_MOST, _MARK = 50, 5


@dataclass(frozen=True, slots=True)
class RequestedFields:
    """Fields of a file by path (None: removed), and notes for the caller."""

    fields: Mapping[Path, Any]
    notes: tuple[str, ...] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The fields as a new file's spec; removed ones are absent."""
        found: dict[str, Any] = {}
        for path, value in self.fields.items():
            if value is not None:
                inner = found
                for step in path[:-1]:
                    inner = inner.setdefault(step, {})
                inner[path[-1]] = value
        return found


def asked(terms: Terms) -> RequestedFields:
    """The fields that the caller sent. Raises ApiError 422 for contradictions."""
    sent = terms.model_fields_set
    fields: dict[Path, Any] = {}
    if isinstance(terms, GprAsk | GprEdit | GprDetails) and "gpr_name" in sent:
        fields["displayName",] = terms.gpr_name or None
    fields |= {path: value for name, path, value in _plain(terms) if name in sent}
    fields |= _shape(terms, sent) | _clusters(terms, sent) | _idle(terms, sent) | _networks(terms, sent)
    if "priority" in sent:
        fields["priority",] = None if terms.priority is None else min(terms.priority, MAX_PRIORITY)
    if isinstance(terms, GprEdit):
        fields |= _word(terms, sent)
    return RequestedFields(fields, tuple(_notes(terms)))


def _plain(terms: Terms) -> Iterator[tuple[str, Path, Any]]:
    """Fields that are only renamed: the wire's name, the path in the file, and the value."""
    memory = terms.memory_per_gpu
    yield "number_of_gpu_nodes", ("nodes",), terms.number_of_gpu_nodes
    yield "number_of_gpus", ("gpusPerNode",), terms.number_of_gpus
    yield "memory_per_gpu", ("memoryPerGpu",), None if not memory else memory_gb(memory)
    yield "exit_duration", ("duration",), _span("exitDuration", terms.exit_duration)
    yield "not_before", ("notBefore",), _instant("notBefore", terms.not_before)
    yield "start", ("start",), terms.start
    yield "prefer", ("prefer",), terms.prefer
    yield "max_wait", ("maxWait",), _span("maxWait", terms.max_wait)
    yield "enable_eviction", ("preemptible",), terms.enable_eviction
    yield "requeue_on_failure", ("requeueOnFailure",), terms.requeue_on_failure
    yield "model", ("model",), _model(terms.model)
    yield "template_name", ("template",), terms.template_name or None


def _word(edit: GprEdit, sent: set[str]) -> dict[Path, Any]:
    """Fields that only an existing request can have."""
    found: dict[Path, Any] = {}
    if edit.early_release:
        found["earlyRelease",] = True
    if "extend" in sent:
        found["extend",] = _span("extend", edit.extend)
    if "stopped" in sent:
        found["stopped",] = True if edit.stopped else None
    return found


def _shape(terms: Terms, sent: set[str]) -> dict[Path, Any]:
    given = [terms.gpu_shape] if isinstance(terms.gpu_shape, str) else terms.gpu_shape or []
    shapes = () if any(shape in ANY for shape in given) else tuple(given)
    machine = terms.instance_type or None
    if terms.enable_auto_gpu_selection:
        if shapes or machine:
            raise bad_parameters(
                "enableAutoGpuSelection takes any GPU, but gpuShape or instanceType names one; leave one of them out"
            )
        return {("gpuShape",): "any", ("instanceType",): None}
    found: dict[Path, Any] = {}
    if "gpu_shape" in sent:
        # Written out, so that a template does not fill in what the caller left open on purpose.
        found["gpuShape",] = shape_field(shapes) or (None if terms.gpu_shape is None else "any")
    if "instance_type" in sent:
        found["instanceType",] = machine
    return found


def _clusters(terms: Terms, sent: set[str]) -> dict[Path, Any]:
    named, preferred = terms.cluster_name or "", terms.preferred_clusters or []
    if terms.enable_auto_cluster_selection and (named or preferred):
        raise bad_parameters(
            "enableAutoClusterSelection takes any cluster, but clusterName or preferredClusters names one; "
            "leave one of them out"
        )
    if named and preferred and preferred[0] != named:
        raise bad_parameters(
            f"clusterName is {named} but preferredClusters begins with {preferred[0]}; use the same first cluster"
        )
    says = sent & {"cluster_name", "preferred_clusters", "enable_auto_cluster_selection"}
    return {("clusters",): (preferred or ([named] if named else None))} if says else {}


def _idle(terms: Terms, sent: set[str]) -> dict[Path, Any]:
    if not sent & {"idle_time_out_duration", "enforce_idle_time_out"}:
        return {}
    length = _span("idleTimeOutDuration", terms.idle_time_out_duration or None)
    if terms.enforce_idle_time_out and length is None:
        raise bad_parameters("enforceIdleTimeOut needs idleTimeOutDuration")
    return {("idleTimeout",): None if terms.enforce_idle_time_out is False else length}


def _networks(terms: Terms, sent: set[str]) -> dict[Path, Any]:
    wanted = {"enable_rdma": "rdma", "enable_secondary_network": "secondary"}
    return {("network", name): getattr(terms, flag) or None for flag, name in wanted.items() if flag in sent}


def _model(model: Model | str | None) -> Any:
    if model is None or isinstance(model, str):
        return {"name": model} if model else None
    return {name: value for name, value in model.model_dump().items() if value} or None


def _notes(terms: Terms) -> Iterator[str]:
    if terms.priority is not None and terms.priority > MAX_PRIORITY:
        yield f"priority {terms.priority} is above the maximum and was set to {MAX_PRIORITY}"
    if terms.enforce_idle_time_out is False and terms.idle_time_out_duration:
        yield "idleTimeOutDuration was left out, because it needs enforceIdleTimeOut"
    if terms.dedicated_nodes is False:
        yield "nodes are never shared between requests, so dedicatedNodes false has no effect"
    nodes = terms.number_of_gpu_nodes
    if terms.multi_node is not None and nodes is not None and terms.multi_node != (nodes > 1):
        yield f"multiNode follows from numberOfGPUNodes, which is {nodes}"


def _span(name: str, text: str | None) -> str | None:
    """In canonical form. Raises ApiError 422."""
    return None if text is None else format_duration(checked_duration(name, text))


def _instant(name: str, text: str | None) -> str | None:
    try:
        return None if text is None else format_instant(parse_instant(text))
    except ValueError as error:
        raise bad_parameters(f"{name} {text}: {error}") from error


# -- the file ----------------------------------------------------------------------------------------------------------


def nonce_of(caller: str, idempotency: str) -> str:
    """The seed of the request's id, from the caller's idempotency key: a repeated call gives the same id."""
    return hashlib.sha256(f"gpr\n{caller}\n{idempotency}".encode()).hexdigest()[:32]


def file_name(ask: GprAsk, nonce: str) -> str:
    """The given name; else one like the display name, with some digits of the seed to make it unique."""
    if ask.name:
        return ask.name
    mark = hashlib.sha256(nonce.encode()).hexdigest()[:_MARK]
    return f"{nearest(ask.gpr_name[:_NAME_MOST]) or UNNAMED}-{mark}"


def gpr_file(slice_: str, name: str, nonce: str, spec: Mapping[str, Any]) -> bytes:
    """The file of a new request; `schemas.documents.identity.uid_of` derives its id from its name and `nonce`."""
    return new_document("GPR", name, {"slice": slice_, **spec}, {NONCE: nonce})
