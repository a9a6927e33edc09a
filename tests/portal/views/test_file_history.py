"""Which commits set a file (D15): the newest first, and no others."""

from __future__ import annotations

from pathlib import Path

from portal.views.file_history import LATEST, file_history
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path


def test_the_latest_commits_of_a_file(tmp_path: Path) -> None:
    made, path = Site(tmp_path / "site"), gpr_path("vision/train")
    try:
        oids = [made.commit({path: gpr("vision", "train", nodes=1 + n)}) for n in range(LATEST + 2)]
        made.commit({gpr_path("vision/other"): gpr("vision", "other")})
        found = [commit.oid for commit in file_history(made.portal.store, made.view.main, path)]
        assert found == oids[::-1][:LATEST]
        assert file_history(made.portal.store, made.view.main, gpr_path("vision/never")) == []
        assert len(file_history(made.portal.store, made.view.main, path, 2)) == 2
    finally:
        made.close()
