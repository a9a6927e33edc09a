"""Endpoints in the portal (J2): the list, one endpoint, other weights; none of others."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from re import findall

import pytest
import yaml

from tests.support.endpoints import document, version
from tests.support.portal import Site

PATH = "slices/vision/endpoints/chat.yaml"
BOTH = [version("v1"), version("v2")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision serves a model in two versions; nlp serves one that no member of vision may see."""
    files = {
        PATH: document("chat", "vision", versions=BOTH, gpr="serves"),
        "slices/nlp/endpoints/secret.yaml": document("secret", "nlp"),
    }
    made = Site(tmp_path_factory.mktemp("site"), files)
    made.settle()
    made.file("vision/serves", nodes=1, duration="6h", clusters=["east"], gpusPerNode=8)
    made.settle()
    made.pass_time(10)
    yield made
    made.close()


def page(site: Site, path: str, key: str = "bo-editor", status: int = 200) -> str:
    answer = site.client(key).get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def sent(site: Site, status: int, **form: str) -> str:
    answer = site.client("bo-editor").post(
        "/endpoints/vision/chat/weights", data=form, headers={"Accept": "text/html"}, follow_redirects=False
    )
    assert answer.status_code == status, unescape(answer.text)
    return answer.headers["location"] if status == 303 else unescape(answer.text)


def test_the_list_has_what_the_caller_may_see(site: Site) -> None:
    whole = page(site, "/endpoints")
    assert findall(r'href="/endpoints/(\w+/\w+)"', whole) == ["vision/chat"]
    assert "Serving" in whole
    assert "secret" not in whole
    assert "/endpoints/nlp/secret" in page(site, "/endpoints", "ada-owner")
    assert "Nothing is served" in page(site, "/endpoints", "eve-editor")


def test_one_endpoint_has_its_versions_and_objects(site: Site) -> None:
    whole = page(site, "/endpoints/vision/chat")
    for text in ("Deployment", "chat-v1", "chat-v2", "acme/small", "Share the traffic"):
        assert text in whole, text
    assert "Roll back" not in whole, "there are no weights from before"
    assert "Share the traffic" not in page(site, "/endpoints/vision/chat", "bo-viewer")
    page(site, "/endpoints/nlp/secret", status=404)


def test_weights_are_changed_and_brought_back(site: Site) -> None:
    assert sent(site, 303, do="promote", version="v2", weight="40").startswith("/endpoints/vision/chat?")
    assert yaml.safe_load(site.main(PATH) or "")["spec"]["weights"] == {"v1": 60, "v2": 40}
    site.settle()
    assert "The weights from before: v1 100 %." in page(site, "/endpoints/vision/chat")
    sent(site, 303, do="rollback")
    assert yaml.safe_load(site.main(PATH) or "")["spec"]["weights"] == {"v1": 100}
    assert "whole number from 1 to 100" in sent(site, 422, do="promote", version="v2", weight="much")
    assert "no version v9" in sent(site, 422, do="promote", version="v9", weight="100")
