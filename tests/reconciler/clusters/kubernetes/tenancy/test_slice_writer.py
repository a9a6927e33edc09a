"""Slices on a real API server: made, adopted, removed; and what none of that may touch (issue 3 §1, §2)."""

from __future__ import annotations

import pytest

from reconciler.clusters.kubernetes.names import WORKLOAD_ACCOUNT
from reconciler.model.cluster_port import Busy, Done, Refused
from tests.reconciler.clusters.kubernetes.tenants import (
    BO,
    CLAIM,
    FIRST,
    NEWER,
    NOW,
    OFFERED,
    OLD,
    QUOTA,
    ensured,
    finished,
    is_alive,
    meta_of,
    namespace,
    objects_of,
    opened,
    pod,
    refused,
    terms,
)
from tests.support.kube import eventually

# --- what a slice has ---


def test_a_slice_gets_its_namespaces_with_all_it_needs(kube, slices):
    """C1, B4, B10: namespace, walls, quota, rights."""
    ensured(slices, terms("vision", "vision", "vision-dev"))
    assert slices.namespaces() == {"vision": ("vision", "vision-dev")}
    for name in ("vision", "vision-dev"):
        have = objects_of(kube.api, name)
        kinds = sorted(key.partition("/")[0] for key in have)
        assert kinds == [
            *["networkpolicies"] * 4,
            *["resourcequotas"],
            *["rolebindings"] * 4,
            *["roles"] * 3,
            *["serviceaccounts"] * 3,
        ]
        for item in have.values():
            assert item["metadata"]["labels"] == {
                "app.kubernetes.io/managed-by": "egs",
                "egs.dev/slice": "vision",
                "egs.dev/project": "default",
            }
            assert item["metadata"]["annotations"]["egs.dev/stamp"] == "1.2"
    assert slices.differences((terms("vision", "vision", "vision-dev"),), NOW) == ()


def test_what_is_so_already_costs_no_call(kube, slices):
    ensured(slices, terms())
    before = kube.api.calls
    ensured(slices, terms())
    slices.differences((terms(),), NOW)
    assert kube.api.calls == before


@pytest.mark.parametrize(
    ("gpus", "want"),
    [
        pytest.param(None, None, id="no bound, no quota"),
        pytest.param(0, None, id="never a quota of 0: pods wait as Pending"),
        pytest.param(
            3000, {"nvidia.com/gpu": "3k", "nvidia.com/mig-3g.40gb": "6k"}, id="whole GPUs and cut ones"
        ),
    ],
)
def test_the_quota_is_the_slices_bound(kube, slices, gpus, want):
    """C11."""
    ensured(slices, terms(gpus=gpus))
    quota = kube.api.find(QUOTA)
    if want is None:
        assert quota is None
    else:
        hard = quota["spec"]["hard"]
        assert {key: hard[f"requests.{key}"] for key in want} == want
        assert all(key.startswith("requests.nvidia.com/") for key in hard), "CPU pods are never counted"
    assert slices.differences((terms(gpus=gpus),), NOW) == ()


def test_only_gpu_pods_beyond_the_bound_are_refused(kube, slices):
    """C3, C11: within it they are Pending, without a single node; CPU pods are nobody's business."""
    kube.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "x"}})
    ensured(slices, terms(gpus=8))
    pods = "/api/v1/namespaces/vision/pods"
    eventually(
        lambda: kube.api.find("/api/v1/namespaces/vision/serviceaccounts/default"), "the default account"
    )
    eventually(lambda: (kube.api.get(QUOTA).get("status") or {}).get("hard"), "the quota's status")
    assert kube.api.create(pods, pod("first", 8))["status"]["phase"] == "Pending"
    assert refused(lambda: kube.api.create(pods, pod("second", 1))) == 403
    assert kube.api.create(pods, pod("cpu"))["status"]["phase"] == "Pending"


def test_a_changed_bound_changes_the_quota_and_none_takes_it_away(kube, slices):
    ensured(slices, terms(gpus=8))
    ensured(slices, terms(gpus=16))
    assert kube.api.get(QUOTA)["spec"]["hard"]["requests.nvidia.com/gpu"] == "16"
    ensured(slices, terms(gpus=None))
    assert kube.api.find(QUOTA) is None


# --- namespaces that were there, and others' ---


def test_a_namespace_that_was_there_is_adopted_and_outlives_its_slice(kube, slices):
    """C2: what people had in it stays, ours goes."""
    namespace(kube, "vision", labels={"team": "x"}, annotations={"note": "ours", **OFFERED})
    kube.api.create(
        "/api/v1/namespaces/vision/configmaps", {"metadata": {"name": "kept"}, "data": {"a": "b"}}
    )
    eventually(lambda: slices._spaces.find("vision"), "the namespace")
    ensured(slices, terms())
    meta = meta_of(kube, "vision")
    assert (
        meta["labels"].items()
        >= {"team": "x", "egs.dev/slice": "vision", "egs.dev/project": "default"}.items()
    )
    assert "egs.dev/adopted" in meta["annotations"]
    assert finished(lambda now: slices.remove("vision", False, NEWER, now)) == Done()
    meta = meta_of(kube, "vision")
    assert {k: v for k, v in meta["labels"].items() if k != "kubernetes.io/metadata.name"} == {"team": "x"}
    assert meta["annotations"] == {"note": "ours", **OFFERED}
    assert objects_of(kube.api, "vision") == {}
    assert kube.api.find("/api/v1/namespaces/vision/configmaps/kept") is not None
    assert slices.namespaces() == {}


@pytest.mark.parametrize(
    "notes",
    [
        pytest.param({}, id="nobody offers"),
        pytest.param({"egs.dev/adopt": "other"}, id="another project is offered"),
        pytest.param({"egs.dev/adopted": "true"}, id="only bears our own annotation"),
    ],
)
def test_a_namespace_that_is_not_offered_is_refused_until_it_is(kube, slices, notes):
    """B6: whoever may write manifests gets no rights over what others run."""
    namespace(kube, "argocd", annotations=notes)
    eventually(lambda: slices._spaces.find("argocd"), "the namespace")
    before = meta_of(kube, "argocd")
    wanted = terms("vision", "argocd")
    answer = slices.ensure(wanted, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NamespaceNotOffered"
    offer = "kubectl annotate namespace argocd egs.dev/adopt=default --overwrite"
    assert f"`{offer}`" in answer.message
    (difference,) = (d for d in slices.differences((wanted,), NOW) if "argocd" in d.object)
    assert difference.detail == answer.message
    assert meta_of(kube, "argocd") == before
    assert objects_of(kube.api, "argocd") == {}
    kube.api.merge("/api/v1/namespaces/argocd", {"metadata": {"annotations": OFFERED}})
    eventually(lambda: slices._spaces.find("argocd").offered == "default", "the offer")
    ensured(slices, wanted)
    kube.api.merge("/api/v1/namespaces/argocd", {"metadata": {"annotations": {"egs.dev/adopt": None}}})
    eventually(lambda: not slices._spaces.find("argocd").offered, "its end")
    ensured(slices, wanted)


def test_a_namespace_that_came_up_while_it_was_about_to_be_made_is_not_adopted(kube, slices):
    """B6: our watch is a little late, and the claim says already that we make it."""
    slices._spaces.informer.stop()
    namespace(kube, "argocd")
    for _ in range(2):
        answer = slices.ensure(terms("vision", "argocd"), FIRST, NOW)
        assert isinstance(answer, Refused)
        assert answer.reason == "NamespaceNotOffered"
    assert "labels" not in meta_of(kube, "argocd") or "egs.dev/slice" not in meta_of(kube, "argocd")["labels"]
    assert objects_of(kube.api, "argocd") == {}


@pytest.mark.parametrize(
    ("slice_", "name", "reason"),
    [
        pytest.param("speech", "vision", "NamespaceTaken", id="another slice's"),
        pytest.param("speech", "theirs", "NamespaceTaken", id="another project's"),
        pytest.param("speech", "kube-system", "NamespaceProtected", id="the cluster's own"),
        pytest.param("speech", "default", "NamespaceProtected", id="everybody's"),
        pytest.param("speech", "egs-system", "NamespaceProtected", id="the controller's"),
    ],
)
def test_a_namespace_that_is_not_free_is_refused_and_nothing_is_touched(kube, slices, slice_, name, reason):
    """C1, B10."""
    ensured(slices, terms())
    namespace(kube, "theirs", labels={"egs.dev/slice": "speech", "egs.dev/project": "other"})
    eventually(lambda: slices._spaces.find("theirs"), "the namespace")
    before = meta_of(kube, name)
    answer = slices.ensure(terms(slice_, "speech", name), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == reason
    assert meta_of(kube, name) == before
    assert meta_of(kube, "speech") == {}


def test_two_projects_share_a_cluster_but_no_slices_name(kube, slices):
    """Nodes bear the name of a slice alone; once it is gone the name is free."""
    other = opened(kube.api, "other")
    ensured(slices, terms())
    eventually(lambda: other._claims.get("vision").version, "the claim")
    answer = other.ensure(terms("vision", "elsewhere"), OLD, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "SliceTaken"
    assert other.ensure(terms("speech"), OLD, NOW) == Done()
    assert (dict(slices.namespaces()), dict(other.namespaces())) == (
        {"vision": ("vision",)},
        {"speech": ("speech",)},
    )
    finished(lambda now: slices.remove("vision", False, FIRST, now))
    eventually(lambda: other._claims.get("vision").namespaces is None, "the tombstone")
    assert other.ensure(terms("vision", "elsewhere"), OLD, NOW) == Done()
    other.stop()


def test_an_object_of_somebody_elses_is_not_overwritten(kube, slices):
    namespace(kube, "vision", annotations=OFFERED)
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "egs-gpus"},
        "spec": {"hard": {"pods": "1"}},
    }
    kube.api._json("POST", "/api/v1/namespaces/vision/resourcequotas", {"fieldManager": "theirs"}, body)
    eventually(lambda: slices._spaces.find("vision"), "the namespace")
    answer = slices.ensure(terms(), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "ObjectTaken"
    assert kube.api.get(QUOTA)["spec"]["hard"] == {"pods": "1"}
    finished(lambda now: slices.remove("vision", False, NEWER, now))
    assert kube.api.find(QUOTA) is not None


# --- changes of a slice ---


def test_a_namespace_that_leaves_a_slice_loses_the_mark_and_our_objects_only(kube, slices):
    """C2: it is not even deleted when we made it."""
    ensured(slices, terms("vision", "vision", "vision-dev"))
    kube.api.create("/api/v1/namespaces/vision-dev/configmaps", {"metadata": {"name": "kept"}})
    ensured(slices, terms("vision", "vision"), NEWER)
    assert slices.namespaces() == {"vision": ("vision",)}
    assert objects_of(kube.api, "vision-dev") == {}
    assert "egs.dev/slice" not in meta_of(kube, "vision-dev").get("labels", {})
    assert kube.api.find("/api/v1/namespaces/vision-dev/configmaps/kept") is not None


def test_a_member_who_leaves_loses_everything_that_was_theirs(kube, slices):
    """B5."""
    ensured(slices, terms())
    ensured(slices, terms(members=(BO,)))
    have = objects_of(kube.api, "vision")
    accounts = {key for key in have if key.startswith("serviceaccounts/")} - {
        f"serviceaccounts/{WORKLOAD_ACCOUNT}"
    }
    assert len(accounts) == 1
    subjects = have["rolebindings/egs-members"]["subjects"]
    assert [s["name"] for s in subjects if s["kind"] == "User"] == [BO]
    assert len(subjects) == 3, "bo, their account, and that of workloads"
    assert slices.differences((terms(members=(BO,)),), NOW) == ()


# --- the end ---


def test_a_slice_that_goes_takes_what_we_made_and_its_claim_stays_as_a_fence(kube, slices):
    """C2."""
    ensured(slices, terms())
    busy = slices.remove("vision", False, FIRST, NOW)
    assert isinstance(busy, Busy)
    assert busy.until > NOW
    assert "namespace vision is Terminating" in busy.message
    assert finished(lambda now: slices.remove("vision", False, FIRST, now)) == Done()
    assert meta_of(kube, "vision") == {}
    assert slices.namespaces() == {}
    assert kube.api.get(CLAIM)["data"] == {
        "project": "default",
        "stamp": "1.2",
        "namespaces": "null",
        "objects": "[]",
    }
    assert slices.remove("vision", False, FIRST, NOW) == Done(), "and again"


def test_a_slice_that_holds_nodes_stays(kube, slices):
    """C2: safe delete."""
    ensured(slices, terms())
    answer = slices.remove("vision", True, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "SliceHoldsNodes"
    assert slices.differences((terms(),), NOW) == ()


def test_a_namespace_that_somebody_keeps_outlives_its_slice(kube, slices):
    ensured(slices, terms())
    kube.api.merge("/api/v1/namespaces/vision", {"metadata": {"annotations": {"egs.dev/keep": "data"}}})
    eventually(lambda: slices._spaces.find("vision").is_kept, "the annotation")
    assert finished(lambda now: slices.remove("vision", False, FIRST, now)) == Done()
    assert is_alive(kube, "vision")
    assert objects_of(kube.api, "vision") == {}
    assert slices.namespaces() == {}


def test_without_its_claim_nobody_knows_that_we_made_a_namespace_so_it_stays(kube, slices):
    ensured(slices, terms())
    kube.api.delete(CLAIM)
    eventually(lambda: not slices._claims.get("vision").version, "the loss")
    assert finished(lambda now: slices.remove("vision", False, FIRST, now)) == Done()
    assert is_alive(kube, "vision")
    assert objects_of(kube.api, "vision") == {}


def test_a_namespace_stuck_in_terminating_says_why_and_stops_nobody_else(kube, slices):
    """Issue 3 §2."""
    ensured(slices, terms())
    body = {"metadata": {"name": "stuck", "finalizers": ["example.com/never"]}}
    kube.api.create("/api/v1/namespaces/vision/configmaps", body)
    slices.remove("vision", False, FIRST, NOW)

    def told() -> bool:
        answer = slices.remove("vision", False, FIRST, NOW)
        return isinstance(answer, Busy) and "example.com/never" in answer.message

    eventually(told, "the finalizer's name")
    assert slices.ensure(terms("speech"), FIRST, NOW) == Done()
    answer = slices.ensure(terms(), FIRST, NOW)
    assert isinstance(answer, Busy), "asked for again, it waits until the old one is gone"
    kube.api.merge("/api/v1/namespaces/vision/configmaps/stuck", {"metadata": {"finalizers": None}})
    assert finished(lambda now: slices.ensure(terms(), FIRST, now)) == Done()
