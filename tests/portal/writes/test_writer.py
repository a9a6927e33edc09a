"""Writes: one commit for each wish, several in one push, and what becomes of those that cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from portal.http.headers import REQUEST_ORIGIN, RequestOrigin
from portal.views.view import View
from portal.writes.write_request import Landed, Tree, WriteRequest
from tests.support import repos
from tests.support.portal import Site
from tests.support.wishes import broken, filing, landed, refused, submit, wish
from tests.support.world import gpr, gpr_path


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def pushes(site: Site) -> int:
    """How often main was pushed, as its reflog has it."""
    return len(repos.git(site.repo, "reflog", "show", "main").splitlines())


def test_author_committer_and_trailers(site: Site) -> None:
    """K1: a write is a commit by its caller, made by the service, with the request's id."""
    (found,) = submit(site.portal, wish(site, "bo-editor", "vision/train"))
    assert landed(found).way == "pushed"
    assert repos.tip(site.repo) == landed(found).commit
    assert site.log()[0] == ("bo <bo@example.com>|EGS portal <portal@egs.dev>|Request vision/train")
    trailers = repos.git(site.repo, "log", "-1", "--format=%(trailers)").splitlines()
    assert trailers[0] == f"Request-Id: {landed(found).id}"
    assert trailers[1] == "On-Behalf-Of: bo <bo@example.com>"
    assert site.view.request("vision/train") is not None, "whoever reads on the heels of the answer finds it"


def test_many_at_once_are_few_pushes(site: Site) -> None:
    """K1: writers of different files never see a conflict, however many there are."""
    repos.git(site.repo, "config", "core.logAllRefUpdates", "always")
    wishes = [wish(site, "bo-editor", f"vision/train-{n}") for n in range(20)]
    found = [landed(each) for each in submit(site.portal, *wishes)]
    assert len({each.commit for each in found}) == 20
    assert len(site.log()) == 21
    assert pushes(site) <= 3


def test_a_bad_one_fails_alone(site: Site) -> None:
    """A wish that would break main is refused with its problems; those beside it land."""
    bad = WriteRequest(site.portal.caller("bo-editor"), "Bad", filing("vision/bad", nodes=0))
    found = submit(site.portal, wish(site, "bo-editor", "vision/a"), bad, wish(site, "cy-editor", "nlp/b"))
    landed(found[0])
    landed(found[2])
    assert refused(found[1]).status == 422
    assert refused(found[1]).data is not None
    assert site.main(gpr_path("vision/bad")) is None


def test_no_right(site: Site) -> None:
    """B7: a plain lack of right is 403, by the same policy that judges commits of people."""
    (found,) = submit(site.portal, wish(site, "bo-editor", "nlp/mine"))
    assert refused(found).status == 403
    assert "not a member of slice nlp" in str(found)


def test_same_file(site: Site) -> None:
    """One wins, the other is told what changed: who, in which commit, which fields."""
    landed(submit(site.portal, wish(site, "bo-editor", "vision/train"))[0])
    one = WriteRequest(site.portal.caller("bo-editor"), "Longer", filing("vision/train", duration="2h"))
    other = WriteRequest(site.portal.caller("ada-owner"), "Shorter", filing("vision/train", duration="30m"))
    found = submit(site.portal, one, other)
    won = landed(found[0])
    lost = refused(found[1])
    assert (lost.status, lost.reason) == (409, "Conflict")
    assert lost.data is not None
    assert (lost.data["who"], lost.data["commit"]) == ("bo@example.com", won.commit)
    assert lost.data["fields"] == ["spec.duration"]
    (again,) = submit(site.portal, other)
    assert landed(again).way == "pushed", "now its caller may have seen what changed"


def test_somebody_pushes_in_between(site: Site) -> None:
    """The race for main is lost to a person with Git: the wish is made again on what they left."""
    repos.commit(site.repo, {"slices/nlp/gprs/by-hand.yaml": gpr("nlp", "by-hand")})
    (found,) = submit(site.portal, wish(site, "bo-editor", "vision/train"))
    assert site.main("slices/nlp/gprs/by-hand.yaml")
    assert landed(found).commit == repos.tip(site.repo)


def test_somebody_pushes_the_same_file(site: Site) -> None:
    """A push behind the portal's back counts as well as a write through it."""
    landed(submit(site.portal, wish(site, "bo-editor", "vision/train"))[0])
    hand = repos.commit(site.repo, {gpr_path("vision/train"): gpr("vision", "train", duration="3h")})
    shorter = WriteRequest(site.portal.caller("bo-editor"), "Shorter", filing("vision/train", duration="30m"))
    (found,) = submit(site.portal, shorter)
    assert refused(found).data is not None
    assert refused(found).data["commit"] == hand  # type: ignore[index]
    site.refresh()
    landed(submit(site.portal, shorter)[0])


def test_edits_of_what_holds_nodes(site: Site) -> None:
    """Terms of a lease do not change while it runs, whichever door is used."""
    site.file("vision/train")
    site.pass_time(3)
    longer = WriteRequest(site.portal.caller("bo-editor"), "Longer", filing("vision/train", duration="2h"))
    (found,) = submit(site.portal, longer)
    assert refused(found).status == 422
    assert "ForbiddenEdit" in str(found)


def test_the_same_key_again(site: Site) -> None:
    """K1: the same idempotency key is one commit and one answer, on whichever replica; another change is 409."""
    other = site.replica()
    mine = wish(site, "bo-editor", "vision/train", idempotency="k1")
    first = landed(submit(site.portal, mine)[0])
    for replica in (site.portal, other, site.replica()):
        assert landed(submit(replica, mine)[0]).commit == first.commit
    assert len(site.log()) == 2
    theirs = wish(site, "ada-owner", "vision/other", idempotency="k1")
    assert landed(submit(other, theirs)[0]).commit != first.commit, "keys of two callers never meet"


def test_a_key_for_something_else(site: Site) -> None:
    """A key that was used for another body is a mistake, and is told."""
    REQUEST_ORIGIN.set(RequestOrigin("1" * 32, "a" * 16))
    landed(submit(site.portal, wish(site, "bo-editor", "vision/train", idempotency="k1"))[0])
    REQUEST_ORIGIN.set(RequestOrigin("2" * 32, "b" * 16))
    (found,) = submit(site.portal, wish(site, "bo-editor", "vision/other", idempotency="k1"))
    REQUEST_ORIGIN.set(None)
    assert refused(found).reason == "IdempotencyKeyReused"


def test_two_at_once_with_one_key(site: Site) -> None:
    """Also on two replicas at the same time."""
    other = site.replica()
    mine = wish(site, "bo-editor", "vision/train", idempotency="k1")

    async def both() -> list[Landed]:
        every = [replica.writer.submit(mine) for replica in (site.portal, other, site.portal, other)]
        return list(await asyncio.gather(*every))

    found = asyncio.run(both())
    assert len({each.commit for each in found}) == 1
    assert len(site.log()) == 2


def test_nothing_changed(site: Site) -> None:
    """What is so already is no commit."""
    (first,) = submit(site.portal, wish(site, "bo-editor", "vision/train"))
    (found,) = submit(site.portal, wish(site, "bo-editor", "vision/train"))
    assert landed(found).commit == landed(first).commit


def test_a_wish_that_breaks(site: Site) -> None:
    """A fault in making one change is that caller's alone."""

    bad = WriteRequest(site.portal.caller("bo-editor"), "Broken", broken(RuntimeError("a bug")))
    found = submit(site.portal, bad, wish(site, "bo-editor", "vision/train"))
    assert isinstance(found[0], RuntimeError)
    landed(found[1])


def test_a_server_that_refuses(site: Site) -> None:
    """A server that says no to one commit of a push says no to that one alone."""
    hook = site.repo / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ngit log --format=%s "$2..$3" | grep -q bad && exit 1\nexit 0\n')
    hook.chmod(0o755)
    wishes = [wish(site, "bo-editor", f"vision/{name}") for name in ("one", "bad", "two")]
    found = submit(site.portal, *wishes)
    landed(found[0])
    landed(found[2])
    assert refused(found[1]).reason == "PushRefused"
    assert site.main(gpr_path("vision/two"))


def test_below(site: Site) -> None:
    """What a folder holds, with what was written in the same round."""
    seen: list[str] = []

    def look(view: View, tree: Tree) -> Mapping[str, bytes | None]:
        seen[:] = tree.below("slices/vision")
        return {}

    admin = site.portal.caller("ada-owner")
    submit(site.portal, wish(site, "ada-owner", "vision/train"), WriteRequest(admin, "Look", look))
    assert seen == [gpr_path("vision/train"), "slices/vision/slice.yaml"]


def test_injection(site: Site) -> None:
    """Nobody writes trailers by a name or a subject."""
    ada = site.portal.caller("ada-owner")
    eve = replace(ada, name="Ada\n\nOn-Behalf-Of: x <x@example.com>")
    subject = "Hello\n\nOn-Behalf-Of: Eve <eve@example.com>"
    landed(submit(site.portal, WriteRequest(eve, subject, filing("vision/train")))[0])
    message = repos.git(site.repo, "log", "-1", "--format=%B")
    assert message.startswith("Hello On-Behalf-Of: Eve <eve@example.com>\n\nRequest-Id: ")
    assert len(message.split("\n\n")) == 2
    assert sum(line.startswith("On-Behalf-Of:") for line in message.splitlines()) == 1
