"""A member's kubeconfig from the API: who gets it, what it opens, and when it ends (B5, B6, K1).

What it opens is asked of a real API server; see tests/support/kube.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from portal.http.errors import ApiError
from portal.vendor.kubeconfig_tokens import Way, given
from reconciler.clusters.kubernetes.api.connection import from_text
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Whose
from reconciler.clusters.kubernetes.tenancy.slice_objects import secret_name
from schemas.reading.units import parse_instant
from tests.reconciler.clusters.kubernetes.tenants import BO, CY, ensured, opened, refused, terms
from tests.support.kube import eventually
from tests.support.portal import Site
from tests.support.world import cluster, slice_

PATH = "/api/v1/slice-workspace/kube-config"
PODS = "/api/v1/namespaces/vision/pods"
ASKED = {"workspaceName": "vision", "clusterName": "prod"}


def real(**access):
    """A cluster that Kubernetes has."""
    return cluster("prod", driver="kubernetes", mode="observe", access=access)


FILES = {
    "clusters/prod.yaml": real(kubeconfig="prod.yaml"),
    "clusters/pulled.yaml": cluster(
        "pulled", driver="kubernetes", mode="observe", access={"secret": "pulled"}
    ),
    "slices/vision/slice.yaml": slice_(
        "vision", ("east", "prod", "pulled"), owners=[{"email": "olga@example.com"}]
    ),
    "slices/nlp/slice.yaml": slice_("nlp", ("prod",), members=[{"email": CY}]),
}


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    found = Site(folder, FILES)
    yield found
    found.close()


def with_folder(site, folder):
    """The portal with the operator's folder of kubeconfigs."""
    parts = site.portal.app.state.parts
    settings = replace(parts.settings, base=replace(parts.settings.base, kubeconfigs=folder))
    site.portal.app.state.parts = replace(parts, settings=settings)


def said(answer, status, key):
    """It is refused so."""
    body = answer.json()
    assert (answer.status_code, body["error"]["errorKey"]) == (status, key), body
    return body["message"]


@pytest.mark.parametrize(
    ("key", "change", "status", "error", "sentence"),
    [
        pytest.param(
            "bo-editor",
            {"clusterName": "east"},
            422,
            "BadParameters",
            "simulated",
            id="of an embedded cluster",
        ),
        pytest.param(
            "bo-editor",
            {"clusterName": "west"},
            422,
            "BadParameters",
            "spans east, prod, pulled",
            id="elsewhere",
        ),
        pytest.param(
            "bo-editor",
            {"clusterName": "pulled"},
            422,
            "BadParameters",
            "has no spec.access.kubeconfig",
            id="no file",
        ),
        pytest.param(
            "bo-editor", {}, 422, "NoKubeconfig", "start the portal with --kubeconfigs DIR", id="no folder"
        ),
        pytest.param("bo-viewer", {}, 403, "Forbidden", "of role Viewer", id="by a key that reads"),
        pytest.param(
            "ada-owner", {}, 403, "Forbidden", "is not a member of workspace vision", id="by an admin"
        ),
        pytest.param("cy-editor", {}, 404, "NotFound", "no workspace vision", id="of another's workspace"),
        pytest.param(
            "bo-editor", {"workspaceName": "none"}, 404, "NotFound", "no workspace none", id="of none"
        ),
    ],
)
def test_who_gets_none_and_why(site, key, change, status, error, sentence):
    with site.client(key) as client:
        assert sentence in said(client.post(PATH, json=ASKED | change), status, error)


def test_a_cluster_that_does_not_answer_is_trouble_of_the_world(site, tmp_path):
    """And no word of the operator's kubeconfig is in the answer."""
    (tmp_path / "prod.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {"token": "operators-secret"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    with_folder(site, tmp_path)
    with site.client("bo-editor") as bo:
        answer = bo.post(PATH, json=ASKED)
    said(answer, 503, "Unavailable")
    assert "operators-secret" not in answer.text


@pytest.fixture
def reached(site, kube, tmp_path):
    """The portal and a real cluster in which the slice vision is ready."""
    (tmp_path / "prod.yaml").write_text(kube.kubeconfig.read_text())
    with_folder(site, tmp_path)
    slices = opened(kube.api)
    ensured(slices, terms("vision", members=(BO,)))
    account = "/api/v1/namespaces/vision/serviceaccounts/default"
    eventually(lambda: kube.api.find(account), "the default account")
    yield site
    slices.stop()


def works(text):
    """Whether somebody with that kubeconfig may list the slice's pods."""
    try:
        from_text("prod", text).get(PODS)
    except Exception:
        return False
    return True


def test_a_member_works_in_the_workspace_for_an_hour(reached, kube):
    with reached.client("bo-editor") as bo:
        found = bo.post("/api/v1/kube-config", json=ASKED).json()["data"]
    text = found["kubeConfig"]
    eventually(lambda: works(text), "Bo's rights")
    shown = yaml.safe_load(text)
    assert shown["contexts"][0]["context"]["namespace"] == "vision"
    assert [list(user["user"]) for user in shown["users"]] == [["token"]]  # nothing of the operator's
    assert refused(lambda: from_text("prod", text).get("/api/v1/nodes")) == 403
    assert parse_instant(found["expiresAt"])


def test_asking_again_does_not_end_what_another_pipeline_works_with(reached, kube):
    with reached.client("bo-editor") as bo:
        first, second = (bo.post(PATH, json=ASKED).json()["data"]["kubeConfig"] for _ in range(2))
    eventually(lambda: works(first), "Bo's rights")
    assert works(first)
    assert works(second)
    # `egs kubeconfig` ends them all, as it does for the member's others.
    member_tokens.renewed(kube.api, Whose("vision", "vision", BO))
    eventually(lambda: not works(first), "its end")


def test_a_secret_that_belongs_to_no_account_of_today_is_made_anew(reached, kube):
    """Its owner is gone, and it goes with it: a token bound to it would not last."""
    whose = Whose("vision", "vision", BO)
    before = member_tokens.standing(kube.api, whose)
    assert member_tokens.standing(kube.api, whose) == before
    path = f"/api/v1/namespaces/vision/secrets/{secret_name(BO)}"
    stray = kube.api.get(path)
    kube.api.delete(path)
    meta = {key: stray["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    kube.api.create(
        path.rpartition("/")[0], {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta}
    )
    after = member_tokens.standing(kube.api, whose)
    assert after.uid != before.uid
    assert kube.api.get(path)["metadata"]["ownerReferences"]


def test_a_workspace_that_is_not_ready_there_yet_is_told_so(reached):
    with reached.client("cy-editor") as cy:
        body = {"workspaceName": "nlp", "clusterName": "prod"}
        assert "try again" in said(cy.post(PATH, json=body), 409, "WorkspaceNotReady")


def test_a_file_that_is_no_kubeconfig_is_the_operators_matter(tmp_path):
    (tmp_path / "prod.yaml").write_text("hello: [")
    way = Way("vision", "prod", ("vision",), BO, "prod.yaml", None)
    with pytest.raises(ApiError) as caught:
        given(way, tmp_path)
    assert caught.value.status == 503
    assert "operator" in str(caught.value)
