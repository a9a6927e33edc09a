"""Who is known to have written a request, and who merged it: nobody approves their own request."""

from __future__ import annotations

from pathlib import Path

from tests.reconciler.trust.test_policy_matrix import of_slice
from tests.support.landing import Land, person
from tests.support.world import gpr, gpr_path

NEW = gpr_path("a/new")


def test_provenance_tells_who_wrote_and_who_merged(tmp_path: Path) -> None:
    land = Land.begun(tmp_path)

    def behind(oid: str) -> tuple[tuple[str, ...], str | None]:
        base = land.at
        land.pushed(oid)
        found = land.admit(land.gate(), None, base).provenance[NEW]
        land.at = base
        assert found.commit == oid
        return tuple(email.partition("@")[0] for email in found.authors), found.merged_by

    files, ada = {NEW: gpr("a", "new")}, "ada@example.com"
    assert behind(land.commit(files, "bo", land.at)) == (("bo",), None)
    assert behind(land.merge(land.commit(files, "bo", land.at), None)) == (("bo",), None)
    assert behind(land.merge(land.commit(files, "bo", land.at), "ada")) == (("bo",), ada)
    assert behind(land.merge(land.commit(files, "ada", land.at), "ada")) == (("ada",), ada)
    assert behind(land.merge(land.commit(files, None, land.at), "ada")) == (("ada",), ada)
    assert behind(land.merge(land.commit(files, "bo", land.at), "olga")) == (("bo",), None)
    assert behind(land.merge(land.commit({"NEWS": "1\n"}, "bo", land.at), "ada", files)) == (("ada",), None)
    text = "Merge branch 'main' of https://forge.example.com/fleet"
    assert behind(land.merge(land.commit(files, "bo", land.at), "ada", text=text)) == (("bo",), None)


def test_whoever_wrote_a_part_of_it_is_an_author(tmp_path: Path) -> None:
    """The admin writes it, a member changes a word: both wrote it."""
    land = Land.begun(tmp_path)
    base = land.at

    def behind(first: str | None, second: str) -> tuple[tuple[str, ...], str | None]:
        land.at = base
        one = land.commit({NEW: gpr("a", "new", nodes=2)}, first, base)
        two = land.commit({NEW: gpr("a", "new", nodes=2, displayName="Ours")}, second, one)
        land.pushed(land.merge(two, "ada"))
        found = land.admit(land.gate(), None, base).provenance[NEW]
        return tuple(email.partition("@")[0] for email in found.authors), found.merged_by

    ada = "ada@example.com"
    assert behind("ada", "bo") == (("ada", "bo"), ada)
    assert behind("olga", "bo") == (("bo", "olga"), ada)
    assert behind(None, "bo") == (("ada", "bo"), ada)
    assert behind("eve", "bo") == (("ada", "bo"), ada)


def test_nobody_is_called_as_another_slice_calls_them(tmp_path: Path) -> None:
    """An owner of a lists the key of a member of b beside the admin's address."""
    land = Land.begun(tmp_path)
    cys = {"email": "ada@example.com", "keys": person("cy")["keys"]}
    land.push({"slices/a/slice.yaml": of_slice(members=[person("bo"), cys])}, "olga")
    base, path = land.at, gpr_path("b/cys")
    land.push({path: gpr("b", "cys")}, "cy")
    assert land.admit(land.gate(), None, base).provenance[path].authors == ("cy@example.com",)
    land.at = base
    land.pushed(land.merge(land.commit({path: gpr("b", "cys")}, "cy", base), None))
    assert land.admit(land.gate(), None, base).provenance[path].authors == ("cy@example.com",)
