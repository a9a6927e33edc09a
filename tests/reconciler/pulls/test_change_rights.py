"""May they? Asked before the merge, with the answer of after it; without anybody it says whose change it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.pulls import check_comment, check_repository, check_text
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.reading.reader import read_document
from schemas.reading.yaml_text import dump
from tests.reconciler.pulls.pull import Pulls, request
from tests.reconciler.trust.own_changes import key_of
from tests.support.keys import ssh_key, ssh_sign
from tests.support.world import approval, cluster, gpr, gpr_path, project, slice_

OWNED = {"slices/a/slice.yaml": slice_("a", owners=[{"email": "olga@example.com"}])}


@pytest.fixture(scope="module")
def pulls() -> Pulls:
    return Pulls.on(OWNED, request("a/x", 1, "1h", notBefore="2026-11-22T08:00:00Z"))


MEMBER, OWNER, ADMIN, OTHER, EVE = (f"{name}@example.com" for name in ("bo", "olga", "ada", "cy", "eve"))
MORE = slice_("a", owners=[{"email": OWNER}], members=[{"email": MEMBER}, {"email": EVE}])
QUOTA = slice_("a", owners=[{"email": OWNER}], quota={"gpus": 999})


@pytest.mark.parametrize(
    ("files", "whose", "may"),
    [
        pytest.param(
            request("a/new"), "members of slice a and admins", {MEMBER, OWNER, ADMIN}, id="a request"
        ),
        pytest.param(
            {gpr_path("a/x"): None}, "members of slice a and admins", {MEMBER, OWNER, ADMIN}, id="its end"
        ),
        pytest.param({gpr_path("a/new"): gpr("a", "new", move=3)}, "admins", {ADMIN}, id="a better place"),
        pytest.param(
            {"slices/a/slice.yaml": MORE}, "owners of slice a and admins", {OWNER, ADMIN}, id="a new member"
        ),
        pytest.param({"slices/a/slice.yaml": QUOTA}, "admins", {ADMIN}, id="more quota"),
        pytest.param({"project.yaml": project(maxRetries=5)}, "admins", {ADMIN}, id="the project"),
        pytest.param({"clusters/east.yaml": cluster(nodes=9)}, "admins", {ADMIN}, id="a cluster"),
        pytest.param(
            {"approvals/a/x/ada.yaml": approval("a", "x", "sha256:" + "1" * 64)},
            "the admin ada",
            {ADMIN},
            id="an approval",
        ),
        pytest.param(
            {"keys/k.yaml": key_of("k", "bo")}, "bo@example.com and admins", {MEMBER, ADMIN}, id="a key"
        ),
    ],
)
def test_who_may(pulls: Pulls, files: dict[str, str | None], whose: str, may: set[str]) -> None:
    unknown = pulls.check(files)
    assert unknown.judged.actor is None
    assert unknown.judged.denials == ()
    assert set((unknown.judged.may or {}).values()) == {whose}
    for who in (MEMBER, OWNER, ADMIN, OTHER, EVE):
        denied = pulls.check(files, by=who).judged.denials
        assert (denied == ()) is (who in may), (who, denied)


def test_files_that_do_nothing_are_anybodys(pulls: Pulls) -> None:
    assert pulls.check({"README.md": "x", ".github/CODEOWNERS": "* @eve"}, by=EVE).judged.denials == ()


ASKED = {
    "requests/speech.yaml": dump(
        {
            "apiVersion": "egs.dev/v1alpha1",
            "kind": "WorkspaceRequest",
            "metadata": {"name": "speech"},
            "spec": {"requester": {"email": EVE}, "clusters": ["east"], "namespaces": ["speech"]},
        }
    )
}


@pytest.mark.parametrize("who", [None, EVE, ADMIN])
def test_a_slice_may_be_asked_for_by_everybody_and_is_made_by_an_admins_merge(
    pulls: Pulls, who: str | None
) -> None:
    """B8, B9."""
    check = pulls.check(ASKED, by=who)
    assert check.judged.denials == ()
    assert check.verdict == ("clear" if who == ADMIN else "waits")
    if who != ADMIN:
        (need,) = check.needs
        assert (need.rule, need.key, need.admins, need.command) == ("slice", "speech", ("ada",), "")
        assert "an admin has to merge it (`ada`)" in check_comment.markdown(check)


def test_an_approval_with_the_admins_own_signature_may_be_brought_by_anybody(tmp_path: Path) -> None:
    key = ssh_key(tmp_path)
    admin = {"email": ADMIN, "keys": [key.public]}
    pulls = Pulls.on({"project.yaml": project(admins=[admin])}, request("a/big", 1))
    digest = pulls.world.status("a/big").spec_digest
    text = approval("a", "big", digest, notAfter="2026-12-01T00:00:00Z")
    path = "approvals/a/big/ada.yaml"
    document = read_document(path, text.encode())
    assert isinstance(document, Approval)
    signature = ssh_sign(key, NAMESPACE, statement("default", document))
    signed = approval("a", "big", digest, notAfter="2026-12-01T00:00:00Z", signature=signature)
    assert pulls.check({path: signed}, by=EVE).judged.denials == ()
    forged = approval("a", "big", digest, notAfter="2026-12-02T00:00:00Z", signature=signature)
    assert [d.rule for d in pulls.check({path: forged}, by=EVE).judged.denials] == ["NotTheApprover"]


def test_of_very_many_signed_approvals_the_first_are_checked_and_the_rest_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check_repository, "MOST_SIGNATURES", 2)
    asked: list[bytes] = []

    class Counted:
        def key_of(self, namespace: str, message: bytes, signature: str) -> None:
            asked.append(message)

    monkeypatch.setattr(check_repository, "SystemVerifier", Counted)
    keys = [f"a/big{number}" for number in range(4)]
    pulls = Pulls.on(*(request(key, 1) for key in keys))
    files = {}
    for key in keys:
        name, digest = key.partition("/")[2], pulls.world.status(key).spec_digest
        files[f"approvals/{key}/ada.yaml"] = approval("a", name, digest, signature="x")
    check = pulls.check(files, by=EVE)
    assert len(asked) == 2
    unread = [p.file for p in check.problems if p.rule == "TooManyApprovals"]
    assert unread == sorted(files)[2:]
    assert [denial.path for denial in check.judged.denials] == sorted(files)[:2]
    assert check.verdict == "refused"
    assert "was not checked" in check_text.text(check)


def test_a_pull_request_gives_nobody_the_rights_that_it_uses(pulls: Pulls) -> None:
    admins = project(admins=[{"email": "ada@example.com"}, {"email": EVE}])
    check = pulls.check({"project.yaml": admins, **request("a/new")}, by=EVE)
    assert {denial.path for denial in check.judged.denials} == {"project.yaml", gpr_path("a/new")}
