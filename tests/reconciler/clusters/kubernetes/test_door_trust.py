"""GPR objects where main is judged: the door vouches for whom admission names, and their rights count (E4, B10).

A real API server names the senders, a real bare repository holds what a door with a key commits, and a real controller
at level `signature` judges it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.names import RELEASE
from reconciler.gpr_objects.door import DoorSettings, RequestDoor
from reconciler.settings import Settings, Trust
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.trust.machines import machines_of, own_key, signing
from schemas.reading.reader import READER_VERSION
from tests.reconciler.clusters.kubernetes.tenants import as_user
from tests.support.door import PATH, SPEC, Rig
from tests.support.machinekeys import line, private_text
from tests.support.repos import commit
from tests.support.requests import Objects
from tests.support.world import slice_

BO, EVE, CI = "bo@example.com", "eve@example.com", "system:serviceaccount:vision-train:ci"
STATUS_PATH = "slices/vision/gprs/train.yaml"
ADMIN = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "senders"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [
        *({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who} for who in (BO, EVE)),
        {"kind": "ServiceAccount", "name": "ci", "namespace": "vision-train"},
    ],
}


class Judged(Rig):
    """Controller and door have keys that the trust folder names; main is judged by signatures."""

    def __init__(self, plane, folder: Path) -> None:
        trust = folder / "trust"
        trust.mkdir()
        (trust / "allowed_signers").write_text(f"{line('controller')}\n{line('service:door')}\n")
        for name in ("controller", "service:door"):
            file = folder / f"key-{name.replace(':', '-')}"
            file.write_bytes(private_text(name))
            file.chmod(0o600)
        super().__init__(plane, folder)
        members = [{"email": BO}, {"email": "ci@vision-train.serviceaccount.east.invalid"}]
        own = slice_("vision", namespaces=["vision-train", "vision-eval"], members=members)
        commit(self.repo, {"slices/vision/slice.yaml": own})

    def settings(self, name: str) -> Settings:
        key = "key-controller" if name == "controller" else "key-service-door"
        trust = Trust("signature", self.folder / "trust", self.folder / key)
        return Settings(repo=str(self.repo), state=self.folder / name, pushes_per_minute=None, trust=trust)

    def opened(self) -> RequestDoor:
        self.doors += 1
        settings = self.settings(f"door-{self.doors}")
        sign, believes = signing(own_key(settings.trust)), machines_of(settings.trust).controllers()
        store = GitStore(settings.repo, settings.state / "mirror.git", sign=sign)
        cache = DocumentCache(None, READER_VERSION)
        door = RequestDoor(
            self.plane.connect(), store, cache, settings, DoorSettings("east", self.via), believes=believes
        )
        door.start()
        return door

    def objects(self, who: str) -> Objects:
        """The objects of vision-train as somebody has them."""
        api: Api = as_user(self.plane, who)
        return Objects(api, "vision-train")

    def status(self) -> str:
        """The request's status as the controller has it; empty: none."""
        return self.file("egs/status", STATUS_PATH) if STATUS_PATH in self.files("egs/status") else ""


@pytest.fixture
def judged(clean, tmp_path):
    clean.api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{ADMIN['metadata']['name']}")
    clean.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", ADMIN)
    found = Judged(clean, tmp_path)
    found.cycle()
    yield found
    found.close()


def test_a_member_s_object_counts_as_the_member_s_own_change(judged):
    judged.objects(BO).apply("train", **SPEC)
    judged.pass_()
    assert judged.log("%(trailers:key=On-Behalf-Of,valueonly)").strip() == f"{BO} <{BO}>"
    judged.cycle(3)
    assert "phase: Provisioned" in judged.status()


def test_what_a_stranger_sends_is_held_and_told(judged):
    """The cluster lets eve write there; the repository does not know her."""
    judged.objects(EVE).apply("train", **SPEC)
    judged.pass_()
    judged.cycle(3)
    assert "phase:" not in judged.status()
    assert PATH in judged.file("egs/status", "trust.yaml")


def test_a_pipeline_is_a_member_by_its_account_s_address(judged):
    judged.objects(CI).apply("train", **SPEC)
    judged.pass_()
    judged.cycle(3)
    assert "phase: Provisioned" in judged.status()


def test_a_member_s_release_by_annotation_needs_no_review(judged):
    judged.objects(BO).apply("train", **SPEC)
    judged.pass_()
    judged.cycle(5)
    judged.objects(BO).annotate("train", RELEASE, "true")
    judged.pass_()
    judged.cycle(1)
    assert "earlyRelease: true" in judged.file()
    assert "reason: EarlyRelease" in judged.status()


def test_a_deleted_object_s_request_ends_on_behalf_of_whom_it_is_from(judged):
    judged.objects(BO).apply("train", **SPEC)
    judged.pass_()
    judged.cycle(5)
    judged.objects(EVE).delete("train")
    judged.pass_(gone=True)
    judged.cycle(1)
    assert "reason: EarlyRelease" in judged.status()


def test_a_commit_that_looks_like_the_door_s_is_nobody_s(judged):
    """Somebody with push rights copies the trailer."""
    from tests.support.world import gpr

    commit(
        judged.repo,
        {PATH: gpr("vision", "train")},
        message=f"Create vision/train\n\nOn-Behalf-Of: Bo <{BO}>\n",
    )
    judged.cycle(3)
    assert "phase:" not in judged.status()
    assert PATH in judged.file("egs/status", "trust.yaml")
