"""The application as a whole: health, envelopes of errors, headers, conditional reads, bounds, hooks, the document."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from portal.http.headers import MOST_BODY, has_tag
from portal.openapi.document import API
from tests.support import repos
from tests.support.portal import Site
from tests.support.world import START, gpr, gpr_path

GPR = "/api/v1/gpr?gprId=vision/train"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    secrets = tmp_path / "hooks"
    secrets.write_text("s3cret-of-the-forge\n")
    made = Site(tmp_path / "site", portal={"hook_secrets": secrets})
    made.file("vision/train")
    made.settle()
    yield made
    made.close()


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and key, of an envelope that is whole."""
    body = answer.json()
    assert set(body) == {"statusCode", "status", "message", "data", "error"}
    assert body["statusCode"] == answer.status_code
    assert body["status"] == HTTPStatus(answer.status_code).phrase
    assert body["data"] is None
    assert set(body["error"]) == {"errorKey", "message", "data"}
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])
    return answer.status_code, body["error"]["errorKey"]


def test_health(site: Site) -> None:
    """Alive and ready are two things: a view that is older than three polls is not ready, and says since when."""
    with site.client(None) as client:
        assert client.get("/healthz").json() == {
            "ok": True,
            "reason": "Alive",
            "message": "the portal answers",
        }
        assert client.get("/readyz").json()["reason"] == "Reading"
        site.silent_s = 16
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (503, "RemoteUnreachable")
        assert f"since {START:%Y-%m-%dT%H:%M:%SZ}, for 16 s" in answer.json()["message"]
        assert client.get("/healthz").status_code == 200


def test_headers(site: Site) -> None:
    """Every read names its commits and its age; every answer has its request id and is careful with browsers."""
    site.silent_s = 4
    with site.client("bo-editor") as client:
        answer = client.get(GPR)
        assert answer.headers["EGS-Commit"] == repos.tip(site.repo)
        assert answer.headers["EGS-Status-Commit"] == repos.tip(site.repo, "egs/status")
        assert answer.headers["Age"] == "4"
        assert answer.headers["Cache-Control"] == "private, no-cache"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Authorization" in answer.headers["Vary"]
        assert client.get(GPR).headers["X-Request-Id"] != answer.headers["X-Request-Id"]


def test_conditional_reads(site: Site) -> None:
    """304 and no body while the data is the same, whatever else was committed; 200 when it is not."""
    with site.client("bo-editor") as client:
        tag = client.get("/api/v1/gpr-template/list").headers["ETag"]
        for header in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            answer = client.get("/api/v1/gpr-template/list", headers={"If-None-Match": header})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["ETag"] == tag
        site.file("vision/other")
        assert client.get("/api/v1/gpr-template/list", headers={"If-None-Match": tag}).status_code == 304
        site.commit({"templates/small.yaml": None})
        assert client.get("/api/v1/gpr-template/list", headers={"If-None-Match": tag}).status_code == 200
    assert not has_tag("", tag)


def test_errors_are_envelopes(site: Site) -> None:
    """Whatever goes wrong, the answer has the same form, and tells nothing of what was sent."""
    with site.client("bo-editor") as client:
        assert error_of(client.get("/api/v1/nothing")) == (404, "NoSuchPath")
        assert error_of(client.patch("/api/v1/gpr")) == (405, "MethodNotAllowed")
        assert error_of(client.get("/api/v1/gpr?gprId=vision/none"))[0] == 404
        assert error_of(client.get("/api/v1/gpr")) == (422, "BadParameters")
        broken = client.post("/api/v1/gpr", content="{", headers={"Content-Type": "application/json"})
        assert error_of(broken) == (400, "BadRequest")
        secret = client.post("/api/v1/gpr", json={"numberOfGPUs": "hunter2"})
        assert error_of(secret) == (422, "BadParameters")
        assert "hunter2" not in secret.text
        unknown = client.post("/api/v1/gpr", json={"sliceName": "vision", "surprise": 1})
        assert "surprise: there is no such field;" in unknown.json()["message"]
    with site.client(None) as client:
        assert error_of(client.get(GPR)) == (401, "Unauthenticated")


def test_bodies_are_bounded(site: Site) -> None:
    """A body that is too large is not read to its end, with or without a length."""
    large = b"x" * (MOST_BODY + 1)
    with site.client("bo-editor") as client:
        assert error_of(client.post("/api/v1/gpr", content=large)) == (413, "TooLarge")
        assert error_of(client.post("/api/v1/gpr", content=iter([large]))) == (413, "TooLarge")


def test_a_fault_of_ours(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """500 tells the request id and nothing else; the log has the rest under it."""

    @site.portal.app.get("/api/v1/broken")
    async def broken() -> None:
        raise RuntimeError("the password is hunter2")

    with site.client() as client:
        answer = client.get("/api/v1/broken")
    assert error_of(answer) == (500, "InternalError")
    assert "hunter2" not in answer.text
    assert answer.headers["X-Request-Id"] in answer.json()["message"]
    assert answer.headers["X-Request-Id"] in caplog.text


def test_hooks(site: Site) -> None:
    """A signed hook has the repository asked at once; another one is not believed."""
    body = json.dumps({"ref": "refs/heads/main"}).encode()
    signature = hmac.new(b"s3cret-of-the-forge", body, sha256).hexdigest()
    woken: list[bool] = []
    site.portal.reader.wake = lambda: woken.append(True)  # type: ignore[method-assign]
    with site.client(None) as client:
        good = client.post(
            "/hooks/push", content=body, headers={"X-Hub-Signature-256": f"sha256={signature}"}
        )
        assert good.status_code == 202
        bad = client.post("/hooks/push", content=body + b" ", headers={"X-Gitea-Signature": signature})
        assert error_of(bad) == (401, "SignatureWrong")
        assert error_of(client.post("/hooks/push", content=body)) == (401, "SignatureMissing")
    assert woken == [True]


def test_a_reader_that_runs(site: Site) -> None:
    """In its thread: a hook brings what was pushed without waiting for the poll."""
    first = site.view
    reader = site.portal.reader
    reader.start()
    repos.commit(site.repo, {gpr_path("vision/new"): gpr("vision", "new")})
    reader.wake()
    assert asyncio.run(reader.newer(first, 30)).request("vision/new") is not None


def test_server(site: Site) -> None:
    """By a real server on loopback."""
    with site.server() as url:
        assert httpx.get(f"{url}/readyz", timeout=60).status_code == 200
        page = httpx.get(f"{url}/docs", timeout=60)
        assert page.status_code == 200
        assert "<script" not in page.text
        assert httpx.get(f"{url}/openapi.json", timeout=60).json()["openapi"].startswith("3.")


def test_the_document(site: Site) -> None:
    """Every path has a summary and documented errors in our envelope; every read its headers and 304."""
    with TestClient(site.portal.app) as client:
        document = client.get("/openapi.json").json()
    for path, method, operation in _operations(document):
        where = f"{method} {path}"
        assert operation.get("summary"), where
        for status, answer in operation["responses"].items():
            if status.startswith(("4", "5")) and path.startswith(API):
                schema = answer["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorEnvelope"}, (where, status)
            if status == "200" and method == "get" and path.startswith(API):
                assert {"EGS-Commit", "ETag", "Age"} <= set(answer["headers"]), where
        is_data = "application/json" in operation["responses"].get("200", {}).get("content", {})
        assert ("304" in operation["responses"]) == (method == "get" and is_data), where
        assert "HTTPValidationError" not in json.dumps(operation), where


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation
