"""Whose a namespace is: the slice's inventory says so, never a label alone."""

from __future__ import annotations

import pytest

from reconciler.model.cluster_port import Difference, Done, Refused
from tests.reconciler.clusters.kubernetes.tenants import (
    FIRST,
    NOW,
    OFFERED,
    ensured,
    finished,
    is_alive,
    meta_of,
    namespace,
    objects_of,
    terms,
)
from tests.support.kube import eventually

SPACES = "/api/v1/namespaces"
SLICE, PROJECT, MANAGED = "egs.dev/slice", "egs.dev/project", "app.kubernetes.io/managed-by"
MARKS = {SLICE: "beta", PROJECT: "default", MANAGED: "egs"}


def edited(kube, name, **meta):
    """Somebody changes its labels or annotations by hand."""
    query = {"fieldManager": "kubectl-label"}
    return kube.api._json(
        "PATCH", f"{SPACES}/{name}", query, {"metadata": meta}, "application/merge-patch+json"
    )


def known_as_it_is(kube, slices, name):
    """The watch has caught up."""
    version = meta_of(kube, name)["resourceVersion"]
    eventually(lambda: (s := slices._spaces.find(name)) and s.version == version, "the change")


def made_again(kube, slices, name, **meta):
    """Somebody deletes a namespace and makes one of the same name, faster than we do."""
    old = meta_of(kube, name)["uid"]
    kube.api.delete(f"{SPACES}/{name}")
    eventually(lambda: not meta_of(kube, name), "its end")
    namespace(kube, name, **meta)
    eventually(lambda: (s := slices._spaces.find(name)) and s.uid != old and not s.is_leaving, "the new one")


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({SLICE: "alpha"}, id="relabelled as another slice's"),
        pytest.param({SLICE: "ghost"}, id="relabelled as the slice of nobody"),
        pytest.param({PROJECT: "other"}, id="relabelled as another project's"),
        pytest.param({SLICE: None}, id="without the slice"),
        pytest.param(dict.fromkeys(MARKS), id="without any mark"),
        pytest.param({SLICE: "alpha", MANAGED: "helm"}, id="relabelled, and as if we had not made it"),
    ],
)
@pytest.mark.parametrize("offered", [False, True], ids=["made", "adopted"])
def test_a_namespace_whose_labels_somebody_changes_stays_its_slices(kube, slices, labels, offered):
    """Others leave it alone, whoever's turn comes first, and its own slice puts it right."""
    if offered:
        namespace(kube, "beta", annotations=OFFERED)
        known_as_it_is(kube, slices, "beta")
    alpha, beta = terms("alpha"), terms("beta")
    ensured(slices, alpha)
    ensured(slices, beta)
    edited(kube, "beta", labels=labels, annotations={"egs.dev/adopt": None})
    known_as_it_is(kube, slices, "beta")
    have, meta = objects_of(kube.api, "beta").keys(), meta_of(kube, "beta")
    assert slices.namespaces()["beta"] == ("beta",), "its pods are still the slice's"
    assert slices.differences((alpha,), NOW) == ()
    (found,) = slices.differences((beta,), NOW)
    assert (found.object, found.found) == ("Namespace beta", "changed")
    ensured(slices, alpha)
    assert slices.remove("ghost", False, FIRST, NOW) == Done()
    assert objects_of(kube.api, "beta").keys() == have, "nobody else touched it"
    assert meta_of(kube, "beta") == meta
    ensured(slices, beta)
    kept = MARKS if not offered else {SLICE: "beta", PROJECT: "default"}
    assert meta_of(kube, "beta")["labels"].items() >= kept.items()
    assert slices.differences((alpha, beta), NOW) == ()
    assert finished(lambda now: slices.remove("beta", False, FIRST, now)) == Done()
    assert is_alive(kube, "beta") is offered, "it is still known who made it"


@pytest.mark.parametrize("was", ["made", "adopted"])
def test_a_namespace_that_somebody_else_made_again_is_not_adopted_without_an_offer(kube, slices, was):
    if was == "adopted":
        namespace(kube, "vision", annotations=OFFERED)
        known_as_it_is(kube, slices, "vision")
    ensured(slices, terms())
    made_again(kube, slices, "vision")
    answer = slices.ensure(terms(), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NamespaceNotOffered"
    assert slices.differences((terms(),), NOW) == (
        Difference("vision", "Namespace vision", "changed", answer.message),
    )
    assert slices.namespaces() == {"vision": ()}, "what runs there is not the slice's"
    assert objects_of(kube.api, "vision") == {}
    edited(kube, "vision", annotations=OFFERED)
    known_as_it_is(kube, slices, "vision")
    ensured(slices, terms())
    assert slices.differences((terms(),), NOW) == ()
    finished(lambda now: slices.remove("vision", False, FIRST, now))
    assert is_alive(kube, "vision"), "somebody else made it"


def test_a_namespace_that_somebody_deletes_is_made_again_and_is_the_slices(kube, slices):
    ensured(slices, terms())
    kube.api.delete(f"{SPACES}/vision")
    eventually(lambda: not meta_of(kube, "vision"), "its end")
    eventually(lambda: slices._spaces.find("vision") is None, "the news of it")
    ensured(slices, terms())
    edited(kube, "vision", labels={SLICE: "alpha"})
    known_as_it_is(kube, slices, "vision")
    ensured(slices, terms())
    assert meta_of(kube, "vision")["labels"][SLICE] == "vision"


@pytest.mark.parametrize("slice_", ["alpha", "ghost"])
def test_our_labels_on_somebody_elses_namespace_make_it_nobodys_slice(kube, slices, slice_):
    """They are taken off; what is in it is neither the slice's nor touched."""
    ensured(slices, terms("alpha"))
    namespace(kube, "payments", labels={**MARKS, SLICE: slice_, "team": "x"})
    known_as_it_is(kube, slices, "payments")
    assert "payments" not in slices.namespaces()[slice_]
    if slice_ == "alpha":
        wanted = terms("alpha", "alpha", "payments")
        answer = slices.ensure(wanted, FIRST, NOW)
        assert isinstance(answer, Refused)
        assert answer.reason == "NamespaceNotOffered"
        assert objects_of(kube.api, "payments") == {}
        assert slices.differences((terms("alpha"),), NOW) == (
            Difference("alpha", "Namespace payments", "extra"),
        )
        ensured(slices, terms("alpha"))
    else:
        assert slices.remove("ghost", False, FIRST, NOW) == Done()
    labels = meta_of(kube, "payments")["labels"]
    assert {k: v for k, v in labels.items() if k != "kubernetes.io/metadata.name"} == {"team": "x"}
    assert slice_ == "alpha" or "ghost" not in slices.namespaces()


def test_a_slice_whose_inventory_is_lost_keeps_what_is_furnished_as_its_own(kube, slices):
    """Its mark and its members' rights together; a mark alone is anybody's."""
    ensured(slices, terms())
    kube.api.delete(f"{SPACES}/egs-system/configmaps/slice-vision")
    eventually(lambda: not slices._claims.get("vision").version, "the loss")
    namespace(kube, "payments", labels={**MARKS, SLICE: "vision"})
    known_as_it_is(kube, slices, "payments")
    assert slices.namespaces() == {"vision": ("vision",)}
    answer = slices.ensure(terms("vision", "vision", "payments"), FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NamespaceNotOffered"
    ensured(slices, terms())
    assert "egs.dev/slice" not in meta_of(kube, "payments").get("labels", {})
