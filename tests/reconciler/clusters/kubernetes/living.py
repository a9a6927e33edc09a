"""Everything that a driver does in a cluster, once: for tests of what it may do and of what goes wrong meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from reconciler.clusters.kubernetes.admission import webhook_certificates
from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.driver import Home, KubernetesCluster
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.model.cluster_port import Answer, Busy, Done, LeaseRef, Note, SliceTerms
from schemas.documents.cluster import Admission, Checks, Exit
from tests.reconciler.clusters.kubernetes.tenants import FIRST, NEWER, NOW, namespace, pod
from tests.reconciler.clusters.rig import KUBERNETES_SPEC, placed
from tests.support.faulty import Wire
from tests.support.kube import Plane, eventually, gpu_node

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NODES = "/api/v1/nodes"
A, B, C = "h100-1", "h100-2", "h100-3"
SPEECH = LeaseRef("gpr-00000002-bbbb", "speech/tune", "speech", NOW + 60 * MINUTE)
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + 60 * MINUTE)
TERMS = SliceTerms("speech", ("speech",), ("bo@example.com",), 16)
SPEC = KUBERNETES_SPEC.model_copy(
    update={
        "exit": Exit(force=True),
        "admission": Admission(mode="webhook"),
        "checks": Checks(image="ghcr.io/example/checks:1"),
    }
)
OBSERVED = SPEC.model_copy(update={"admission": Admission(mode="none")})
HOME = Home(webhook="https://127.0.0.1:1")
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
JOBS = f"/apis/batch/v1/namespaces/{SYSTEM_NAMESPACE}/jobs"


def h100(name: str) -> Json:
    """A node of the spec's first pool."""
    return gpu_node(name, 8, "NVIDIA-H100-80GB", **{"nvidia.com__gpu.memory": "81920"})


def prepared(plane: Plane) -> None:
    """What an installation, an administrator and a slice's people have made."""
    for name in (A, B, C):
        plane.api.create(NODES, h100(name))
    namespace(plane, SYSTEM_NAMESPACE)
    webhook_certificates.shared(plane.api, SYSTEM_NAMESPACE, ["127.0.0.1"], NOW)
    plane.api.delete(f"{CLASSES}/fast")
    meta = {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta}
    plane.api.create(CLASSES, {**body, "provisioner": "example.com/none"})
    eventually(
        lambda: plane.api.find(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/default"), "an account"
    )


def done(answer: Answer) -> None:
    """It was done."""
    assert answer == Done(), answer


def under_way(answer: object) -> None:
    """It goes on."""
    assert isinstance(answer, Busy), answer


@dataclass
class Life:
    """One driver of a prepared cluster, and all that it can be told."""

    plane: Plane
    api: Api
    driver: KubernetesCluster = field(init=False)

    def __post_init__(self) -> None:
        self.driver = KubernetesCluster("east", SPEC, self.api, HOME)

    def close(self) -> None:
        """No thread of a test outlives it, and no webhook that nobody answers."""
        self.driver.close()
        self.plane.api.delete(f"{CLASSES}/fast")

    def whole(self) -> None:
        """From the first look to the last."""
        self.driver.observe(NOW)
        self.slice()
        self.node()
        self.checked()
        self.told()
        self.fleet()
        self.driver.observe(NOW)
        done(self.gone())

    def slice(self) -> None:
        """A slice with one pod that runs, and one that came in while nobody judged it."""
        done(self.driver.ensure_slice(TERMS, FIRST, NOW))
        plane, spaces = self.plane, "/api/v1/namespaces/speech"
        eventually(lambda: plane.api.find(f"{spaces}/serviceaccounts/default"), "an account for pods")
        plane.api.create(f"{spaces}/pods", pod("late", 8, nodeSelector={"no": "where"}))
        done(self.driver.add(A, SPEECH, FIRST, NOW))
        plane.api.create(f"{spaces}/pods", pod("train", 8, nodeName=A, **placed("speech")))
        eventually(lambda: self.driver._gpu_pods(A), "the pod on its node")
        eventually(lambda: "speech/late" in self.driver._pods.items(), "the pod that waits")
        known = self.driver._known()  # as the fleet's turn does, when the webhook answers again
        self.driver._begun().placement.repair(known.pods, known.slices)
        done(self.driver.show_end(SPEECH, FIRST, NOW))

    def node(self) -> None:
        """Taken out of service, and taken back with all that runs on it."""
        self.driver._nodes.forget(C, 10**18)  # a watch is always a moment behind
        done(self.driver.isolate(C, "Xid79", FIRST, NOW))
        done(self.driver.restore(C, FIRST, NOW))
        done(self.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW))
        under_way(self.driver.remove(A, SPEECH.uid, FIRST, NOW + 2 * MINUTE))
        under_way(self.driver.remove(A, SPEECH.uid, FIRST, NOW + 2 * MINUTE + 2 * SECOND))
        eventually(lambda: not self.driver._gpu_pods(A), "the pod is gone")
        done(self.driver.remove(A, SPEECH.uid, FIRST, NOW + 4 * MINUTE))

    def checked(self) -> None:
        """By a Job that another life of ours had made already, and whose pod ends without a word."""
        driver = self.driver
        under_way(driver.check(B, "pre", VISION, FIRST, NOW))
        driver._checks._records.informer.forget(f"{SYSTEM_NAMESPACE}/checks-{B}", 10**18)
        under_way(driver.check(B, "pre", VISION, FIRST, NOW))
        under_way(driver.check(B, "pre", VISION, FIRST, NOW + SECOND))
        job = eventually(lambda: next(iter(driver._checks._jobs.items()), None), "the Job")
        driver._checks._jobs.forget(job, 10**18)
        under_way(driver.check(B, "pre", VISION, FIRST, NOW + SECOND))
        found = eventually(lambda: next(iter(driver._checks._pods.items()), None), "its pod")
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "message": ""}}
        shown = {"name": "checks", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Succeeded", "containerStatuses": [{**shown, "state": state}]}
        self.plane.api.merge(
            f"/api/v1/namespaces/{found.replace('/', '/pods/')}/status",
            {"status": status},
            "strategic-merge-patch",
        )
        eventually(lambda: driver._checks._pods.items()[found].ended, "its end")
        results = driver.check(B, "pre", VISION, FIRST, NOW + 2 * SECOND)
        assert isinstance(results, tuple), results

    def told(self) -> None:
        """One note, in the slice's namespace."""
        self.driver.announce((Note("k", "Started", "It started.", NOW, "speech", "speech/tune"),), NOW)

    def fleet(self) -> None:
        """Made, taken over by a newer leader, and taken away where the manifest wants none of it."""
        done(self.driver.ensure_fleet(FIRST, NOW))
        done(self.driver.ensure_fleet(NEWER, NOW))
        spec = SPEC.model_copy(update={"admission": Admission(mode="none")})
        other = KubernetesCluster("east", spec, self.api, HOME)
        try:
            done(other.ensure_fleet(NEWER, NOW))
        finally:
            other.close()

    def gone(self) -> Answer:
        """The slice, with its namespace."""
        found: list[Answer] = []

        def look() -> bool:
            found[:] = [self.driver.remove_slice("speech", NEWER, NOW)]
            return not isinstance(found[0], Busy)

        eventually(look, "the slice is gone")
        return found[0]


@dataclass
class Site:
    """A driver of a prepared cluster, and what stands between the two."""

    plane: Plane
    driver: KubernetesCluster
    wire: Wire

    def touch(self, node: str) -> None:
        """Somebody else changes it."""
        self.plane.api.merge(f"{NODES}/{node}", {"metadata": {"annotations": {"touched": uuid4().hex}}})
