"""Who is known to have written a request, and who merged it: nobody approves their own request."""

from __future__ import annotations

from pathlib import Path

from tests.support.landing import Land
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
