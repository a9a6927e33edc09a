"""Slices on a real API server: made, adopted, mended, removed; and what none of that may touch (issue 3 §1, §2)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.clusters.kubernetes.api import Rejected
from reconciler.clusters.kubernetes.slices import Slices
from reconciler.clusters.kubernetes.tenancy import objects
from reconciler.clusters.port import Busy, Difference, Done, Refused
from tests.clusters.kubernetes.tenants import (
    BO,
    FIRST,
    NET,
    NEWER,
    NOW,
    OLD,
    RBAC,
    SECOND,
    ensured,
    finished,
    meta_of,
    namespace,
    objects_of,
    opened,
    pod,
    refused,
    terms,
)
from tests.support.kube import eventually

CLAIM = "/api/v1/namespaces/egs-system/configmaps/slice-vision"
DENY = f"{NET}/namespaces/vision/networkpolicies/egs-default-deny"
QUOTA = "/api/v1/namespaces/vision/resourcequotas/egs-gpus"


@pytest.fixture
def slices(kube):
    """A controller of an empty cluster."""
    found = opened(kube.api)
    yield found
    found.stop()


def seen(slices: Slices, wanted, *expected: Difference) -> None:
    """The informers know exactly these differences."""
    eventually(
        lambda: set(slices.differences((wanted,), NOW)) == set(expected), f"the differences {expected}"
    )


def is_alive(kube, name: str) -> bool:
    """The namespace is there, and stays."""
    meta = meta_of(kube, name)
    return bool(meta) and "deletionTimestamp" not in meta


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
            *["rolebindings"] * 3,
            *["roles"] * 2,
            *["serviceaccounts"] * 2,
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
    namespace(kube, "vision", labels={"team": "x"}, annotations={"note": "ours"})
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
    assert meta["annotations"] == {"note": "ours"}
    assert objects_of(kube.api, "vision") == {}
    assert kube.api.find("/api/v1/namespaces/vision/configmaps/kept") is not None
    assert slices.namespaces() == {}


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
    namespace(kube, "vision")
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
    assert len([key for key in have if key.startswith("serviceaccounts/")]) == 1
    subjects = have["rolebindings/egs-members"]["subjects"]
    assert [s["name"] for s in subjects if s["kind"] == "User"] == [BO]
    assert len(subjects) == 2
    assert slices.differences((terms(members=(BO,)),), NOW) == ()


# --- drift ---


@pytest.mark.parametrize(
    ("path", "change", "shown"),
    [
        pytest.param(
            DENY,
            {"spec": {"ingress": [{}]}},
            "NetworkPolicy vision/egs-default-deny",
            id="a wall gets a hole",
        ),
        pytest.param(
            DENY,
            {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
            "NetworkPolicy vision/egs-default-deny",
            id="a wall around a part only",
        ),
        pytest.param(
            f"{RBAC}/namespaces/vision/rolebindings/egs-members",
            {
                "subjects": [
                    {"kind": "User", "name": "eve@example.com", "apiGroup": "rbac.authorization.k8s.io"}
                ]
            },
            "RoleBinding vision/egs-members",
            id="somebody makes themselves a member",
        ),
        pytest.param(
            QUOTA,
            {"spec": {"hard": {"requests.nvidia.com/gpu": "999"}}},
            "ResourceQuota vision/egs-gpus",
            id="a higher bound",
        ),
        pytest.param(
            f"{RBAC}/clusterroles/egs-slice-member",
            {"rules": []},
            "ClusterRole egs-slice-member",
            id="no rights",
        ),
        pytest.param(
            "/api/v1/namespaces/vision",
            {"metadata": {"labels": {"egs.dev/slice": None}}},
            "Namespace vision",
            id="no mark",
        ),
        pytest.param(
            DENY,
            {"metadata": {"labels": {"egs.dev/slice": None}}},
            "NetworkPolicy vision/egs-default-deny",
            id="no label of ours",
        ),
    ],
)
def test_what_somebody_changes_is_shown_and_put_right(kube, slices, path, change, shown):
    """H13."""
    ensured(slices, terms())
    kube.api._json("PATCH", path, {"fieldManager": "kubectl-edit"}, change, "application/merge-patch+json")
    eventually(lambda: [d.object for d in slices.differences((terms(),), NOW)] == [shown], "the difference")
    calls = kube.api.calls
    assert {d.found for d in slices.differences((terms(),), NOW)} <= {"changed", "missing"}
    assert kube.api.calls == calls, "looking costs no call"
    ensured(slices, terms())
    assert slices.differences((terms(),), NOW) == ()


def test_who_changed_what_is_named(kube, slices):
    ensured(slices, terms())
    change = {"spec": {"ingress": [{}]}}
    kube.api._json("PATCH", DENY, {"fieldManager": "kubectl-edit"}, change, "application/merge-patch+json")
    seen(
        slices,
        terms(),
        Difference(
            "vision", "NetworkPolicy vision/egs-default-deny", "changed", "spec.ingress (by kubectl-edit)"
        ),
    )


def test_what_somebody_deletes_is_made_again(kube, slices):
    """H13."""
    ensured(slices, terms())
    kube.api.delete(DENY)
    seen(slices, terms(), Difference("vision", "NetworkPolicy vision/egs-default-deny", "missing"))
    ensured(slices, terms())
    assert kube.api.find(DENY) is not None


def test_other_peoples_fields_are_left_alone(kube, slices):
    """H13: labels, annotations and lines of a quota that are not ours."""
    ensured(slices, terms())
    kube.api.merge(
        QUOTA,
        {"metadata": {"labels": {"team": "x"}, "annotations": {"a": "b"}}, "spec": {"hard": {"pods": "9"}}},
    )
    eventually(
        lambda: "pods" in slices._repairs.find("vision", "ResourceQuota/egs-gpus").body["spec"]["hard"], "it"
    )
    assert slices.differences((terms(),), NOW) == ()
    ensured(slices, terms(gpus=8))
    quota = kube.api.get(QUOTA)
    assert quota["metadata"]["labels"]["team"] == "x"
    assert (quota["spec"]["hard"]["pods"], quota["spec"]["hard"]["requests.nvidia.com/gpu"]) == ("9", "8")


def test_whoever_undoes_a_repair_again_and_again_is_met_ever_more_seldom(kube, slices):
    """H13: no hot loop; other objects of the slice are repaired all the same."""
    ensured(slices, terms())
    now, pauses = NOW, []
    for _ in range(4):
        kube.api.delete(DENY)
        eventually(lambda: slices.differences((terms(),), NOW), "the difference")
        answer = slices.ensure(terms(), FIRST, now)
        if isinstance(answer, Busy):
            assert "again and again" in answer.message
            pauses.append(answer.until - now)
            now = answer.until
            kube.api.delete(QUOTA)
            eventually(lambda: len(slices.differences((terms(),), NOW)) == 2, "two differences")
            assert isinstance(slices.ensure(terms(), FIRST, now - SECOND), Busy)
            assert kube.api.find(QUOTA) is not None
            assert kube.api.find(DENY) is None
            now += timedelta(hours=2)
            assert slices.ensure(terms(), FIRST, now) == Done()
    assert pauses == [timedelta(seconds=5)] * len(pauses)
    assert pauses
    assert slices.ensure(terms(gpus=8), FIRST, now) == Done(), "what people ask for anew is no quarrel"


def test_a_copy_of_our_labels_makes_nothing_ours(kube, slices):
    """By inventory: what somebody else made under our labels is theirs, also when the slice goes."""
    namespace(kube, "vision")
    eventually(lambda: slices._spaces.find("vision"), "the namespace")
    ensured(slices, terms())
    labels = {"app.kubernetes.io/managed-by": "egs", "egs.dev/slice": "vision", "egs.dev/project": "default"}
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "theirs", "labels": labels}}
    accounts = "/api/v1/namespaces/vision/serviceaccounts"
    kube.api._json("POST", accounts, {"fieldManager": "theirs"}, body)
    kube.api._json(
        "POST", accounts, {"fieldManager": "egs"}, {**body, "metadata": {"name": "ours", "labels": labels}}
    )
    seen(slices, terms(), Difference("vision", "ServiceAccount vision/ours", "extra"))
    assert finished(lambda now: slices.remove("vision", False, FIRST, now)) == Done()
    assert kube.api.find(f"{accounts}/theirs") is not None
    assert kube.api.find(f"{accounts}/ours") is None


def test_a_namespace_whose_mark_was_taken_off_is_still_its_slices(kube, slices):
    """C1: nobody gets another slice's rights by way of a label."""
    ensured(slices, terms())
    kube.api.merge("/api/v1/namespaces/vision", {"metadata": {"labels": {"egs.dev/slice": None}}})
    eventually(lambda: not slices._spaces.find("vision").slice, "the loss")
    answer = slices.ensure(terms("speech", "vision"), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NamespaceTaken"
    ensured(slices, terms())


def test_a_slice_that_leaves_a_namespace_takes_nothing_of_the_next_one(kube, slices):
    ensured(slices, terms("vision", "vision", "shared"))
    ensured(slices, terms("speech", "speech"))
    claim = slices._claims.get("vision")
    ensured(slices, terms("vision", "vision"))
    ensured(slices, terms("speech", "speech", "shared"))
    slices._released("shared", claim)
    assert slices.differences((terms("speech", "speech", "shared"),), NOW) == ()


def test_what_the_server_refuses_of_one_object_stops_no_other(kube, slices):
    """Issue 3 §2: an admission rule of somebody else's, a verb that is missing."""
    real = kube.api._json

    def refusing(method, path, *rest, **more):
        if method == "PATCH" and "resourcequotas" in path:
            raise Rejected("cluster east refused PATCH quota: no; grant the controller this verb", 403)
        return real(method, path, *rest, **more)

    kube.api._json = refusing
    answer = slices.ensure(terms(), FIRST, NOW)
    kube.api._json = real
    assert answer == Refused(
        "ClusterForbidden", "cluster east refused PATCH quota: no; grant the controller this verb"
    )
    have = objects_of(kube.api, "vision")
    assert "rolebindings/egs-members" in have
    assert "resourcequotas/egs-gpus" not in have
    ensured(slices, terms())


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


# --- two controllers ---


@pytest.mark.parametrize(
    "is_removed", [False, True], ids=["a slice that is there", "a slice that was removed"]
)
def test_an_older_controller_changes_nothing(kube, slices, is_removed):
    """Issue 3 §2: also when its informers know nothing of the newer one yet."""
    older = opened(kube.api)
    ensured(slices, terms(), OLD)
    for informer in older._informers:
        informer.stop()  # paused
    if is_removed:
        finished(lambda now: slices.remove("vision", False, NEWER, now))
    else:
        ensured(slices, terms(gpus=8), NEWER)
    claim = kube.api.get(CLAIM)
    for answer in (
        older.ensure(terms("vision", "vision", "more"), FIRST, NOW),
        older.remove("vision", False, FIRST, NOW),
    ):
        assert isinstance(answer, Refused)
        assert answer.reason == "StaleStamp"
    assert kube.api.get(CLAIM) == claim
    assert meta_of(kube, "more") == {}


def test_a_write_with_nothing_to_do_fences_older_ones(kube, slices):
    ensured(slices, terms(), FIRST)
    ensured(slices, terms(), NEWER)
    answer = slices.ensure(terms(), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    finished(lambda now: slices.remove("other", False, NEWER, now))
    assert isinstance(slices.ensure(terms("other"), FIRST, NOW), Refused)


def test_a_leader_that_falls_asleep_after_its_claim_meets_what_the_newer_one_wrote(kube, slices):
    """An object that changed since it was read is not written over, whoever still believes to lead."""
    older = opened(kube.api)
    ensured(slices, terms(), OLD)
    eventually(lambda: older._repairs.find("vision", "ResourceQuota/egs-gpus"), "the quota")
    for informer in older._informers:
        informer.stop()
    stale = older._repairs.find("vision", "ResourceQuota/egs-gpus")
    ensured(slices, terms(gpus=8), NEWER)
    older._repairs._known["ResourceQuota"]._items["vision/egs-gpus"] = stale
    older._repairs._known["ResourceQuota"]._frozen = None
    quota = next(o for o in objects(terms(gpus=64), "default", "vision") if o["kind"] == "ResourceQuota")
    answer = older._repairs.put(quota, OLD, NOW, is_new=False)
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert kube.api.get(QUOTA)["spec"]["hard"]["requests.nvidia.com/gpu"] == "8"


def test_an_object_that_changes_all_the_time_is_written_all_the_same(kube, slices):
    """A quota's status changes with every pod: our informer is always a little late."""
    ensured(slices, terms())
    informer = slices._repairs._known["ResourceQuota"]
    informer.stop()
    for team in "ab":
        kube.api.merge(QUOTA, {"metadata": {"labels": {"team": team}}})
    ensured(slices, terms(gpus=8))
    quota = kube.api.get(QUOTA)
    assert (quota["spec"]["hard"]["requests.nvidia.com/gpu"], quota["metadata"]["labels"]["team"]) == (
        "8",
        "b",
    )


def test_what_a_late_writer_left_of_a_removed_slice_is_seen_and_swept(kube, slices):
    """The one write that a condition cannot stop: making an object that is gone by now."""
    namespace(kube, "vision")
    eventually(lambda: slices._spaces.find("vision"), "the namespace")
    ensured(slices, terms(), OLD)
    finished(lambda now: slices.remove("vision", False, NEWER, now))
    binding = next(o for o in objects(terms(), "default", "vision") if o["metadata"]["name"] == "egs-members")
    slices._repairs.put(binding, OLD, NOW, is_new=True)
    assert slices.namespaces() == {"vision": ()}, "so that the loop removes it again"
    assert finished(lambda now: slices.remove("vision", False, NEWER, now)) == Done()
    assert objects_of(kube.api, "vision") == {}


def test_a_controller_that_died_in_between_is_followed_by_one_that_finishes(kube, slices):
    """Every write fails once: what is made stays ours, and is not made twice."""
    real, count = kube.api._json, 0

    class Died(Exception):  # noqa: N818 - a crash
        pass

    def dies_at(n: int):
        def call(method, *rest, **more):
            nonlocal count
            if method != "GET":
                count += 1
                if count == n:
                    real(method, *rest, **more)
                    raise Died
            return real(method, *rest, **more)

        return call

    for n in range(1, 40):
        count = 0
        kube.api._json = dies_at(n)
        try:
            if slices.ensure(terms(members=(BO,)), FIRST, NOW) == Done():
                break
        except Died:
            kube.api._json = real
            slices.stop()
            slices = opened(kube.api)
    kube.api._json = real
    assert slices.differences((terms(members=(BO,)),), NOW) == ()
    assert finished(lambda now: slices.remove("vision", False, FIRST, now)) == Done()
    assert meta_of(kube, "vision") == {}, "we made it, and know so"
