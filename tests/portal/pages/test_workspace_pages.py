"""Pages of workspaces (C9, B6, D12): what is shown to whom, and forms that do what the API does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.portal import KEYS, Site
from tests.support.world import cluster, slice_

PROD = cluster("prod", driver="kubernetes", mode="observe", access={"kubeconfig": "prod.yaml"})
LIMITED = slice_(
    "vision",
    ("east", "prod"),
    owners=[{"email": "olga@example.com"}],
    quota={"gpus": 64, "gpuHoursPerMonth": 100},
    limits={"maxWaiting": 3},
    queues={"kueue": True},
    services={"across": "mcs"},
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision runs one request and waits with another; nlp has a secret one."""
    files = {"clusters/prod.yaml": PROD, "slices/vision/slice.yaml": LIMITED}
    made = Site(tmp_path_factory.mktemp("site"), files)
    made.settle()
    made.file("vision/train", nodes=1, duration="4h", clusters=["east"])
    made.file("nlp/secret-model", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(30)
    made.file("vision/next", nodes=2, duration="1h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def browser(site: Site, key: str) -> TestClient:
    client = site.client(key)
    client.headers.update({"Accept": "text/html", "Origin": "http://testserver"})
    client.follow_redirects = False
    return client


def page(site: Site, path: str, key: str = "bo-owner") -> str:
    answer = browser(site, key).get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_workspace_says_what_its_queue_does(site: Site) -> None:
    """A9: in pages as in the API and in the SDK's record."""
    assert "<dt>Queue in east</dt><dd>8 GPUs, admits work</dd>" in page(site, "/workspaces/vision")
    assert "Queue in" not in page(site, "/workspaces/nlp", "ada-owner")
    with site.client("bo-owner") as bo:
        found = bo.get("/api/v1/slice-workspace", params={"workspaceName": "vision"}).json()["data"]
    want = {"cluster": "east", "gpus": 8, "stop": "None", "mig": "", "state": "Kept", "message": ""}
    assert found["queues"] == [want]


def test_a_workspace_says_what_it_exports(site: Site) -> None:
    """C7: on its page and by the API, by cluster, with what is missing."""
    text = page(site, "/workspaces/vision")
    assert "<dt>Services in east</dt><dd>none has the label egs.dev/export</dd>" in text
    with site.client("bo-owner") as bo:
        found = bo.get("/api/v1/slice-workspace", params={"workspaceName": "vision"}).json()["data"]
    kept = {"cluster": "east", "state": "Kept", "policy": "ClusterNames", "message": "", "exports": []}
    assert found["services"] == [kept]


def test_a_member_sees_their_workspaces_and_no_name_of_others(site: Site) -> None:
    for path in ("/workspaces", "/workspaces/vision"):
        text = page(site, path)
        assert "vision" in text
        assert "nlp" not in text
        assert "secret-model" not in text
    assert browser(site, "bo-owner").get("/workspaces/nlp").status_code == 404
    assert "nlp" in page(site, "/workspaces", "ada-owner")


def test_use_is_shown_against_quota_and_limits(site: Site) -> None:
    text = page(site, "/workspaces/vision")
    assert 'aria-label="GPUs held now: 8 of 64"' in text
    assert 'aria-label="Requests waiting: 1 of 3"' in text
    # Four hours on 8 GPUs that run, and an hour on 16 that wait.
    assert 'aria-label="GPU-hours this month: 48 of 100"' in text
    assert 'href="/requests/vision/train"' in text


def test_what_is_left_of_the_month_is_in_the_api_too(site: Site) -> None:
    found = site.client("bo-owner").get("/api/v1/slice-workspace", params={"workspaceName": "vision"}).json()
    (bound,) = found["data"]["monthBounds"]
    assert bound == {"isLimit": False, "cluster": "", "gpuShape": "", "gpuHours": 100, "taken": 48.0}


def test_a_person_of_no_workspace_is_told_the_next_step(site: Site) -> None:
    assert "Ask for a workspace" in page(site, "/workspaces", "eve-editor")


def test_without_a_kubeconfig_the_page_says_why_and_names_an_admin(site: Site) -> None:
    """B6: the portal has no folder of kubeconfigs."""
    assert "ask ada@example.com" in page(site, "/workspaces/vision")
    answer = browser(site, "bo-owner").post("/workspaces/vision/kubeconfig", data={"cluster": "prod"})
    assert answer.status_code == 422
    assert "NoKubeconfig" in answer.text
    assert "ask ada@example.com" in answer.text


def test_a_reader_is_shown_no_forms_that_they_may_not_send(site: Site) -> None:
    text = page(site, "/workspaces/vision", "bo-viewer")
    assert "/kubeconfig" not in text
    assert "/keys" not in text
    answer = browser(site, "bo-viewer").post("/workspaces/vision/kubeconfig", data={"cluster": "prod"})
    assert answer.status_code == 403


def test_a_foreign_page_sends_no_form(site: Site) -> None:
    client = TestClient(site.portal.app, headers={"Origin": "http://testserver", "Accept": "text/html"})
    client.post("/login", data={"key": KEYS["bo-owner"]}, follow_redirects=False)
    assert client.get("/workspaces").status_code == 200
    for path in ("/workspaces/vision/keys", "/workspaces/vision/kubeconfig", "/workspaces/new"):
        answer = client.post(path, data={"key": "x"}, headers={"Origin": "https://evil.example"})
        assert (answer.status_code, "CrossSite" in answer.text) == (403, True)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    made.settle()
    yield made
    made.close()


def test_a_keys_text_is_shown_once_and_the_key_can_be_revoked(own: Site) -> None:
    client = browser(own, "bo-owner")
    sent = {"key": "robot", "role": "Viewer", "scope": "this", "validity": "2026-12-01"}
    answer = client.post("/workspaces/vision/keys", data=sent)
    assert answer.status_code == 200
    assert "egs_" in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    own.refresh()
    text = page(own, "/workspaces/vision")
    assert "robot" in text
    assert "egs_" not in text
    again = client.post("/workspaces/vision/keys", data=sent | {"description": "nightly"})
    assert (again.status_code, "ApiKeyAlreadyExists" in again.text) == (409, True)
    assert 'value="nightly"' in again.text, "what was typed stays"
    assert client.post("/workspaces/vision/keys/revoke", data={"key": "robot"}).status_code == 303
    own.refresh()
    assert "revoked: true" in (own.main("keys/robot.yaml") or "")


def test_asking_for_a_workspace_waits_for_an_admin(own: Site) -> None:
    """B6: the request of a person, and the refusal of a name that is taken."""
    client = browser(own, "olga-owner")
    wish = {
        "name": "speech",
        "cluster-east": "on",
        "description": "ears",
        "members": "cy@example.com",
        "key": "k1",
    }
    taken = client.post("/workspaces/new", data={**wish, "name": "vision"})
    assert (taken.status_code, "WorkspaceAlreadyExists" in taken.text) == (409, True)
    assert 'value="ears"' in taken.text
    answer = client.post("/workspaces/new", data=wish)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/workspaces?asked=speech")
    assert own.main("slices/speech/slice.yaml") is None
    assert "is asked for" in page(own, "/workspaces?asked=speech", "olga-owner")
    bad = client.post("/workspaces/new", data={**wish, "name": "other", "quota": "many"})
    assert (bad.status_code, "whole number" in bad.text) == (422, True)


def test_an_admin_makes_a_workspace_at_once_and_sending_twice_makes_one(own: Site) -> None:
    client = browser(own, "ada-owner")
    wish = {"name": "speech", "cluster-east": "on", "key": "once"}
    for _ in range(2):
        assert client.post("/workspaces/new", data=wish).status_code == 303
    own.refresh()
    assert "ada@example.com" in (own.main("slices/speech/slice.yaml") or "")
    assert "/workspaces/speech" in page(own, "/workspaces", "ada-owner")


def test_an_owner_changes_members_and_nobody_else_does(own: Site) -> None:
    members = {"members": "bo@example.com\ncy@example.com"}
    assert "Change members" not in page(own, "/workspaces/vision", "bo-owner")
    assert browser(own, "bo-owner").post("/workspaces/vision/members", data=members).status_code == 403
    assert browser(own, "olga-owner").post("/workspaces/vision/members", data=members).status_code == 303
    own.refresh()
    assert "cy@example.com" in page(own, "/workspaces/vision", "olga-owner")
