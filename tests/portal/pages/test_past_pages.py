"""`?at=` on a page: a permalink to a state opens that state, or says that it is gone (browser check 24)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.page_reader import HTML, page
from tests.support.portal import Site


@pytest.fixture(scope="module")
def then(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """A fleet in which vision/train waited at that commit, and is over now."""
    site = Site(tmp_path_factory.mktemp("site"))
    site.settle()
    site.file("vision/first", nodes=4, duration="30m", clusters=["east"])
    site.file("vision/train", nodes=4, duration="30m", clusters=["east"])
    site.settle()
    commit = site.view.status
    site.pass_time(120)
    yield site, commit
    site.close()


def test_a_permalink_opens_the_state_of_then(then: tuple[Site, str]) -> None:
    site, commit = then
    client = site.client("bo-editor")
    past = page(client, f"/requests?which=all&at={commit}")
    assert "train vision/train Queued" in past.text
    assert f"This is the state of Nov 21, 08:00, commit {commit[:12]}" in past.text
    assert "train vision/train Completed" in page(client, "/requests?which=all").text
    assert f"/requests/vision/train?at={commit}" in past.html, "links lead to the same state"
    assert "js/live.js" not in past.html, "new commits change nothing in it"
    assert page(client, f"/requests/vision/train?at={commit}").status == 200


def test_nothing_is_changed_in_the_past(then: tuple[Site, str]) -> None:
    site, commit = then
    origin = {**HTML, "Origin": "http://testserver"}
    answer = site.client("bo-editor").post(
        f"/requests/vision/train/cancel?at={commit}", data={"key": "k" * 20}, headers=origin
    )
    assert answer.status_code == 409
    assert "nothing can be changed" in answer.text


def test_a_state_that_is_gone_says_so(then: tuple[Site, str]) -> None:
    site, _ = then
    answer = site.client("bo-editor").get(f"/requests?at={'0' * 40}", headers=HTML)
    assert answer.status_code == 410
    assert "StateGone" in answer.text
