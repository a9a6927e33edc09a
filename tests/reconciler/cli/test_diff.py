"""`egs diff` (H13): what a controller would change in clusters, and why, without a write anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.acting.actions import Action, Do
from reconciler.cli.answers.cluster_diff import WORDS, action_row
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.api.informer import key_of
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.compose import controller
from reconciler.processes.applier import Applier
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from schemas.documents.cluster import Cluster
from schemas.reading.reader import READER_VERSION
from schemas.reading.units import format_instant
from tests.reconciler.cli.rig import NOW, Answer, Control, egs, fleet, folder, minutes, repository, request
from tests.support.kube import Plane, cpu_node, eventually, gpu_node
from tests.support.repos import commit, git
from tests.support.world import START, cluster, parsed, slice_

RBAC = "/apis/rbac.authorization.k8s.io/v1"
POOL = {
    "name": "h100",
    "gpuShape": "H100-80GB",
    "gpusPerNode": 8,
    "memoryPerGpu": 80,
    "nodes": ["gpu-1", "gpu-2"],
}
EVERYTHING = (
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/secrets",
    "/api/v1/resourcequotas",
    "/apis/networking.k8s.io/v1/networkpolicies",
    f"{RBAC}/roles",
    f"{RBAC}/rolebindings",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/batch/v1/jobs",
    "/apis/events.k8s.io/v1/events",
)
"""Every kind that the driver writes."""


def real(**spec: object) -> str:
    """A cluster on the control plane of the tests."""
    base: dict[str, object] = {"driver": "kubernetes", "access": {"kubeconfig": "east"}, "pools": [POOL]}
    return cluster(**(base | {"admission": {"mode": "none"}} | spec))  # type: ignore[arg-type]


def diff(repo: Path, *args: object) -> Answer:
    """At the instant at which the controllers of these tests stand."""
    return egs("diff", "--repo", repo, "--now", NOW, *args)


def east(answer: Answer) -> dict[str, Any]:
    """What is said of the one cluster."""
    (row,) = answer.json["clusters"]
    assert row["name"] == "east"
    return row  # type: ignore[no-any-return]


def objects(row: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Found and repair, by object."""
    return {d["object"]: (d["found"], d["repair"]) for d in row["differences"]}


class Ours:
    """A repository, a real cluster, and a controller over both that tests start and step."""

    def __init__(self, plane: Plane, folder: Path, **files: str) -> None:
        self.plane, self.keys = plane, folder / "keys"
        self.keys.mkdir()
        (self.keys / "east").write_text(plane.kubeconfig.read_text())
        for node in (gpu_node("gpu-1"), gpu_node("gpu-2"), gpu_node("stray"), cpu_node("cpu-1")):
            plane.api.create("/api/v1/nodes", node)
        self.repo = repository(
            folder / "r.git", fleet(**{"clusters/east.yaml": real()}, **request("a/run"), **files)
        )
        settings = Settings(
            repo=str(self.repo), state=folder / "state", pushes_per_minute=None, kubeconfigs=self.keys
        )
        self._controller = controller(settings, adopt=True)
        self.now = START

    def settle(self) -> str:
        """Cycles until `a/run` has its node and nothing differs; the node."""

        def turn() -> list[str]:
            wake = self._controller.cycle(self.now).wake
            self.now = min(max(self.now, wake), minutes(5))
            return [name for name in ("gpu-1", "gpu-2") if self._serves(name)]

        (node,) = eventually(turn, "a node that serves")
        eventually(lambda: turn() and self.diff().code == 0, "nothing that differs")
        return node

    def close(self) -> None:
        """No thread of a test outlives it."""
        for _, driver in self._controller._ports.drivers._open.values():  # type: ignore[attr-defined]
            driver.close()

    def versions(self) -> dict[str, Any]:
        """What was ever written through our client, with when, and Git; the server's own controllers never rest."""
        found = {
            f"{path} {key_of(item)}": [w for w in item["metadata"]["managedFields"] if "egs" in w["manager"]]
            for path in EVERYTHING
            for item in self.plane.api.items(path)
            if item["metadata"].get("managedFields")
        }
        assert any(found.values())
        written: dict[str, Any] = {key: writes for key, writes in found.items() if writes}
        return written | {"refs": git(self.repo, "for-each-ref")}

    def diff(self, *args: object) -> Answer:
        """With the folder of kubeconfigs; nothing may have been written by it."""
        before = self.versions()
        now = format_instant(self.now)
        answer = egs("diff", "--repo", self.repo, "--kubeconfigs", self.keys, "--now", now, *args)
        assert self.versions() == before
        return answer

    def node(self, name: str) -> Json:
        """As the server has it."""
        return self.plane.api.get(f"/api/v1/nodes/{name}")

    def _serves(self, name: str) -> bool:
        """Whether it is given to a slice."""
        return SLICE in self.node(name)["metadata"]["labels"]


@pytest.fixture
def ours(kube: Plane, tmp_path: Path) -> Iterator[Ours]:
    made = Ours(kube, tmp_path)
    yield made
    made.close()


def test_it_shows_what_a_first_controller_would_make_and_makes_nothing(ours: Ours) -> None:
    answer = ours.diff("-o", "json")
    assert answer.code == 1
    assert "first controller" in answer.err
    assert answer.json["statusTime"] is None
    found = objects(east(answer))
    assert found["Namespace a"] == found["Namespace b"] == ("missing", True)
    assert found["Node gpu-1"] == found["Node gpu-2"] == ("changed", True)
    assert not {"Node stray", "Node cpu-1"} & set(found)


def test_drift_is_shown_and_neither_repaired_nor_confused_with_what_is_others(ours: Ours) -> None:
    """A label of ours, a RoleBinding, and a taint of somebody else's."""
    bad = ours.settle()
    assert ours.diff("-o", "json").json["clusters"][0]["actions"] == []
    (free,) = {"gpu-1", "gpu-2"} - {bad}
    api = ours.plane.api
    api.merge(f"/api/v1/nodes/{bad}", {"metadata": {"labels": {SLICE: None}}})
    api.delete(f"{RBAC}/namespaces/a/rolebindings/egs-members")
    taints = [*ours.node(free)["spec"]["taints"], {"key": "example.com/theirs", "effect": "NoSchedule"}]
    api.merge(f"/api/v1/nodes/{free}", {"spec": {"taints": taints}})

    answer = ours.diff("-o", "json")
    assert answer.code == 1
    assert objects(east(answer)) == {
        f"Node {bad}": ("changed", True),
        "RoleBinding a/egs-members": ("missing", True),
    }
    assert "2 differences and 0 actions of the plan in 1 cluster; nothing was changed" in answer.err
    table = ours.diff().out
    assert "RoleBinding a/egs-members" in table
    assert "repair" in table


def test_a_node_that_lost_its_lease_is_to_be_handed_over_again(ours: Ours) -> None:
    bad = ours.settle()
    notes = {key: None for key in ours.node(bad)["metadata"]["annotations"] if key.endswith("/lease")}
    ours.plane.api.merge(f"/api/v1/nodes/{bad}", {"metadata": {"annotations": notes}})
    (action,) = east(ours.diff("-o", "json"))["actions"]
    assert action == {
        "action": "Add",
        "node": bad,
        "request": "a/run",
        "slice": "a",
        "end": action["end"],
        "why": "a/run runs",
    }


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        pytest.param(
            "clusters/east.yaml", real(mode="observe"), "ClusterObserved", id="of an observed cluster"
        ),
        pytest.param("clusters/east.yaml", real(paused=True), "ClusterPaused", id="of a paused cluster"),
        pytest.param("slices/b/slice.yaml", slice_("b", paused=True), "SlicePaused", id="of a paused slice"),
    ],
)
def test_what_a_controller_leaves_alone_says_why(ours: Ours, path: str, text: str, reason: str) -> None:
    ours.settle()
    commit(ours.repo, {path: text})
    ours.plane.api.delete(f"{RBAC}/namespaces/b/rolebindings/egs-members")
    eventually(lambda: ours.diff().code == 1, "the difference")
    row = east(ours.diff("-o", "json"))
    assert objects(row) == {"RoleBinding b/egs-members": ("missing", False)}
    assert [d["reason"] for d in row["differences"]] == [reason]
    assert "leave" in ours.diff().out


def test_one_cluster_that_does_not_answer_hides_no_other(ours: Ours) -> None:
    """And one kubeconfig named by hand is enough for one cluster."""
    config = ours.plane.kubeconfig.read_text()
    (ours.keys / "west").write_text(re.sub(r"https://[\w.:-]+", "https://127.0.0.1:9", config))
    commit(ours.repo, {"clusters/west.yaml": real(name="west", access={"kubeconfig": "west"})})
    answer = ours.diff("-o", "json")
    assert answer.code == 3
    rows = {row["name"]: row for row in answer.json["clusters"]}
    assert rows["east"]["reached"]
    assert rows["east"]["differences"]
    assert (rows["west"]["reached"], rows["west"]["reason"]) == (False, "ClusterUnreachable")
    assert answer.err.count("not looked at") == 1
    own = egs(
        "diff",
        "--repo",
        ours.repo,
        "--now",
        format_instant(ours.now),
        "--cluster",
        "east",
        "--kubeconfig",
        ours.plane.kubeconfig,
        "-o",
        "json",
    )
    assert own.code == 1
    assert east(own)["differences"] == rows["east"]["differences"]


# -- without a control plane ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "args", "sentence"),
    [
        pytest.param(
            real(), (), "--kubeconfigs DIR with a file east, or --cluster east --kubeconfig FILE", id="named"
        ),
        pytest.param(
            real(access={"inCluster": True}), (), "give --cluster east --kubeconfig FILE", id="from inside"
        ),
        pytest.param(
            real(access={"secret": "east"}), (), "give --cluster east --kubeconfig FILE", id="a Secret"
        ),
        pytest.param(real(access={"pull": True}), (), "there is no status here", id="no report"),
        pytest.param(cluster(), (), "simulated and lives in its controller's folder", id="simulated"),
        pytest.param(
            cluster(), ("--state", "nowhere"), "nowhere/clusters/east.json cannot be read", id="no state"
        ),
        pytest.param(
            real(),
            ("--cluster", "east", "--kubeconfig", "nofile"),
            "nofile cannot be read",
            id="no kubeconfig",
        ),
    ],
)
def test_without_a_way_in_it_says_what_to_give(
    tmp_path: Path, manifest: str, args: tuple[str, ...], sentence: str
) -> None:
    here = folder(tmp_path / "plain", fleet(**{"clusters/east.yaml": manifest}))
    answer = diff(here, *args, "-o", "json")
    assert answer.code == 3
    assert sentence in answer.err
    assert sentence in east(answer)["message"]
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        pytest.param(
            ("--cluster", "eat"), 1, "there is no cluster eat; did you mean east", id="an unknown cluster"
        ),
        pytest.param(
            ("--kubeconfig", "f"), 2, "--kubeconfig reaches one cluster", id="one file for two clusters"
        ),
    ],
)
def test_wrong_words(tmp_path: Path, args: tuple[str, ...], code: int, sentence: str) -> None:
    here = folder(tmp_path / "plain", fleet(**{"clusters/west.yaml": cluster("west")}))
    answer = diff(here, *args)
    assert (answer.code, answer.out) == (code, "")
    assert sentence in answer.err


def test_a_simulated_cluster_is_looked_at_without_letting_its_time_pass(tmp_path: Path) -> None:
    repo, state = repository(tmp_path / "r.git", fleet(**request("a/run"))), tmp_path / "state"
    control = Control(repo, state)
    control.run(minutes(5))
    file = state / "clusters" / "east.json"
    manifest = parsed("clusters/east.yaml", cluster(nodes=4))
    assert isinstance(manifest, Cluster)
    EmbeddedCluster("east", manifest.spec, file).submit(
        Job("train", "a", 8, timedelta(minutes=30)), minutes(5)
    )
    before = file.read_bytes()
    assert egs("diff", "--repo", repo, "--state", state, "--now", "2026-11-21T08:05:00Z").code == 0
    ended = egs("diff", "--repo", repo, "--state", state, "--now", "2026-11-21T11:00:00Z", "-o", "json")
    assert [(a["action"], a["request"]) for a in east(ended)["actions"]] == [("Remove", "a/run")]
    commit(repo, {"slices/b/slice.yaml": slice_("b", namespaces=["b", "more"])})
    more = egs("diff", "--repo", repo, "--state", state, "--now", "2026-11-21T08:05:00Z", "-o", "json")
    assert objects(east(more)) == {"Namespace more": ("missing", True)}
    assert file.read_bytes() == before


def test_of_a_pulled_cluster_it_shows_what_the_applier_reports(tmp_path: Path) -> None:
    """A2: the centre has no way in, and neither has the person."""
    repo = repository(
        tmp_path / "r.git", fleet(**{"clusters/east.yaml": cluster(nodes=2, access={"pull": True})})
    )
    control = Control(repo, tmp_path / "state")
    control.run(minutes(0))
    silent = diff(repo, "-o", "json")
    assert silent.code == 3
    assert "has not reported yet" in east(silent)["message"]

    settings = Settings(repo=str(repo), state=tmp_path / "inside", pushes_per_minute=None)
    settings.state.mkdir()
    store = GitStore(str(repo), settings.state / "mirror.git")
    inside: list[EmbeddedCluster] = []

    def opened(spec: Any) -> EmbeddedCluster:
        inside.append(EmbeddedCluster("east", spec, tmp_path / "east.json"))
        return inside[-1]

    applier = Applier(store, DocumentCache(None, READER_VERSION), "east", opened, settings, "applier")
    for second in range(5):
        applier.cycle(START + timedelta(seconds=second))
    assert diff(repo).code == 0
    commit(repo, {"slices/b/slice.yaml": slice_("b", namespaces=["b", "more"])})
    told = diff(repo, "-o", "json")
    assert told.code == 1
    assert objects(east(told)) == {"Slice b": ("changed", True)}
    store.close()


@pytest.mark.parametrize("do", Do)
def test_every_action_has_words(do: Do) -> None:
    """H13: what the controller would do is told, whatever it is."""
    row = action_row(Action(do, "east", "h100-1", "vision/train", slice="vision", count=3))
    assert row["why"]
    assert WORDS[row["action"]]
