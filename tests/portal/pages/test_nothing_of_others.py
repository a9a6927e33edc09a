"""A member finds no name of another workspace on any page, in any header and in no JSON (browser check 13; A6, B7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.http.app import found_routers
from tests.support.page_paths import paths
from tests.support.portal import Site
from tests.support.world import slice_

SECRETS = ("zz-plan", "Zebra", "zoe@example.com", "zz-namespace", "zz-team", "zz-model")
"""What only members of zz-team and admins may know."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Zebras hold nodes that vision waits for, wait themselves, have finished, and have a broken file."""
    team = slice_("zz-team", members=[{"email": "zoe@example.com"}], namespaces=["zz-namespace"])
    made = Site(tmp_path_factory.mktemp("site"), {"slices/zz-team/slice.yaml": team})
    made.settle()
    made.file("zz-team/zz-plan-over", nodes=1, duration="30m", displayName="Zebra over")
    made.settle()
    made.pass_time(50)
    more = {"displayName": "Zebra", "model": {"name": "zz-model"}, "clusters": ["east"]}
    made.file("zz-team/zz-plan-runs", nodes=4, duration="6h", **more)
    made.settle()
    made.pass_time(5)
    made.file("zz-team/zz-plan-waits", nodes=4, duration="6h", priority=180, **more)
    made.file("vision/runs", nodes=4, duration="1h", clusters=["east"])
    made.commit({"slices/zz-team/gprs/zz-plan-bad.yaml": "kind: GPR\n"})
    made.settle()
    yield made
    made.close()


def found_by(site: Site, key: str, addresses: list[str]) -> dict[str, list[str]]:
    """The secrets in each answer to that caller, body and headers."""
    found = {}
    with site.client(key) as client:
        for path in addresses:
            answer = client.get(path, headers={"Accept": "text/html"}, follow_redirects=False)
            assert answer.status_code < 500, path
            text = answer.text + str(answer.headers)
            found[path] = [secret for secret in SECRETS if secret in text]
    return {path: told for path, told in found.items() if told}


def routes() -> list[str]:
    """Every path of the API that is read and needs no parameter in it."""
    every = (route for router in found_routers() for route in router.routes)
    reads = (route for route in every if "GET" in (route.methods or ()) and "{" not in route.path)  # type: ignore[attr-defined]
    quiet = ("watch", "stream", "live", "login", "callback")
    return [f"/api/v1{route.path}" for route in reads if not route.path.endswith(quiet)]  # type: ignore[attr-defined]


def test_a_member_of_another_workspace_finds_nothing(site: Site):
    assert found_by(site, "bo-editor", [*paths(), *routes()]) == {}


def test_the_pages_would_show_it_to_an_admin(site: Site):
    """Else the test above would prove nothing."""
    found = found_by(site, "ada-owner", [*paths(), *routes()])
    assert {secret for told in found.values() for secret in told} >= set(SECRETS[:3])
