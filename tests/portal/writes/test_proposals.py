"""Changes that wait for somebody to merge them: branches below requests/, pull requests on a forge (K1, D15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from portal.writes.write_request import WriteRequest
from tests.support import repos
from tests.support.forge import Forge, served
from tests.support.portal import Site
from tests.support.wishes import files, filing, landed, refused, submit, wish
from tests.support.world import gpr, gpr_path, project, slice_


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_what_an_admin_merges_is_a_branch(site: Site) -> None:
    """Plain Git: the branch is pushed, main stays as it is, and the same asked again finds the branch."""
    before = repos.tip(site.repo)
    change = WriteRequest(
        site.portal.caller("bo-editor"), "Ask: train!", filing("vision/train"), "k1", asks=True
    )
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
    change = WriteRequest(site.portal.caller("olga-owner"), "More", files(**more))
    assert landed(submit(site.portal, change)[0]).way == "branch"
    same = WriteRequest(site.portal.caller("bo-owner"), "More", files(**more))
    assert refused(submit(site.portal, same)[0]).status == 403


def test_the_project_wants_pull_requests(tmp_path: Path) -> None:
    """`changes: pull-request` holds for everything but what must not wait."""
    site = Site(tmp_path, {"project.yaml": project(changes="pull-request")})
    try:
        assert landed(submit(site.portal, wish(site, "bo-editor", "vision/a"))[0]).way == "branch"
        caller = site.portal.caller("bo-editor")
        hurried = WriteRequest(caller, "Release", filing("vision/b"), must_push=True)
        assert landed(submit(site.portal, hurried)[0]).way == "pushed"
    finally:
        site.close()


def test_a_branch_that_is_invalid_is_none(site: Site) -> None:
    """What would break main is refused before anybody is asked to merge it."""
    bad = WriteRequest(site.portal.caller("bo-editor"), "Bad", filing("vision/bad", nodes=0), asks=True)
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
            change = WriteRequest(site.portal.caller("bo-editor"), "Ask", filing("vision/train"), asks=True)
            found = landed(submit(replica, change)[0])
            assert found.way == ("branch" if is_down else "pull-request")
            assert found.branch in found.url if is_down else len(forge.pulls) == 1
        finally:
            site.close()


def asked(site: Site, who: str, key: str, **spec: object) -> WriteRequest:
    """Somebody asks for vision/train under that key of theirs."""
    return WriteRequest(site.portal.caller(who), "Ask", filing("vision/train", **spec), key, asks=True)


def open_branches(site: Site) -> list[str]:
    return repos.git(site.repo, "for-each-ref", "--format=%(refname)", "refs/heads/requests/").splitlines()


def test_one_branch_for_one_wish(site: Site) -> None:
    """Who asks twice for the same gets the branch that is there; another wish for it is told which one is open."""
    first = landed(submit(site.portal, asked(site, "bo-editor", "k1"))[0])
    for replica in (site.portal, site.replica()):
        again = landed(submit(replica, asked(site, "bo-editor", "k2"))[0])
        assert (again.branch, again.commit, again.id) == (first.branch, first.commit, first.id)
    for other in (asked(site, "bo-editor", "k3", nodes=2), asked(site, "ada-owner", "k1")):
        error = refused(submit(site.portal, other)[0])
        assert (error.status, error.reason) == (409, "AlreadyProposed")
        assert error.data == {"branch": first.branch, "path": gpr_path("vision/train")}
    assert len(open_branches(site)) == 1


def test_two_at_once_for_the_same(site: Site) -> None:
    one, other = submit(site.portal, asked(site, "bo-editor", "k1"), asked(site, "ada-owner", "k2"))
    assert landed(one).way == "branch"
    assert refused(other).reason == "AlreadyProposed"


def test_a_branch_that_was_merged_proposes_nothing(site: Site) -> None:
    """However it came to main, and whether or not the branch was deleted; nor does one that is gone."""
    landed(submit(site.portal, asked(site, "bo-editor", "k1"))[0])
    site.commit({gpr_path("vision/train"): gpr("vision", "train")})
    site.commit({gpr_path("vision/train"): None})
    found = landed(submit(site.portal, asked(site, "ada-owner", "k2"))[0])
    assert len(open_branches(site)) == 2
    repos.git(site.repo, "update-ref", "-d", f"refs/heads/{found.branch}")
    assert landed(submit(site.portal, asked(site, "bo-editor", "k3", nodes=2))[0]).way == "branch"


def test_a_branch_by_hand_counts(site: Site) -> None:
    """What somebody proposes by Git in several commits is found by all that it changes."""
    theirs = {gpr_path("vision/train"): gpr("vision", "train", nodes=2)}
    repos.git(site.repo, "branch", "requests/theirs", "main")
    repos.commit(site.repo, theirs, branch="requests/theirs")
    repos.commit(site.repo, {gpr_path("vision/more"): gpr("vision", "more")}, branch="requests/theirs")
    error = refused(submit(site.portal, asked(site, "bo-editor", "k1"))[0])
    assert (error.reason, (error.data or {})["branch"]) == ("AlreadyProposed", "requests/theirs")
