"""Main is judged once, step by step, and never by more than the tree before it (D8, E4)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.forges.forge_port import Account, Pull
from reconciler.forges.open_forge import open_forge
from reconciler.model.evidence import Admitted
from reconciler.settings import ForgeAddress
from reconciler.trust import gate as gates
from schemas.errors import Fault
from tests.reconciler.trust.test_policy_matrix import of_slice
from tests.support import repos
from tests.support.landing import Land, person, rules
from tests.support.world import gpr, gpr_path, project

QUOTA = {"slices/a/slice.yaml": of_slice(quota={"gpus": 1600})}
NOBODY = "NobodyStandsBehindIt"
NEW, OLD = gpr_path("a/new"), gpr_path("a/old")
SLICE = "slices/a/slice.yaml"


@pytest.fixture
def land(tmp_path: Path) -> Land:
    return Land.begun(tmp_path)


def judged(land: Land, since: str) -> Admitted:
    """Main as somebody judges it who knows that everything up to `since` counts."""
    return land.admit(land.gate(), None, since)


# -- on whose authority -----------------------------------------------------------------------------------------


def test_what_rests_on_an_admins_commit_may_come_in_the_same_push(land: Land) -> None:
    base = land.at
    land.push({SLICE: of_slice(members=[person("eve")])}, "ada")
    land.push({NEW: gpr("a", "new")}, "eve")
    assert rules(judged(land, base)) == {}


def test_a_pull_request_that_makes_its_author_a_member_makes_nobody_one(land: Land) -> None:
    base = land.at
    first = land.commit({SLICE: of_slice(members=[person("eve")])}, "eve", land.at)
    land.pushed(land.merge(land.commit({NEW: gpr("a", "new")}, "eve", first), "forge"))
    assert rules(judged(land, base)) == {SLICE: NOBODY, NEW: NOBODY}


def test_an_admin_who_was_removed_is_none_in_the_next_commit(land: Land) -> None:
    base = land.at
    land.push({"project.yaml": project(admins=[person("olga")])}, "ada")
    land.push(QUOTA, "ada")
    assert rules(judged(land, base)) == {SLICE: "NotAnOwner"}


def test_a_key_that_was_revoked_counts_no_more(land: Land) -> None:
    gate, known = land.gate(), land.at
    land.admit(gate, None, known)
    land.push({NEW: gpr("a", "new")}, "bo")
    land.admit(gate, None, known)
    land.revoked = ("bo", "ada")
    land.push({OLD: gpr("a", "old", nodes=2)}, "bo")
    land.push({"clusters/east.yaml": None}, "ada")
    assert rules(land.admit(gate, None, known)).keys() == {OLD, "clusters/east.yaml"}


def test_a_key_beside_somebody_elses_address_gives_the_rights_of_its_slice_alone(land: Land) -> None:
    base = land.at
    ada = {"email": "ada@example.com", "keys": person("eve")["keys"]}
    cy = {"email": "cy@example.com", "keys": person("eve")["keys"]}
    land.push({SLICE: of_slice(members=[ada, cy])}, "olga")
    land.push({NEW: gpr("a", "new"), gpr_path("b/new"): gpr("b", "new"), "templates/t.yaml": None}, "eve")
    assert rules(judged(land, base)) == {gpr_path("b/new"): "NotAMember", "templates/t.yaml": "NotAnAdmin"}


def test_without_a_trust_folder_an_admin_is_who_the_project_says(land: Land) -> None:
    land.lines = ()
    land.pushed(land.commit({"project.yaml": project(admins=[person("ada")])}, None, land.at))
    base = land.at
    land.push(QUOTA, "ada")
    assert rules(judged(land, base)) == {}
    land.push({SLICE: of_slice(owners=[{"email": "ada@example.com", "keys": person("eve")["keys"]}])}, "ada")
    land.push({"templates/t.yaml": None}, "eve")
    assert rules(judged(land, base)) == {"templates/t.yaml": "NotAnAdmin"}


def test_with_a_trust_folder_no_manifest_makes_an_admins_key(land: Land) -> None:
    base = land.at
    land.push({"project.yaml": project(admins=[person("ada"), person("eve")])}, "ada")
    land.push(QUOTA, "eve")
    assert rules(judged(land, base)) == {SLICE: NOBODY}


def test_people_of_a_document_that_does_not_read_stay(land: Land) -> None:
    base = land.at
    land.push({SLICE: "a: [\n", "project.yaml": "a: [\n"}, "ada")
    land.push({NEW: gpr("a", "new")}, "bo")
    land.push({SLICE: of_slice(members=[person("cy")])}, "ada")
    assert rules(judged(land, base)) == {}
    land.push({OLD: None}, "bo")
    assert rules(judged(land, base)) == {OLD: NOBODY}


# -- which commits speak ----------------------------------------------------------------------------------------


def test_a_pull_of_main_by_an_admin_brings_nobody_elses_change_into_force(land: Land) -> None:
    """While no controller looked, somebody pushed; the admin pulls, which merges, and pushes."""
    base = land.at
    forbidden = land.push(QUOTA, "bo")
    own = land.commit({"NEWS": "1\n"}, "ada", base)
    land.at = own
    land.pushed(land.merge(forbidden, "ada", text="Merge branch 'main' of https://forge.example.com/fleet"))
    assert rules(judged(land, base)) == {SLICE: "NotAnOwner"}


def test_a_signed_commit_that_was_taken_back_does_not_speak_again(land: Land) -> None:
    base, before = land.at, repos.git(land.repo, "show", f"{land.at}:{SLICE}") + "\n"
    raised = land.push(QUOTA, "ada")
    land.push({SLICE: before}, "ada")
    again = land.commit({"NEWS": "1\n"}, None, raised)  # built where the quota was raised
    land.pushed(land.of_tree(land.tree(QUOTA, land.at), None, land.at, again))
    assert rules(judged(land, base)) == {SLICE: NOBODY}


def test_what_was_taken_back_does_not_come_back_by_turning_main_round(land: Land) -> None:
    before = repos.git(land.repo, "show", f"{land.at}:{SLICE}") + "\n"
    raised = land.push(QUOTA, "ada")
    base = land.push({SLICE: before}, "ada")
    own = land.commit({"NEWS": "1\n"}, "bo", raised)
    land.pushed(land.of_tree(land.tree({"NEWS": "2\n"}, own), None, own, base))
    assert rules(judged(land, base)) == {SLICE: NOBODY}


def test_what_a_merge_leaves_out_does_not_count(land: Land) -> None:
    """An unsigned merge takes nothing of a draft that the admin never brought to main."""
    base = land.at
    draft = land.commit({**QUOTA, NEW: gpr("a", "new")}, "ada", base)
    land.pushed(land.of_tree(repos.git(land.repo, "rev-parse", f"{base}^{{tree}}"), None, base, draft))
    gate = land.gate()
    assert rules(land.admit(gate, None, base)) == {}
    land.push({NEW: gpr("a", "new", nodes=2)}, "eve")
    (held,) = land.admit(gate, None, base).held
    assert (held.path, held.authorised) == (NEW, None)


def test_what_its_signer_changed_again_on_the_same_side_does_not_speak(land: Land) -> None:
    """The merge picks the admin's first commit out of a branch on which the admin took it back."""
    base = land.at
    first = land.commit(QUOTA, "ada", land.at)
    side = land.commit({SLICE: of_slice(description="not that many")}, "ada", first)
    land.pushed(land.merge(side, "bo", QUOTA))
    assert rules(judged(land, base)) == {SLICE: "NotAnOwner"}


def test_a_controller_goes_on_from_what_is_written_of_another(land: Land) -> None:
    base = land.at
    land.push(QUOTA, "bo")
    record = judged(land, base).record
    assert rules(land.admit(land.gate(), record, land.at)) == {SLICE: "NotAnOwner"}


def test_a_merge_of_a_branch_with_too_many_commits_speaks_through_its_signer_alone(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.trust.ancestry.MOST_SIDE_COMMITS", 3)
    base = land.at
    side = land.commit({NEW: gpr("a", "new")}, "bo", land.at)
    for number in range(4):
        side = land.commit({"NEWS": f"{number}\n"}, None, side)
    land.pushed(land.merge(side, None))
    assert rules(judged(land, base)) == {NEW: NOBODY}
    land.at = base
    land.pushed(land.merge(side, "ada"))
    assert rules(judged(land, base)) == {}


def test_a_branch_without_a_common_root_is_a_side_like_any(land: Land) -> None:
    base = land.at
    side = land.commit({NEW: gpr("a", "new"), gpr_path("b/new"): gpr("b", "new")}, "bo")
    land.pushed(
        land.of_tree(
            land.tree({NEW: gpr("a", "new"), gpr_path("b/new"): gpr("b", "new")}, base), None, base, side
        )
    )
    assert rules(judged(land, base)) == {gpr_path("b/new"): "NotAMember"}


# -- what lies at a path ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["100755", "120000"])
def test_a_mode_is_a_change_like_any(land: Land, mode: str) -> None:
    base = land.at
    oid = repos.git(land.repo, "rev-parse", f"{base}:{OLD}")
    repos.git(land.repo, "read-tree", "--index-output=index", base)
    repos.git(land.repo, "update-index", "--cacheinfo", f"{mode},{oid},{OLD}")
    tree = repos.git(land.repo, "write-tree")
    land.pushed(land.of_tree(tree, "eve", base))
    (held,) = judged(land, base).held
    assert (held.path, held.rule, held.authorised, held.mode) == (OLD, NOBODY, oid, 0o100644)
    land.at = base
    land.pushed(land.of_tree(tree, "bo", base))
    assert rules(judged(land, base)) == {}


def test_a_folder_replaced_by_a_file_takes_nothing_away(land: Land) -> None:
    base = land.at
    land.push({SLICE: None, OLD: None, gpr_path("a/moved"): None, "slices/a": "here\n"}, "eve")
    assert rules(judged(land, base)).keys() == {SLICE, OLD, gpr_path("a/moved")}
    land.push({"slices/a": None, f"{SLICE}/x": "x\n"}, "eve")
    assert rules(judged(land, base)).keys() == {SLICE, OLD, gpr_path("a/moved")}


def test_a_request_moved_to_another_slice_is_withdrawn_here_and_not_filed_there(land: Land) -> None:
    base = land.at
    land.push({OLD: None, gpr_path("b/mine"): gpr("b", "mine")}, "bo")
    assert rules(judged(land, base)) == {gpr_path("b/mine"): "NotAMember"}


def test_everything_deleted_by_a_stranger_stays(land: Land) -> None:
    base = land.at
    listed = repos.git(land.repo, "ls-tree", "-r", "--name-only", base).split("\n")
    land.push(dict.fromkeys(listed), "eve")
    assert rules(judged(land, base)).keys() == set(listed) - {"README.md"}


# -- how a hold ends --------------------------------------------------------------------------------------------


def test_a_hold_ends_when_main_has_what_counts(land: Land) -> None:
    base, before = land.at, repos.git(land.repo, "show", f"{land.at}:{SLICE}") + "\n"
    land.push(QUOTA, "eve")
    gate = land.gate()
    assert rules(land.admit(gate, None, base)) == {SLICE: NOBODY}
    land.push({SLICE: before}, "eve")
    assert rules(land.admit(gate, None, base)) == {}


def test_a_hold_goes_on_with_what_counted_first(land: Land) -> None:
    base = land.at
    counts = repos.git(land.repo, "rev-parse", f"{base}:{SLICE}")
    land.push(QUOTA, "eve")
    land.push({SLICE: of_slice(quota={"gpus": 3200})}, "bo")
    (held,) = judged(land, base).held
    assert (held.authorised, held.commit) == (counts, land.at)


def test_a_hold_ends_when_somebody_entitled_brings_the_same_in(land: Land) -> None:
    base = land.at
    land.push(QUOTA, "eve")
    land.push({SLICE: of_slice(quota={"gpus": 1600}, description="as asked")}, "ada")
    assert rules(judged(land, base)) == {}


def test_what_counted_long_ago_does_not_count_again_by_itself(land: Land) -> None:
    base, before = land.at, repos.git(land.repo, "show", f"{land.at}:{SLICE}") + "\n"
    land.push(QUOTA, "ada")
    land.push({SLICE: before}, "bo")
    assert rules(judged(land, base)) == {SLICE: "NotAnOwner"}


def test_a_hold_does_not_end_because_its_author_becomes_a_member(land: Land) -> None:
    base = land.at
    land.push({NEW: gpr("a", "new")}, "eve")
    land.push({SLICE: of_slice(members=[person("eve")])}, "ada")
    assert rules(judged(land, base)) == {NEW: NOBODY}


# -- what it costs ----------------------------------------------------------------------------------------------


def test_a_flood_of_commits_is_judged_in_portions(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "WORK", 2)
    base, gate = land.at, land.gate()
    for number in range(5):
        land.push({gpr_path(f"a/n{number}"): gpr("a", f"n{number}")}, "bo")
    seen = []
    while (admitted := gate.admit(land.at, None, base, land.now)).has_more:
        seen.append(admitted.commit)
    assert len(seen) == 2
    assert (admitted.commit, len(admitted.provenance)) == (land.at, 5)


def test_a_flood_of_files_in_one_commit_is_judged_in_portions(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its changes are judged by the people before it, and none counts before all are judged."""
    files = {gpr_path(f"a/n{number}"): gpr("a", f"n{number}") for number in range(5)}
    base = land.at
    land.push({**files, SLICE: of_slice(members=[person("eve")])}, "bo")
    at_once = judged(land, base)
    monkeypatch.setattr("reconciler.trust.step_evidence.PORTION", 2)
    gate, seen = land.gate(), []
    while (admitted := gate.admit(land.at, None, base, land.now)).has_more:
        seen.append(admitted.commit)
    assert seen == [base, base]
    assert (admitted.commit, rules(admitted)) == (land.at, rules(at_once))
    assert admitted.provenance == at_once.provenance


def test_files_of_many_commits_are_judged_in_portions(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "PORTION", 2)
    base, gate = land.at, land.gate()
    for number in range(5):
        land.push({gpr_path(f"a/n{number}"): gpr("a", f"n{number}")}, "bo")
    seen = []
    while (admitted := gate.admit(land.at, None, base, land.now)).has_more:
        seen.append(admitted.commit)
    assert len(seen) == 2
    assert (admitted.commit, len(admitted.provenance)) == (land.at, 5)


def test_a_forge_that_does_not_answer_leaves_main_where_it_was(land: Land) -> None:
    land.forge = open_forge(ForgeAddress("github", "http://127.0.0.1:9", "egs/fleet"))
    base, gate = land.at, land.gate("forge")
    land.push({"NEWS": "1\n"}, None)
    first = land.at
    land.push({NEW: gpr("a", "new")}, "bo")
    waiting = land.admit(gate, None, base)
    assert waiting.commit == first
    assert "judging main failed" in waiting.alarm
    assert not waiting.is_frozen
    assert land.admit(gate, None, base).alarm == waiting.alarm  # told once: the same sentence
    land.now += timedelta(minutes=1)
    land.forge = None
    assert land.admit(gate, None, base).commit == first


class Learning:
    """A forge that has not heard of any commit yet."""

    def pulls_of(self, commit: str) -> list[Pull]:
        return []

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        raise Fault("the forge does not know yet", "NotKnownYet")


def test_what_a_forge_learns_a_moment_later_is_no_alarm(land: Land) -> None:
    land.forge = Learning()  # type: ignore[assignment] # only what is asked of a commit
    base, gate = land.at, land.gate("forge")
    land.push({NEW: gpr("a", "new")}, "bo")
    waiting = land.admit(gate, None, base)
    assert (waiting.commit, waiting.alarm, waiting.is_frozen, waiting.has_more) == (base, "", False, False)
    assert land.admit(gate, None, base) == waiting


def test_a_trust_folder_that_cannot_be_read_leaves_main_where_it_was(land: Land, tmp_path: Path) -> None:
    from reconciler.store.document_cache import DocumentCache
    from reconciler.store.git.local_store import LocalStore
    from reconciler.trust.keyring import TrustFolder
    from reconciler.trust.signature_check import SystemVerifier
    from reconciler.trust.step_evidence import Sources
    from schemas.reading.reader import READER_VERSION

    folder = tmp_path / "trust"
    folder.mkdir()
    (folder / "allowed_signers").write_text("\n".join(land.lines) + "\n")
    sources = Sources("signature", TrustFolder(folder).keyring, SystemVerifier(folder))
    gate = gates.Gate(LocalStore(land.repo), DocumentCache(None, READER_VERSION), sources)
    base = land.at
    land.admit(gate)
    (folder / "allowed_signers").write_text("what is this\n")
    land.push(QUOTA, "ada")
    assert (land.admit(gate).commit, "judging main failed" in land.admit(gate).alarm) == (base, True)
    (folder / "allowed_signers").write_text("\n".join(land.lines) + "\n\n")
    land.now += timedelta(minutes=1)
    assert (land.admit(gate).commit, land.admit(gate).alarm) == (land.at, "")
