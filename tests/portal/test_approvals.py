"""An admin's word over HTTP: D14, E5, the same file as `egs approve` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.approval import Approval
from schemas.reading import read_document
from tests.support.portal import Site
from tests.support.world import slice_

WORD = "approvals/vision/big/ada.yaml"


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


def decide(site: Site, who: str = "ada-owner", **word: Any) -> Any:
    """The answer to a decision about `vision/big`."""
    body = {"gprId": "vision/big", "decision": "approve"} | word
    return site.client(who).post("/api/v1/approvals", json=body)


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
