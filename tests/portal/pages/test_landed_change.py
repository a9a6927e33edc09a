"""What a page says of the change before, from its address, which anybody may write."""

from __future__ import annotations

import pytest

from portal.http.context import Changed
from portal.pages.landed_change import DID, landed_of, query_of
from tests.support.page_reader import page
from tests.support.portal import Site

HOME = "https://forge.example.com/team/gpus"


def test_what_was_done_and_where_it_is_survives_the_address() -> None:
    change = Changed(way="pull-request", branch="requests/extend-1", url=f"{HOME}/pull/7")
    found = landed_of(query_of(change) | {"did": "extend"}, HOME)
    assert found is not None
    assert (found.url, found.branch, found.did) == (f"{HOME}/pull/7", "requests/extend-1", DID["extend"])


@pytest.mark.parametrize(
    ("url", "home"),
    [
        pytest.param("https://evil.example.com/pull/7", HOME, id="another host"),
        pytest.param(f"{HOME}.evil.example.com/pull/7", HOME, id="another host that begins alike"),
        pytest.param("javascript:alert(1)", HOME, id="a script"),
        pytest.param("https://evil.example.com/pull/7", "", id="a repository without a forge"),
        pytest.param(f"{HOME}/../../evil/pull/7", HOME, id="out of the repository by dots"),
        pytest.param(f"{HOME}/%2E%2e/evil", HOME, id="out of it by coded dots"),
        pytest.param(f"{HOME}/..\\evil", HOME, id="out of it by a backslash"),
        pytest.param(f"{HOME}/.\t./evil", HOME, id="out of it by dots around a tab"),
    ],
)
def test_a_link_leads_to_the_repository_alone(url: str, home: str) -> None:
    found = landed_of({"way": "pull-request", "url": url}, home)
    assert found is not None
    assert not found.url


def test_words_of_others_are_not_shown(tmp_path) -> None:
    assert landed_of({"way": "stolen"}) is None
    site = Site(tmp_path)
    site.file("vision/train", nodes=1, duration="1h")
    site.settle()
    told = page(site.client("bo-owner"), "/requests/vision/train?way=pushed&did=Send%20money&commit=x")
    assert "Send money" not in told.text
    assert "The change is on main. It shows here" in told.text
    site.close()
