"""Slices on a real API server: what somebody else changes, an older controller among them (issue 3 §1, §2)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.clusters.kubernetes.api.api_client import Rejected
from reconciler.clusters.kubernetes.tenancy.slice_objects import objects
from reconciler.model.cluster_port import Busy, Difference, Done, Refused
from tests.reconciler.clusters.kubernetes.tenants import (
    BO,
    CLAIM,
    DENY,
    FIRST,
    NEWER,
    NOW,
    OFFERED,
    OLD,
    QUOTA,
    RBAC,
    SECOND,
    ensured,
    finished,
    meta_of,
    namespace,
    objects_of,
    opened,
    seen,
    terms,
)
from tests.support.kube import eventually

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
    namespace(kube, "vision", annotations=OFFERED)
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
    kube.api.merge("/api/v1/namespaces/shared", {"metadata": {"annotations": OFFERED}})
    eventually(lambda: slices._spaces.find("shared").offered, "the offer")
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


# --- two controllers ---


@pytest.mark.parametrize(
    "is_removed", [False, True], ids=["a slice that is there", "a slice that was removed"]
)
def test_an_older_controller_changes_nothing(kube, slices, is_removed):
    """Issue 3 §2: also when its informers know nothing of the newer one yet."""
    older = opened(kube.api)
    ensured(slices, terms(), OLD)
    for informer in older.informers:
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
    for informer in older.informers:
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
    namespace(kube, "vision", annotations=OFFERED)
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
