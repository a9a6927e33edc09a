"""`/endpoints`: a new one, other weights as a change, and how many replicas a version needs now, for KEDA."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from portal.http.context import Asking, Changed, Envelope, Looking, Of, changed, ok
from portal.http.errors import bad_parameters, not_found, unavailable
from portal.http.names import checked_name
from portal.identity.callers import Caller
from portal.identity.rights import check_member, seen_slice
from portal.openapi.refusals import NAMED, refusals
from portal.views.view import View
from portal.writes.gpr_changes import seen
from portal.writes.replayed_answers import Named, Naming, weights_then
from portal.writes.tried_change import tried
from portal.writes.workload_changes import filed_endpoint, text_of
from portal.writes.write_request import Changes, Tree, WriteRequest
from reconciler.endpoints.watched import pods_of, source_of
from reconciler.endpoints.weights import NoSuchWeights, needed, promoted, rolled_back, with_weights
from reconciler.model.observation import Load
from schemas.documents.endpoint import EndpointSpec, Version
from schemas.errors import EgsError
from schemas.rules.view import endpoint_path
from schemas.status.endpoint_status import EndpointPhase, EndpointStatus

router = APIRouter(prefix="/endpoints", tags=["endpoints"])

Slice = Annotated[str, Path(max_length=63, description="Its workspace.")]
Name = Annotated[str, Path(max_length=63, description="Its name.")]


class _Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


_SPEC: dict[str, Any] = {
    "versions": [{"name": "v1", "image": "vllm/vllm-openai:v0.11.0", "model": "Qwen/Qwen2.5-7B-Instruct"}],
    "weights": {"v1": 100},
}


class EndpointAsk(_Body):
    """A new endpoint: a served model on the nodes of a request that exists."""

    name: str = Field(max_length=63, description="Its name.", examples=["captions"])
    slice_name: str = Field(max_length=63, description="The workspace it is for.", examples=["vision"])
    gpr_id: str = Field(
        max_length=200,
        description="The request of the workspace on whose nodes it runs: its id, or slice/name.",
        examples=["vision/serves"],
    )
    spec: dict[str, JsonValue] = Field(
        description="The fields of an Endpoint's `spec`, without `slice` and `gpr`.", examples=[_SPEC]
    )
    dry_run: bool = Field(
        default=False, strict=True, description="Write nothing; `text` of the answer has the file."
    )


class EndpointFiled(_Body):
    """An endpoint that was filed, or only tried."""

    name: str = Field(description="slice/name of the endpoint.", examples=["vision/captions"])
    text: str = Field(description="After a dry run: the file that it would write.")
    change: Changed | None = Field(default=None, description="Absent after a dry run.")


class Promotion(_Body):
    """Which version gets how much."""

    version: str = Field(max_length=63, description="A version of the endpoint.", examples=["v2"])
    weight: int = Field(
        100,
        strict=True,
        ge=1,
        le=100,
        description="Percent of the traffic; the others keep theirs in proportion.",
    )


class Weights(_Body):
    """The weights as they were written."""

    name: str = Field(description="slice/name of the endpoint.", examples=["vision/captions"])
    weights: dict[str, int] | None = Field(
        None, description="Percent of the traffic by version; null: not written yet.", examples=[{"v2": 100}]
    )
    change: Changed = Field(description="Where the change is.")


class Needed(_Body):
    """How many replicas a version needs now."""

    replicas: int = Field(description="Within the version's bounds.", examples=[3])
    load: float | None = Field(
        description="Requests that run and wait; null: it does not serve.", examples=[41]
    )


@router.post("", responses=refusals(404, *NAMED, "EndpointAlreadyExists"), summary="File an endpoint.")
async def file_endpoint(
    ask: Annotated[EndpointAsk, Body()], view: Looking, caller: Asking, parts: Of, again: Named
) -> Envelope[EndpointFiled]:
    """Writes the endpoint's file, as `egs endpoint create`. It is served when its request holds nodes."""
    seen_slice(view, caller, ask.slice_name)
    check_member(caller, ask.slice_name, "file endpoints there")
    checked_name("name", ask.name)
    key = f"{ask.slice_name}/{ask.name}"
    if again.landed is not None:
        return ok(EndpointFiled(name=key, text="", change=changed(again.landed)))
    request = seen(view, caller, ask.gpr_id)
    if request.slice != ask.slice_name:
        raise bad_parameters("gprId: it is of another workspace; an endpoint runs on requests of its own")

    def make(_: View, tree: Tree) -> Changes:
        return filed_endpoint(tree, key, request.key, ask.spec)

    if ask.dry_run:
        files = await parts.costly.answer(tried, view, parts.store, caller, make, parts.now())
        return ok(EndpointFiled(name=key, text=text_of(files)))
    landed = await parts.writer.submit(WriteRequest(caller, f"Serve {key}", make, again.key))
    return ok(EndpointFiled(name=key, text="", change=changed(landed)))


@router.post(
    "/{slice_name}/{name}/promote",
    responses=refusals(404, *NAMED),
    summary="Give a version more of the traffic.",
)
async def promote(  # noqa: PLR0913 - each is a parameter of the path
    slice_name: Slice,
    name: Name,
    ask: Annotated[Promotion, Body()],
    view: Looking,
    caller: Asking,
    parts: Of,
    again: Named,
) -> Envelope[Weights]:
    """Writes the weights into the endpoint's file, as `egs endpoint promote`."""

    def choose(spec: EndpointSpec, _: EndpointStatus | None) -> dict[str, int]:
        return promoted(spec, ask.version, ask.weight)

    subject = f"Promote {ask.version} of {slice_name}/{name} to {ask.weight} %"
    return await _written((view, caller, parts), f"{slice_name}/{name}", (subject, again), choose)


@router.post(
    "/{slice_name}/{name}/rollback",
    responses=refusals(404, *NAMED),
    summary="Bring back the weights from before.",
)
async def rollback(
    slice_name: Slice, name: Name, view: Looking, caller: Asking, parts: Of, again: Named
) -> Envelope[Weights]:
    """Writes the weights that stood before the present ones into the endpoint's file, as `egs endpoint rollback`."""
    key = f"{slice_name}/{name}"

    def choose(spec: EndpointSpec, status: EndpointStatus | None) -> dict[str, int]:
        return rolled_back(key, spec, status)

    return await _written((view, caller, parts), key, (f"Roll back {key}", again), choose)


@router.get(
    "/{slice_name}/{name}/replicas",
    response_model=Needed,
    responses=refusals(404, 422),
    summary="How many replicas a version needs now, for KEDA's metrics-api trigger.",
)
def replicas(
    slice_name: Slice,
    name: Name,
    view: Looking,
    caller: Asking,
    parts: Of,
    version: Annotated[str, Query(max_length=63, description="The version; absent: its only one.")] = "",
) -> Needed:
    """Requests at hand over `scaling.requestsPerReplica`, within the version's bounds. No envelope: KEDA reads it.

    503 while the cluster's Prometheus does not tell: KEDA then keeps the fallback, all that the lease has GPUs for.
    """
    key, spec = _endpoint(view, caller, f"{slice_name}/{name}")
    wanted = _version(spec, version)
    if spec.scaling is None:
        raise bad_parameters(f"endpoint {key} has no scaling; add spec.scaling to its file")
    status = view.facts.endpoints.get(key)
    if status is None or status.phase in {EndpointPhase.PENDING, EndpointPhase.REMOVED}:
        return Needed(replicas=wanted.replicas.min, load=None)
    source = source_of(view.wanted.clusters.get(status.run.cluster or ""))
    if source is None:
        raise bad_parameters(f"cluster {status.run.cluster} has no metrics.prometheus; an admin adds it")
    asked = Load(
        status.run.cluster or "", source, status.run.namespace or "", dict(pods_of(key, spec))[wanted.name]
    )
    try:
        load = parts.sources.load(asked, parts.now())
    except EgsError as error:
        raise unavailable(str(error)) from error
    if load is None:
        raise unavailable(
            f"the Prometheus of cluster {asked.cluster} shows no requests of {key} {wanted.name}"
        )
    return Needed(replicas=needed(wanted.replicas, load, spec.scaling.requests_per_replica), load=load)


def _endpoint(view: View, caller: Caller, key: str) -> tuple[str, EndpointSpec]:
    """The endpoint, if the caller may see it; else ApiError 404."""
    seen_slice(view, caller, key.partition("/")[0])
    spec = view.wanted.endpoints.get(key)
    if spec is None:
        raise not_found("endpoint", key)
    return key, spec


def _version(spec: EndpointSpec, name: str) -> Version:
    found = [each for each in spec.versions if name in ("", each.name)]
    if len(found) != 1:
        names = ", ".join(each.name for each in spec.versions)
        raise bad_parameters(f"version: name one of {names}")
    return found[0]


async def _written(
    where: tuple[View, Caller, Of],
    key: str,
    how: tuple[str, Naming],
    choose: Callable[[EndpointSpec, EndpointStatus | None], dict[str, int]],
) -> Envelope[Weights]:
    view, caller, parts = where
    slice_, (subject, again) = key.partition("/")[0], how
    path, found = endpoint_path(*key.split("/")), dict[str, int]()
    seen_slice(view, caller, slice_)
    if again.landed is None:
        _endpoint(view, caller, key)
    check_member(caller, slice_, "change its endpoints")

    def make(view: View, tree: Tree) -> Changes:
        spec, data = view.wanted.endpoints.get(key), tree.read(path)
        if spec is None or data is None:
            raise not_found("endpoint", key)
        found.clear()
        found.update(_chosen(choose, spec, view.facts.endpoints.get(key)))
        return {path: with_weights(data, found)}

    landed = again.landed or await parts.writer.submit(WriteRequest(caller, subject, make, again.key))
    weights: dict[str, int] | None = dict(found)
    if landed.way == "accepted":
        weights = None
    elif not found:  # a repeated call: nothing was made
        weights = await asyncio.to_thread(weights_then, parts.store, landed.commit, path)
    return ok(Weights(name=key, weights=weights, change=changed(landed)))


def _chosen(
    choose: Callable[[EndpointSpec, EndpointStatus | None], dict[str, int]],
    spec: EndpointSpec,
    status: EndpointStatus | None,
) -> dict[str, int]:
    try:
        return choose(spec, status)
    except NoSuchWeights as no:
        raise bad_parameters(str(no)) from no
