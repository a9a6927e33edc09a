"""A cluster whose pods are judged, for the tests of placement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.placement_objects import Placement, Site
from reconciler.clusters.kubernetes.admission.pod_review import placing
from reconciler.clusters.kubernetes.admission.webhook import PATHS, AdmissionService
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.api_features import Features
from reconciler.clusters.kubernetes.names import SLICE, SYSTEM_NAMESPACE
from reconciler.model.cluster_port import Done, Stamp
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.judged import (
    MEMBER,
    gpu_pod,
    namespace,
    patched,
    pod,
)
from tests.support.kube import eventually

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
STAMP = Stamp(3, 7)
PODS = "/api/v1/namespaces/vision-train/pods"


@dataclass
class Judged:
    """A cluster whose pods are judged."""

    api: Api
    placement: Placement
    service: AdmissionService
    patches: bool  # this server can be answered with a patch

    def trial(self, item: Json) -> Json:
        """A pod that is judged and not kept."""
        return trial(self.api, item if self.patches else given_nodes(item))

    def verdict(self, item: Json) -> str:
        """The refusal's text; empty: it would be let in."""
        try:
            self.trial(item)
        except Rejected as no:
            return str(no)
        return ""


def given_nodes(item: Json) -> Json:
    """What becomes of a pod once the webhook's patch was taken."""
    return patched(item, placing(item, "vision"))


def site(port: int) -> Site:
    """Where our webhook is in these tests."""
    return Site("default", SYSTEM_NAMESPACE, f"https://127.0.0.1:{port}")


def started(
    api: Api,
    features: Features,
    port: int,
    admission: Admission = Admission(),  # noqa: B008 - frozen
) -> Placement:
    """With everything known that is there."""
    found = Placement(api, features, admission, site(port))
    for informer in found.informers:
        informer.start()
        informer.wait_synced(10)
    return found


@contextmanager
def judged(api: Api, features: Features, admission: Admission, *, patches: bool = False) -> Iterator[Judged]:
    """A slice's namespace, our webhook, and the objects that send pods there or to policies."""
    for made in ({"metadata": {"name": SYSTEM_NAMESPACE}}, namespace()):
        eventually(lambda made=made: create(api, "/api/v1/namespaces", made), "the namespace")
    # A server looks for a pod's account before anybody judges the pod.
    accounts = "/api/v1/namespaces/vision-train/serviceaccounts"
    eventually(lambda: create(api, accounts, {"metadata": {"name": MEMBER}}), "a member's account")
    service = AdmissionService(api, SYSTEM_NAMESPACE, "127.0.0.1:0", SystemClock(), "127.0.0.1")
    service.start()
    placement = started(api, features, service.port, admission)
    try:
        assert placement.ensure(STAMP, NOW) == Done()
        refused(api)
        if patches:
            eventually(lambda: SLICE in placed(api), "a pod that is given its nodes")
        yield Judged(api, placement, service, patches)
    finally:
        service.stop()
        for informer in placement.informers:
            informer.stop()


def create(api: Api, path: str, item: Json) -> Json | None:
    """None while the server is not ready for it, or something of that name is on its way out."""
    try:
        return api.create(path, item)
    except Rejected as no:
        if no.status not in {403, 409, 500}:
            raise
        found = api.find(f"{path}/{item['metadata']['name']}")
        return found if found and found.get("status", {}).get("phase") in {None, "Active"} else None


def trial(api: Api, item: Json) -> Json:
    """A pod that is judged and not kept."""
    return api.create(f"{PODS}?dryRun=All&x=", item)


def verdict(api: Api, item: Json) -> str:
    """The refusal's text; empty: it would be let in."""
    try:
        trial(api, item)
    except Rejected as no:
        return str(no)
    return ""


def refused(api: Api) -> None:
    """Return once the server has learnt to refuse."""
    told = ""

    def look() -> bool:
        nonlocal told
        told = verdict(api, pod(nodeName="n"))
        return "NodeNameSet" in told

    try:
        eventually(look, "a refusal")
    except AssertionError as error:
        raise AssertionError(f"{error}; it says: {told!r}") from error


def placed(api: Api) -> Json:
    """The node selector of a GPU pod that is made now; empty as long as it is refused."""
    with suppress(Rejected):
        selector: Json = trial(api, gpu_pod())["spec"].get("nodeSelector") or {}
        return selector
    return {}


@contextmanager
def without_patches() -> Iterator[None]:
    """A webhook that changes nothing, for servers that fall at a patch."""
    with pytest.MonkeyPatch.context() as during:
        during.setitem(PATHS, "/mutate", lambda _question, _slice: {"allowed": True})
        yield
