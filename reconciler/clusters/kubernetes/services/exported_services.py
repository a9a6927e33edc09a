"""Exports Services of slices where a cluster serves the Multi-Cluster Services API: an offer of `optional_objects`.

People choose Services by a label, so exports follow the Services: both are watched while some slice wants it. Cilium's
policies are kept only beside exports; where their kind is served and may not be used, the whole is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import EXPORTED
from reconciler.clusters.kubernetes.services.export_objects import (
    CILIUM,
    CILIUM_POLICIES,
    CILIUM_POLICY,
    CILIUM_VERSION,
    EXPORT,
    EXPORTS,
    GROUP,
    VERSIONS,
    Served,
    asked,
    export_objects,
    shown,
)
from reconciler.clusters.kubernetes.tenancy.optional_objects import OptionalObjects
from reconciler.clusters.kubernetes.tenancy.slice_objects import Kind
from reconciler.model.cluster_port import SliceTerms
from reconciler.model.service_port import MOST_EXPORTS, ExportsView
from schemas.errors import Fault

SERVICES = "/api/v1/services"
OPEN = "; network policies by address stay as they are until then"


class Mcs:
    """What a slice has of the Multi-Cluster Services API (`optional_objects.Offer`)."""

    markers = frozenset({EXPORT, CILIUM_POLICY})
    following = frozenset({EXPORT})
    is_in_turn = False

    def __init__(self, project: str, cluster: str, wake: Callable[[], None]) -> None:
        self._project, self._cluster, self._wake = project, cluster, wake
        self._services: Informer[bool] | None = None
        self.omitted: dict[str, int] = {}
        """By slice, Services that ask for an export and get none, because there are too many."""

    def wants(self, terms: SliceTerms) -> bool:
        return terms.peers is not None

    def served(self, api: Api) -> Served | None:
        """The preferred version that the server has, and whether it has Cilium's policies."""
        version = next((v for v in VERSIONS if EXPORTS in _resources(api, f"/apis/{GROUP}/{v}")), None)
        if version is None:
            return None
        return Served(version, CILIUM_POLICIES in _resources(api, f"/apis/{CILIUM}/{CILIUM_VERSION}"))

    def kinds(self, served: Served) -> tuple[Kind, ...]:
        return served.kinds

    def beside(self, api: Api) -> tuple[Informer[Any], ...]:
        """Services with the label, in all namespaces."""
        self._services = Informer(api, SERVICES, _read_service, f"{EXPORTED}=true", self._wake)
        return (self._services,)

    def objects(self, terms: SliceTerms, served: Served) -> tuple[Json, ...]:
        services = self._by_namespace()
        self.omitted[terms.name] = max(0, len(asked(terms, services)) - MOST_EXPORTS)
        return export_objects(terms, self._project, served, services)

    def _by_namespace(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in () if self._services is None else self._services.items():
            namespace, _, name = key.partition("/")
            found.setdefault(namespace, []).append(name)
        return found

    def missing(self) -> str:
        return (
            f"cluster {self._cluster} does not serve ServiceExport of {GROUP}, so no Service is exported there; "
            "install an implementation of the Multi-Cluster Services API, or set spec.services.across of the slice "
            "to none"
        )

    def unread(self, no: Fault) -> str:
        return f"exports in cluster {self._cluster} cannot be read ({no}); the controller looks again in a minute"

    def forbidden(self, no: Fault) -> str:
        return (
            f"the controller may not export Services in cluster {self._cluster} ({no}); set `mcs: true` in the values "
            "of its installation there, or set spec.services.across of the slice to none"
        )


class Exports(OptionalObjects[Served]):
    """One project's exports in one cluster. Calls must come from one thread at a time."""

    def __init__(self, api: Api, project: str, cluster: str, wake: Callable[[], None]) -> None:
        self._mcs = Mcs(project, cluster, wake)
        super().__init__(api, project, self._mcs)
        self._by_address: bool | None = None
        """True if peers are let in by address; None: the cluster was never read."""

    def views(self, now: datetime) -> dict[str, ExportsView]:
        """By slice, of those that want it."""
        if self.problem:
            stays = OPEN if self._by_address and self.is_unread else ""
            none = ExportsView(problem=self.problem + stays)
            return dict.fromkeys(sorted(self.wanting), none)
        served = self.served
        if served is None:
            return {}
        items = sorted(self.items(), key=lambda item: (item.namespace, item.name))
        return {
            slice_: ExportsView(
                tuple(
                    shown(item.namespace, item.name, item.body, item.made, now)
                    for item in items
                    if item.slice == slice_ and item.kind == EXPORT
                ),
                self._mcs.omitted.get(slice_, 0),
                served.has_cilium,
            )
            for slice_ in sorted(self.wanting)
        }

    def narrowed(self, terms: SliceTerms, now: datetime, is_open: bool) -> SliceTerms:
        """Without the peers' addresses where policies name clusters, or where nothing is exported.

        What was let in stays so while the cluster cannot be read. `is_open`: the slice has policies by address now.
        """
        if not any(peer.addresses for peer in terms.peers or ()):
            return terms
        served = self.served_for(terms, now)
        if not self.is_unread:
            self._by_address = served is not None and not served.has_cilium
        if is_open if self._by_address is None else self._by_address:
            return terms
        return replace(terms, peers=tuple(replace(peer, addresses=()) for peer in terms.peers or ()))


def _read_service(item: Json) -> bool | None:
    """One that is being deleted is exported no more."""
    return None if "deletionTimestamp" in item["metadata"] else True


def _resources(api: Api, path: str) -> set[str]:
    return {found["name"] for found in (api.find(path) or {}).get("resources") or ()}
