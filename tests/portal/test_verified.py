"""Where main is verified: the portal's commits count by its key, for whom they name, and for nobody else (K1, E4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from portal.writes.write_request import Tree, WriteRequest
from reconciler.settings import Trust
from reconciler.store.store_port import Draft, Outcome, Person
from reconciler.trust.vouchers import ON_BEHALF_OF
from tests.support import repos
from tests.support.machinekeys import line, private_text
from tests.support.portal import Replica, Site
from tests.support.wishes import files, landed, submit, wish
from tests.support.world import gpr, gpr_path, slice_


def key_file(folder: Path, name: str) -> Path:
    """A private key, as ssh-keygen leaves one."""
    file = folder / f"{name}.key"
    file.write_bytes(private_text(name))
    file.chmod(0o600)
    return file


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    trust = tmp_path / "trust"
    trust.mkdir()
    lines = (line("controller"), line("service:portal/all", "portal"))
    (trust / "allowed_signers").write_text("\n".join(lines) + "\n")
    made = Site(tmp_path / "site", trust=Trust("signature", trust, key_file(tmp_path, "controller")))
    made.settle()
    made.settings = replace(made.settings, trust=Trust("signature", trust, key_file(tmp_path, "portal")))
    yield made
    made.close()


def held(site: Site) -> dict[str, str]:
    """Rules by path of what main has and what does not count."""
    trust = site.view.facts.trust
    assert trust is not None
    return {hold.path: hold.rule for hold in trust.held}


def test_the_controller_takes_the_portals_word(site: Site) -> None:
    """A member's request and an admin's quota both count: the service speaks for them, and signs."""
    portal = site.replica()
    quota = slice_("nlp", members=[{"email": "cy@example.com"}], quota={"gpus": 8})
    admin = WriteRequest(portal.caller("ada-owner"), "Quota", files(**{"slices/nlp/slice.yaml": quota}))
    for each in submit(portal, wish(site, "bo-editor", "vision/train"), admin):
        assert landed(each).way == "pushed"
    assert "-----BEGIN SSH SIGNATURE-----" in repos.git(site.repo, "cat-file", "commit", "main")
    site.settle()
    assert held(site) == {}
    assert site.view.facts.requests["vision/train"].phase == "Provisioning"
    assert site.view.wanted.slices["nlp"].quota is not None


def forged(portal: Replica, site: Site, path: str, text: str, email: str) -> None:
    """What a portal would push that asked nobody what its caller may."""
    tip = portal.store.fetch(["main"])["main"]
    message = f"Forged\n\n{ON_BEHALF_OF}: Eve <{email}>\n"
    oid = portal.store.write(Draft({path: text.encode()}, message, Person("Eve", email), site.now, tip, tip))
    assert portal.store.push("main", oid, tip) is Outcome.COMMITTED


def test_it_holds_what_nobody_with_the_right_stands_behind(site: Site) -> None:
    """Whatever the service signs counts as its caller's: eve is no member, and bo no admin."""
    portal = site.replica()
    forged(portal, site, gpr_path("vision/eves"), gpr("vision", "eves"), "eve@example.com")
    forged(portal, site, "slices/nlp/slice.yaml", slice_("nlp", quota={"gpus": 9}), "bo@example.com")
    site.settle()
    assert set(held(site)) == {gpr_path("vision/eves"), "slices/nlp/slice.yaml"}
    assert "vision/eves" not in site.view.facts.requests


def test_a_change_is_made_of_what_counts(site: Site) -> None:
    """What somebody slipped into a file is not carried on by the next change of it."""
    portal = site.replica()
    landed(submit(portal, wish(site, "bo-editor", "vision/train"))[0])
    site.settle()
    slipped = gpr("vision", "train", priority=200)
    repos.commit(site.repo, {gpr_path("vision/train"): slipped}, author="Eve <eve@example.com>")
    site.settle()
    assert set(held(site)) == {gpr_path("vision/train")}
    seen: list[bytes | None] = []

    def make(view: object, tree: object) -> dict[str, bytes | None]:
        seen.append(tree.read(gpr_path("vision/train")))  # type: ignore[attr-defined]
        return {gpr_path("vision/train"): gpr("vision", "train", displayName="mine").encode()}

    found = submit(portal, WriteRequest(portal.caller("bo-editor"), "Rename", make))  # type: ignore[arg-type]
    landed(found[0])
    assert seen[0] == gpr("vision", "train").encode()
    site.settle()
    assert held(site) == {}
    assert site.view.facts.requests["vision/train"].accepted_spec.display_name == "mine"


def test_a_change_starts_from_the_one_that_replaced_what_is_held(site: Site) -> None:
    """A hold concerns one content: what its file says by now is not lost while it is not judged yet."""
    portal, path = site.replica(), gpr_path("vision/train")
    landed(submit(portal, wish(site, "bo-editor", "vision/train"))[0])
    site.settle()
    slipped = gpr("vision", "train", priority=200)
    repos.commit(site.repo, {path: slipped}, author="Eve <eve@example.com>")
    site.settle()
    assert set(held(site)) == {path}
    mended = gpr("vision", "train", displayName="mine")
    landed(submit(portal, WriteRequest(portal.caller("bo-editor"), "Rename", files(**{path: mended})))[0])
    seen: list[bytes | None] = []

    def make(view: object, tree: Tree) -> dict[str, bytes | None]:
        seen.append(tree.read(path))
        return {}

    landed(submit(portal, WriteRequest(portal.caller("bo-editor"), "Look", make))[0])
    assert seen == [mended.encode()]
