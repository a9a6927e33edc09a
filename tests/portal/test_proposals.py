"""Changes that wait for somebody to merge them: branches below requests/, pull requests on a forge (K1, D15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from portal.writing import Wish
from tests.support import repos
from tests.support.forge import Forge, served
from tests.support.portal import Site
from tests.support.wishes import files, filing, landed, refused, submit, wish
from tests.support.world import project, slice_


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_what_an_admin_merges_is_a_branch(site: Site) -> None:
    """Plain Git: the branch is pushed, main stays as it is, and the same asked again finds the branch."""
    before = repos.tip(site.repo)
    change = Wish(site.portal.caller("bo-editor"), "Ask: train!", filing("vision/train"), "k1", asks=True)
    found = landed(submit(site.portal, change)[0])
    assert found.way == "branch"
    assert found.branch.startswith("requests/ask-train-")
    assert repos.tip(site.repo, found.branch) == found.commit
    assert repos.git(site.repo, "rev-parse", f"{found.commit}^") == before == repos.tip(site.repo)
    again = landed(submit(site.replica(), change)[0])
    assert (again.branch, again.commit) == (found.branch, found.commit)
    assert site.log(found.branch)[0].endswith("|Ask: train!")


def test_owners_ask_for_what_is_an_admins(site: Site) -> None:
    """An owner's other fields become a proposal; somebody who owns nothing there is refused."""
    text = slice_("vision", ("east", "west"), owners=[{"email": "olga@example.com"}], quota={"gpus": 128})
    more = {"slices/vision/slice.yaml": text}
    change = Wish(site.portal.caller("olga-owner"), "More", files(**more))
    assert landed(submit(site.portal, change)[0]).way == "branch"
    same = Wish(site.portal.caller("bo-owner"), "More", files(**more))
    assert refused(submit(site.portal, same)[0]).status == 403


def test_the_project_wants_pull_requests(tmp_path: Path) -> None:
    """`changes: pull-request` holds for everything but what must not wait."""
    site = Site(tmp_path, {"project.yaml": project(changes="pull-request")})
    try:
        assert landed(submit(site.portal, wish(site, "bo-editor", "vision/a"))[0]).way == "branch"
        caller = site.portal.caller("bo-editor")
        hurried = Wish(caller, "Release", filing("vision/b"), must_push=True)
        assert landed(submit(site.portal, hurried)[0]).way == "pushed"
    finally:
        site.close()


def test_a_branch_that_is_invalid_is_none(site: Site) -> None:
    """What would break main is refused before anybody is asked to merge it."""
    bad = Wish(site.portal.caller("bo-editor"), "Bad", filing("vision/bad", nodes=0), asks=True)
    assert refused(submit(site.portal, bad)[0]).status == 422
    assert "requests/" not in repos.git(site.repo, "branch", "--format=%(refname:short)")


@pytest.mark.parametrize("is_down", [False, True])
def test_a_pull_request(tmp_path: Path, is_down: bool) -> None:
    """On a forge the pull request is opened; one that does not answer leaves the branch, and where to open it."""
    site = Site(tmp_path / "site")
    forge = Forge(site.repo, "gitea")
    with served(forge, tmp_path) as address:
        site.settings = replace(site.settings, forge=address)
        replica = site.replica()
        forge.down = 500 if is_down else None
        try:
            change = Wish(site.portal.caller("bo-editor"), "Ask", filing("vision/train"), asks=True)
            found = landed(submit(replica, change)[0])
            assert found.way == ("branch" if is_down else "pull-request")
            assert found.branch in found.url if is_down else len(forge.pulls) == 1
        finally:
            site.close()
