"""Workspaces by the API: asked for, made, changed, shown and taken away (A5, B1, C9, K1)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support import repos
from tests.support.portal import Site

PATH = "/api/v1/slice-workspace"
SEED = {
    "workspaceName": "llm-gpt-4o",
    "clusters": ["east"],
    "namespaces": ["llm-gpt-40-dev"],
    "username": "John Doe",
    "email": "john.doe@example.com",
}
"""The vendor's own example."""


@pytest.fixture
def site(tmp_path):
    found = Site(tmp_path)
    yield found
    found.close()


@pytest.fixture
def ada(site):
    with site.client("ada-owner") as client:
        yield client


def pass_by(site, *minutes):
    """Time goes on in leaps; the controller looks once after each."""
    for each in minutes:
        site.clock.set(site.now + timedelta(minutes=each))
        site.settle()


def refused(answer, status, key="BadParameters"):
    """It is refused so."""
    body = answer.json()
    assert (answer.status_code, body["error"]["errorKey"]) == (status, key), body
    return body["message"]


def test_an_admins_workspace_is_there_at_once_and_belongs_to_whom_it_names(site, ada):
    answer = ada.post(PATH, json=SEED).json()["data"]
    assert (answer["workspaceName"], answer["change"]["way"]) == ("llm-gpt-4o", "pushed")
    found = ada.get(PATH, params={"workspaceName": "llm-gpt-4o"}).json()["data"]
    assert (found["owners"], found["members"]) == (["john.doe@example.com"], ["john.doe@example.com"])
    assert found["namespaces"] == [{"namespace": "llm-gpt-40-dev", "clusters": ["east"]}]
    assert site.log()[0].startswith("ada <ada@example.com>|")
    assert refused(ada.post(PATH, json=SEED), 409, "WorkspaceAlreadyExists")


def test_anybody_elses_workspace_waits_for_an_admin(site, ada):
    with site.client("bo-owner") as bo:
        answer = bo.post(
            PATH, json={"workspaceName": "mine", "clusters": ["east"], "description": "a try"}
        ).json()
        assert answer["message"] == "workspace mine is requested; it is made when an admin merges it"
        branch = answer["data"]["change"]["branch"]
        assert site.main("requests/mine.yaml") is None
        assert "bo@example.com" in repos.git(site.repo, "show", f"{branch}:requests/mine.yaml")
        repos.git(site.repo, "update-ref", "refs/heads/main", branch)  # an admin merges it
        site.refresh()
        assert bo.get(PATH, params={"workspaceName": "mine"}).json()["data"]["owners"] == ["bo@example.com"]
        assert refused(
            bo.post(PATH, json={"workspaceName": "mine", "clusters": ["east"]}), 409, "WorkspaceAlreadyExists"
        )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            {"workspaceName": "Acme.Vision"}, "acme-vision would be valid", id="a name of the vendor's alone"
        ),
        pytest.param({"namespaces": ["Dev"]}, "namespaces: Dev is not a valid name", id="no namespace"),
        pytest.param(
            {"namespaces": ["vision"]},
            "vision of east belongs to another workspace",
            id="a namespace that is taken",
        ),
        pytest.param(
            {"clusters": ["north"]}, "there is no cluster north; choose from east, west", id="no such cluster"
        ),
        pytest.param({"clusters": ["east", "east"]}, "east is listed twice", id="a cluster twice"),
        pytest.param({"clusters": []}, "clusters: ", id="no cluster"),
        pytest.param({"email": "john"}, "email: john is not a mail address", id="no address"),
        pytest.param({"members": ["bo"]}, "members: bo is not a mail address", id="no address of a member"),
        pytest.param(
            {"maxClusters": 1, "clusters": ["east", "west"]}, "maxClusters allows 1", id="too many clusters"
        ),
        pytest.param({"colour": "red"}, "colour: ", id="a field that nobody knows"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_do(ada, change, sentence):
    assert sentence in refused(ada.post(PATH, json=SEED | change), 422)


def test_a_namespace_of_another_cluster_is_free(ada):
    """nlp is in east alone."""
    body = {
        "workspaceName": "west-nlp",
        "clusters": ["west"],
        "namespaces": ["nlp"],
        "email": "cy@example.com",
    }
    assert ada.post(PATH, json=body).status_code == 200


def test_a_key_that_reads_asks_for_no_workspace(site):
    body = {"workspaceName": "mine", "clusters": ["east"]}
    for key in ("bo-viewer", "bo-editor"):  # the second is good for vision alone
        with site.client(key) as bo:
            refused(bo.post(PATH, json=body), 403, "Forbidden")


def test_a_change_keeps_what_it_does_not_name_and_what_people_wrote(site, ada):
    file = site.main("slices/vision/slice.yaml")
    commented = file.replace("- email: bo@example.com", "- email: bo@example.com   # since May")
    site.commit({"slices/vision/slice.yaml": commented + "\n"})
    body = {"workspaceName": "vision", "members": ["bo@example.com", "dee@example.com"], "quotaGPUs": 32}
    assert ada.put(PATH, json=body).status_code == 200
    want = commented.replace("# since May", "# since May\n    - email: dee@example.com").replace(
        "gpus: 64", "gpus: 32"
    )
    assert site.main("slices/vision/slice.yaml") == want
    found = ada.get(PATH, params={"workspaceName": "vision"}).json()["data"]
    assert (found["clusters"], found["quota"]["gpus"]) == (["east", "west"], 32)
    assert ada.put(PATH, json={**body, "members": ["dee@example.com"]}).status_code == 200
    assert "bo@example.com" not in site.main("slices/vision/slice.yaml")


def test_an_owner_changes_members_alone_and_asks_for_the_rest(site):
    with site.client("olga-owner") as olga:
        body = {"workspaceName": "vision", "members": ["bo@example.com", "dee@example.com"]}
        assert olga.put(PATH, json=body).json()["data"]["change"]["way"] == "pushed"
        asked = olga.put(PATH, json={"workspaceName": "vision", "clusters": ["west"]}).json()["data"][
            "change"
        ]
        assert asked["way"] == "branch"
        assert olga.get(PATH, params={"workspaceName": "vision"}).json()["data"]["clusters"] == [
            "east",
            "west",
        ]
    with site.client("bo-owner") as bo:
        refused(bo.put(PATH, json=body), 403, "Forbidden")
    with site.client("cy-editor") as cy:
        refused(cy.put(PATH, json=body), 404, "NotFound")


def test_a_request_for_a_slice_that_counts_is_changed_in_its_own_file(site, ada):
    head = "apiVersion: egs.dev/v1alpha1\nkind: WorkspaceRequest\nmetadata: {name: asked}\nspec:\n"
    spec = "  requester: {email: bo@example.com}\n  clusters: [east]\n  namespaces: [asked]\n"
    site.commit({"requests/asked.yaml": head + spec})
    body = {"workspaceName": "asked", "members": ["bo@example.com", "cy@example.com"], "description": "later"}
    assert ada.put(PATH, json=body).status_code == 200
    assert site.main("requests/asked.yaml").startswith(head + spec + "  reason: later\n")
    assert ada.get(PATH, params={"workspaceName": "asked"}).json()["data"]["members"] == body["members"]
    assert "its requester owns it" in refused(
        ada.put(PATH, json={"workspaceName": "asked", "owners": []}), 422
    )
    assert ada.delete(PATH, params={"workspaceName": "asked"}).status_code == 200
    assert site.main("requests/asked.yaml") is None


def test_detaching(site, ada):
    def body(cluster):
        return {"workspaceName": "vision", "clusterName": cluster}

    assert "spans east, west" in refused(ada.post(f"{PATH}/detach", json=body("north")), 422)
    site.file("vision/big", nodes=2, clusters=["west"])
    pass_by(site, 0, 3)
    assert "vision/big not over yet" in refused(
        ada.post(f"{PATH}/detach", json=body("west")), 409, "WorkspaceInUse"
    )
    refused(ada.put(PATH, json={"workspaceName": "vision", "clusters": ["east"]}), 409, "WorkspaceInUse")
    assert ada.post(f"{PATH}/detach", json=body("east")).status_code == 200
    assert "last cluster" in refused(ada.post(f"{PATH}/detach", json=body("west")), 422)
    with site.client("olga-owner") as olga:
        refused(olga.post(f"{PATH}/detach", json=body("west")), 403, "Forbidden")


def test_a_workspace_in_use_is_not_taken_away(site, ada):
    site.file("vision/small")
    said = refused(ada.request("DELETE", PATH, json={"workspaceName": "vision"}), 409, "WorkspaceInUse")
    assert "vision/small" in said  # filed, and not answered yet
    site.settle()
    refused(ada.delete(PATH, params={"workspaceName": "vision"}), 409, "WorkspaceInUse")
    pass_by(site, 3, 61, 6)
    site.commit({"slices/vision/README.md": "hello"})
    assert ada.delete(PATH, params={"workspaceName": "vision"}).status_code == 200
    assert site.main("slices/vision/slice.yaml") is None
    assert site.main("slices/vision/gprs/small.yaml") is None
    assert site.main("keys/bo-editor.yaml") is None  # good for nothing else
    assert site.main("keys/bo-owner.yaml") is not None
    refused(ada.delete(PATH, params={"workspaceName": "vision"}), 404, "NotFound")
    refused(ada.delete(PATH), 422)


def test_what_it_uses_and_costs_is_told(site, ada):
    """C9: an hour on 8 GPUs at 2.50 is 20; what goes on is counted beside what ended."""
    site.file("vision/one", clusters=["east"])
    pass_by(site, 0, 2, 60, 6)
    site.file("vision/two", clusters=["east"], nodes=2, duration="2h")
    pass_by(site, 0, 2, 30)  # two minutes of preparation
    found = ada.get(PATH, params={"workspaceName": "vision"}).json()["data"]
    assert found["use"] == {"waiting": 0, "holding": 1, "gpusHeld": 16, "nodesHeld": 2}
    (month,) = found["cost"]["months"]
    assert (month["month"], month["gpuHours"], month["amount"], month["leases"]) == ("2026-11", 8.0, 20.0, 1)
    assert found["cost"]["amount"] == pytest.approx(20.0 + found["cost"]["runningAmount"])
    hours = (site.view.facts.at - site.view.facts.requests["vision/two"].start_time).total_seconds() / 3600
    assert found["cost"]["runningAmount"] == pytest.approx(16 * 2.5 * hours, abs=0.001)


def test_everybody_sees_their_own_alone(site):
    seen = {}
    for key in ("ada-owner", "ada-vision", "olga-owner", "bo-viewer", "cy-editor", "eve-editor"):
        with site.client(key) as client:
            seen[key] = [each["name"] for each in client.get(f"{PATH}/list").json()["data"]["workspaces"]]
    assert seen == {
        "ada-owner": ["nlp", "vision"],
        "ada-vision": ["vision"],
        "olga-owner": ["vision"],
        "bo-viewer": ["vision"],
        "cy-editor": ["nlp"],
        "eve-editor": [],
    }


def test_the_same_key_makes_a_workspace_once(site, ada):
    headers = {"Idempotency-Key": "once"}
    first = ada.post(PATH, json=SEED, headers=headers).json()
    assert ada.post(PATH, json=SEED, headers=headers).json() == first


def test_nobody_asks_for_another(site):
    body = {"workspaceName": "mine", "clusters": ["east"]}
    with site.client("bo-owner") as bo:
        for other in ({"email": "cy@example.com"}, {"username": "cy@example.com"}):
            assert "of their own" in refused(bo.post(PATH, json=body | other), 403, "Forbidden")
        assert bo.post(PATH, json=body | {"email": "Bo@example.com"}).status_code == 200


def test_nobody_asks_for_workspaces_without_end(site):
    """Five wait at a time; what was merged, or taken back, waits no more."""
    with site.client("bo-owner") as bo:

        def ask(name):
            return bo.post(PATH, json={"workspaceName": name, "clusters": ["west"]})

        branches = [ask(f"w{i}").json()["data"]["change"]["branch"] for i in range(5)]
        assert "5 workspaces" in refused(ask("w5"), 422)
        repos.git(site.repo, "update-ref", "refs/heads/main", branches[0])  # an admin merges it
        site.refresh()
        assert ask("w5").status_code == 200
        assert refused(ask("w6"), 422)
        repos.git(site.repo, "update-ref", "-d", f"refs/heads/{branches[1]}")
        assert ask("w6").status_code == 200
    with site.client("cy-editor") as cy:
        assert cy.post(PATH, json={"workspaceName": "w7", "clusters": ["west"]}).status_code == 200
