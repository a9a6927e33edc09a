"""An admin's word over HTTP: D14, E5, the same file as `egs approve` writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.documents.approval import Approval
from schemas.reading.reader import read_document
from tests.support import repos
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path, project, slice_

WORD, SMALL = "approvals/vision/big/ada.yaml", "approvals/vision/small/ada.yaml"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """`vision/big` asks for more than its quota, `vision/small` for less."""
    limited = slice_("vision", ("east", "west"), quota={"gpus": 8}, owners=[{"email": "olga@example.com"}])
    made = Site(tmp_path, {"slices/vision/slice.yaml": limited})
    made.file("vision/big", nodes=2)
    made.file("vision/small", nodes=1, duration="2h")
    made.settle()
    yield made
    made.close()


def shown(site: Site, key: str = "vision/big") -> dict[str, Any]:
    """How the request reads for whoever may see all."""
    data: dict[str, Any] = site.client("ada-viewer").get(f"/api/v1/gpr?gprId={key}").json()["data"]
    return data


def decide(site: Site, who: str = "ada-owner", **word: Any) -> Any:
    """The answer to a decision about `vision/big`, or another, as it reads now."""
    body = {"gprId": "vision/big", "decision": "approve"} | word
    digest = word.get("specDigest") or shown(site, body["gprId"])["specDigest"]
    return site.client(who).post("/api/v1/approvals", json=body | {"specDigest": digest})


def refused(answer: Any, status: int, key: str) -> Any:
    """It is refused so; what it says beside that."""
    body = answer.json()
    assert (answer.status_code, body["error"]["errorKey"]) == (status, key), body
    return body["error"]["data"]


def test_what_waits_is_listed_and_an_approval_lets_it_run(site: Site) -> None:
    """D14: with reasons and numbers, and no more once it is decided."""
    (one,) = site.client("bo-viewer").get("/api/v1/approvals").json()["data"]["items"]
    assert (one["name"], one["reasons"]) == ("vision/big", ["QuotaExceeded"])
    assert one["asked"]["numberOfGPUNodes"] == 2
    assert site.client("cy-editor").get("/api/v1/approvals").json()["data"]["items"] == []
    done = decide(site, reason="the deadline is real")
    assert done.status_code == 200, done.text
    text = site.main(WORD) or ""
    document = read_document(WORD, text.encode())
    assert isinstance(document, Approval)
    assert document.spec.spec_digest == one["specDigest"]
    assert document.spec.limit is not None
    assert (document.spec.limit.gpus, document.spec.limit.nodes, document.spec.reason) == (
        16,
        2,
        "the deadline is real",
    )
    site.settle()
    assert site.view.facts.requests["vision/big"].phase != "PendingApproval"
    assert site.client("bo-viewer").get("/api/v1/approvals").json()["data"]["items"] == []


def test_a_rejection_tells_why(site: Site) -> None:
    """D14: the vendor's status and the admin's reason."""
    assert decide(site, decision="reject", reason="next quarter").status_code == 200
    site.settle()
    data = site.client("bo-viewer").get("/api/v1/gpr?gprId=vision/big").json()["data"]
    assert data["status"]["provisioningStatus"] == "Rejected"
    assert "next quarter" in data["status"]["failureReason"]


@pytest.mark.parametrize(
    ("who", "word", "status"),
    [
        pytest.param("bo-owner", {}, 403, id="a member"),
        pytest.param("olga-owner", {}, 403, id="an owner of the workspace"),
        pytest.param("ada-editor", {}, 403, id="an admin's Editor key"),
        pytest.param("cy-editor", {}, 404, id="somebody of another workspace"),
        pytest.param("ada-owner", {"gprId": "vision/small"}, 409, id="what needs no word"),
        pytest.param("ada-owner", {"notAfter": "2020-01-01T00:00:00Z"}, 422, id="an end that is over"),
        pytest.param("ada-owner", {"limit": {"gpus": 8}}, 409, id="a limit below what it asks for"),
        pytest.param("ada-owner", {"decision": "maybe"}, 422, id="half a word"),
    ],
)
def test_who_may_not_and_what_makes_no_sense(site: Site, who: str, word: dict[str, Any], status: int) -> None:
    """B10: nothing is written."""
    assert decide(site, who, **word).status_code == status
    assert site.main(WORD) is None


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_what_was_not_shown_is_not_decided(site: Site, decision: str) -> None:
    """D14: whoever asks for more between an admin's look and word gets no word about that."""
    before = shown(site)["specDigest"]
    site.file("vision/big", nodes=4)
    for seen in (False, True):  # by the controller
        if seen:
            site.settle()
        told = refused(decide(site, decision=decision, specDigest=before), 409, "Conflict")
        assert told["asked"]["numberOfGPUNodes"] == 4
        assert site.main(WORD) is None
    assert told["specDigest"] == shown(site)["specDigest"]
    assert decide(site, decision=decision, specDigest=told["specDigest"]).status_code == 200


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_word_says_what_it_is_about(site: Site, decision: str) -> None:
    body = {"gprId": "vision/big", "decision": decision}
    refused(site.client("ada-owner").post("/api/v1/approvals", json=body), 422, "BadParameters")
    assert site.main(WORD) is None


def test_grace_is_approved_in_numbers(site: Site) -> None:
    """The digest leaves grace out, so the word says how much."""
    site.file("vision/small", nodes=1, duration="2h", extend="3h")
    site.commit({"project.yaml": project(maxExtension="1h")})
    site.settle()
    word = {"gprId": "vision/small", "rule": "extension"}
    refused(decide(site, **word), 422, "BadParameters")
    refused(decide(site, limit={"extend": "3h"}), 422, "BadParameters")
    assert decide(site, **word, limit={"extend": "2h"}).status_code == 200
    document = read_document(SMALL, (site.main(SMALL) or "").encode())
    assert isinstance(document, Approval)
    assert document.spec.limit is not None
    assert document.spec.limit.extend == timedelta(hours=2)


def test_nobody_approves_what_they_wrote(site: Site) -> None:
    """E5: wholly or in part, whoever began it; to reject it is another matter."""
    text = gpr("vision", "own", nodes=2)
    site.commit({gpr_path("vision/own"): text}, "Bo <bo@example.com>")
    site.settle()
    by_ada = gpr("vision", "own", nodes=2, displayName="Own")
    site.commit({gpr_path("vision/own"): by_ada}, "Ada <ADA@example.com>")
    site.settle()
    refused(decide(site, gprId="vision/own"), 403, "OwnRequest")
    site.commit({gpr_path("vision/own"): text}, "Bo <bo@example.com>")
    site.settle()
    refused(decide(site, gprId="vision/own"), 403, "OwnRequest")
    assert site.main("approvals/vision/own/ada.yaml") is None
    assert decide(site, gprId="vision/own", decision="reject", reason="no").status_code == 200


def test_where_the_project_allows_it_an_admin_approves_their_own(site: Site) -> None:
    site.commit({gpr_path("vision/own"): gpr("vision", "own", nodes=2)})
    site.settle()
    refused(decide(site, gprId="vision/own"), 403, "OwnRequest")
    site.commit({"project.yaml": project(approval={"ownRequests": True})})
    site.settle()
    assert decide(site, gprId="vision/own").status_code == 200


def test_who_merges_a_request_or_deleted_another_of_its_name_wrote_nothing_of_it(site: Site) -> None:
    path = gpr_path("vision/own")
    site.commit({path: gpr("vision", "own", nodes=1)})
    site.commit({path: None})
    base = repos.tip(site.repo)
    repos.git(site.repo, "branch", "asked", base)
    repos.commit(site.repo, {path: gpr("vision", "own", nodes=2)}, "asked", author="Bo <bo@example.com>")
    tree = repos.git(site.repo, "rev-parse", "asked^{tree}")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    merge = repos.git(site.repo, *who, "commit-tree", tree, "-p", base, "-p", "asked", "-m", "Merge")
    repos.git(site.repo, "update-ref", "refs/heads/main", merge)
    site.refresh()
    site.settle()
    assert decide(site, gprId="vision/own").status_code == 200
