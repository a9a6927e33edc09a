"""What the forge says of a change, asked over HTTP by the real adapters: levels `forge` and `both`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reconciler.forges.open_forge import open_forge
from reconciler.model.evidence import Level
from tests.support import repos
from tests.support.forge import Forge, served
from tests.support.landing import ACCOUNTS, Files, Land, base_files, rules
from tests.support.world import gpr, gpr_path

NEW, OTHER = gpr_path("a/new"), gpr_path("b/new")
FILES: Files = {NEW: gpr("a", "new"), OTHER: gpr("b", "new")}
"""One change that bo may make, and one that is cy's."""
NOBODY = "NobodyStandsBehindIt"


@contextmanager
def hosted(folder: Path, kind: str = "github") -> Iterator[tuple[Land, Forge]]:
    """A repository on a forge on which everybody has an account."""
    land = Land.begun(folder, {"README.md": "x\n"})
    forge = Forge(land.repo, kind)
    accounts = {name: forge.user(name).id for name in ACCOUNTS}
    land.push(base_files(accounts), None)
    with served(forge, folder) as address:
        land.forge = open_forge(address, _Clock(land))
        yield land, forge


class _Clock:
    """The land's own time."""

    def __init__(self, land: Land) -> None:
        self._land = land

    def now(self) -> datetime:
        return self._land.now


def opened(land: Land, forge: Forge, files: Files, by: str, signed: str | None = None) -> int:
    """A pull request with one commit."""
    oid = land.commit(files, signed, land.at)
    repos.git(land.repo, "update-ref", "refs/heads/topic", oid)
    forge.pushed("topic", "", oid, by)
    return forge.open("topic", by)


def held(land: Land, base: str, level: Level = "forge") -> dict[str, str]:
    admitted = land.admit(land.gate(level), None, base)
    assert (admitted.commit, admitted.alarm) == (land.at, "")
    return rules(admitted)


@pytest.mark.parametrize("kind", ["github", "gitea"])
@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_author_and_merger_speak_however_it_was_merged(tmp_path: Path, kind: str, how: str) -> None:
    with hosted(tmp_path, kind) as (land, forge):
        base = land.at
        land.at = forge.merge(opened(land, forge, FILES, "bo"), "eve", how)
        assert held(land, base) == {OTHER: "NotAMember"}


def test_who_merges_stands_behind_it(tmp_path: Path) -> None:
    with hosted(tmp_path) as (land, forge):
        base = land.at
        land.at = forge.merge(opened(land, forge, FILES, "eve"), "ada")
        assert held(land, base) == {}


def test_who_pushes_straight_to_main_stands_behind_it(tmp_path: Path) -> None:
    with hosted(tmp_path) as (land, forge):
        base = land.at
        land.push(FILES, "ada")  # a signature says nothing at this level
        forge.pushed("main", base, land.at, "cy")
        assert held(land, base) == {NEW: "NotAMember"}


def test_a_push_that_the_forge_knows_nothing_of_is_nobodys(tmp_path: Path) -> None:
    """After a while: what the forge does not know yet is waited for."""
    with hosted(tmp_path) as (land, _):
        base, gate = land.at, land.gate("forge")
        land.push(FILES, "ada")
        waiting = land.admit(gate, None, base)
        assert (waiting.commit, waiting.alarm) == (base, "")
        land.now += timedelta(minutes=3)
        assert rules(land.admit(gate, None, base)) == {NEW: NOBODY, OTHER: NOBODY}


def test_a_bot_is_nobody(tmp_path: Path) -> None:
    with hosted(tmp_path) as (land, forge):
        base = land.at
        forge.users["bo"] = replace(forge.users["bo"], is_bot=True)
        land.at = forge.merge(opened(land, forge, FILES, "bo"), "eve")
        assert held(land, base) == {NEW: NOBODY, OTHER: NOBODY}


@pytest.mark.parametrize(
    ("signed", "by", "want"),
    [
        pytest.param("bo", "bo", {OTHER: "NotAMember"}, id="signed and opened by the member"),
        pytest.param("ada", "bo", {OTHER: "NotAMember"}, id="signed by the admin, opened by the member"),
        pytest.param(None, "bo", {NEW: NOBODY, OTHER: NOBODY}, id="not signed"),
        pytest.param("bo", "eve", {NEW: NOBODY, OTHER: "NotAMember"}, id="somebody else's signed commit"),
        pytest.param("ada", "ada", {}, id="the admin's own"),
    ],
)
def test_both_have_to_say_so(tmp_path: Path, signed: str | None, by: str, want: dict[str, str]) -> None:
    with hosted(tmp_path) as (land, forge):
        base = land.at
        land.at = forge.merge(opened(land, forge, FILES, by, signed), "eve")
        assert held(land, base, "both") == want


def test_the_forge_comes_back(tmp_path: Path) -> None:
    with hosted(tmp_path) as (land, forge):
        base, gate = land.at, land.gate("forge")
        land.at = forge.merge(opened(land, forge, FILES, "bo"), "eve")
        forge.down = 503
        waiting = land.admit(gate, None, base)
        assert (waiting.commit, "judging main failed" in waiting.alarm) == (base, True)
        forge.down = None
        land.now += timedelta(minutes=2)
        assert rules(land.admit(gate, None, base)) == {OTHER: "NotAMember"}


def test_whoever_opened_it_wrote_it(tmp_path: Path) -> None:
    with hosted(tmp_path) as (land, forge):
        base = land.at
        land.at = forge.merge(opened(land, forge, FILES, "bo"), "ada", "squash")
        found = land.admit(land.gate("forge"), None, base).provenance[NEW]
        assert (found.authors, found.merged_by) == (("bo@example.com",), None)
