"""How a page is answered: whole, or its main part alone for a script of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    yield made
    made.close()


def test_a_script_gets_the_main_part_alone(site: Site) -> None:
    """With all that the template imports."""
    with site.client("bo-editor") as client:
        whole = client.get("/requests").text
        part = client.get("/requests", headers={"HX-Request": "true"}).text
    assert part.strip()
    assert part.strip() in whole
    assert "<html" not in part


def test_a_worker_may_reach_the_portal(site: Site) -> None:
    """A worker obeys the policy of its own script, not that of the page."""
    with site.client() as client:
        page = client.get("/requests")
        address = page.text.partition('<script src="')[2].partition('"')[0]
        script = client.get(address)
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert script.headers["Content-Security-Policy"] == page.headers["Content-Security-Policy"]
