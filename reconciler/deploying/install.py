"""Installs each object by server-side apply, and removes what an earlier installation had and this one has not.

Running it again is the upgrade. What Helm installed belongs to Helm: it is refused, never taken over.

Held by tests/deploy/test_install.py on a real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER
from reconciler.deploying.install_values import Values
from reconciler.deploying.installed_objects import namespace, objects
from reconciler.deploying.object_kinds import KINDS, Kind, called, path_of
from reconciler.deploying.part_names import APP, COMPONENT, INSTANCE, NAME, Place
from schemas.errors import UserError


class Step(NamedTuple):
    what: str
    done: Literal["created", "changed", "unchanged", "removed"]


def install(api: Api, values: Values, place: Place) -> Iterator[Step]:
    """Raises UserError `InstalledByHelm` or `NameTaken` before anything is written."""
    wanted = objects(values, place)
    for item in wanted:
        _check_ours(item, api.find(path_of(item, place.namespace)))
    yield _namespace(api, place)
    for item in wanted:
        yield _applied(api, item, place)
    yield from _pruned(api, wanted, place)


def installed(api: Api, place: Place, manager: str = MANAGER) -> list[Json]:
    """Objects of this installation, the last created first; `manager` created them: `egs` or `Helm`."""
    selector = f"{NAME}={APP},{INSTANCE}={place.name},{MANAGED_BY}={manager},{COMPONENT}"
    found: list[Json] = []
    for name, kind in reversed(KINDS.items()):
        served = Kind(place.budgets, kind.plural) if name == "PodDisruptionBudget" else kind
        for item in api.items(served.path(place.namespace), labelSelector=selector):
            found.append({**item, "kind": name, "apiVersion": served.group})
    return found


def _check_ours(item: Json, found: Json | None) -> None:
    if found is None:
        return
    manager = (found["metadata"].get("labels") or {}).get(MANAGED_BY)
    if manager == "Helm":
        raise UserError(
            f"{called(item)} was installed by Helm; upgrade it with helm, or remove that release first",
            "InstalledByHelm",
        )
    if item["kind"] != "CustomResourceDefinition" and manager != MANAGER:
        raise UserError(
            f"{called(item)} exists already and does not belong to this installation; choose another name with --name",
            "NameTaken",
        )


def _namespace(api: Api, place: Place) -> Step:
    path, what = f"/api/v1/namespaces/{place.namespace}", f"Namespace {place.namespace}"
    if api.find(path) is not None:
        return Step(what, "unchanged")
    api.create("/api/v1/namespaces", namespace(place))
    return Step(what, "created")


def _applied(api: Api, item: Json, place: Place) -> Step:
    path = path_of(item, place.namespace)
    before = api.find(path)
    after = api.apply(path, item)
    if before is None:
        return Step(called(item), "created")
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return Step(called(item), "unchanged" if same else "changed")


def _pruned(api: Api, wanted: list[Json], place: Place) -> Iterator[Step]:
    kept = {called(item) for item in wanted}
    for item in installed(api, place):
        if called(item) not in kept:
            api.delete(path_of(item, place.namespace), uid=item["metadata"]["uid"])
            yield Step(called(item), "removed")


def budgets_of(api: Api) -> str:
    """The apiVersion of PodDisruptionBudgets on this server."""
    try:
        api.get("/apis/policy/v1")
    except Rejected as no:
        if no.status != 404:
            raise
        return "policy/v1beta1"
    return "policy/v1"
