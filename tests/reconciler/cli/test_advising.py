"""`egs advise` and what `--propose` files (J3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.queries.demand import slice_advice as module
from tests.reconciler.cli.rig import NOW, egs, fleet, folder, request


def advised(data: dict[str, Any], by: list[str]) -> dict[str, Any]:
    """The same with proposals, each with this last instant to file."""
    row = {"nodes": 2, "gpusPerNode": 8, "gpuShape": ["H100-80GB"], "duration": "3h"}
    return {
        **data,
        "proposals": [
            {**row, "name": f"advised-{place}", "notBefore": "2026-11-21T09:00:00Z", "fileBy": at}
            for place, at in enumerate(by)
        ],
    }


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return folder(tmp_path / "repo", fleet(**request("a/one", nodes=2, duration="2h")))


def test_the_table(repo: Path) -> None:
    answer = egs("advise", "a", "--hours", "3", "--repo", repo, "--now", NOW)
    assert answer.code == 0, answer.err
    first, second, _, head, *rows = answer.out.splitlines()
    assert "days are needed" in first or "3 are needed" in first
    assert second.startswith("A node that is filed for now works in 1")
    assert head.split()[:2] == ["FROM", "EXPECTED"]
    assert len(rows) == 3


def test_only_what_is_due_is_filed(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    due = [NOW, "2026-11-21T12:00:00Z"]
    made = module.advice_of
    monkeypatch.setattr(module, "advice_of", lambda *asked: advised(made(*asked), due))
    answer = egs("advise", "a", "--propose", "--priority", "120", "--repo", repo, "--now", NOW)
    assert answer.code == 0, answer.err
    text = (repo / "slices/a/gprs/advised-0.yaml").read_text()
    for line in (
        "nodes: 2",
        "gpusPerNode: 8",
        "duration: 3h",
        "priority: 120",
        "notBefore: 2026-11-21T09:00:00Z",
    ):
        assert line in text.replace("'", "").replace('"', "")
    assert not (repo / "slices/a/gprs/advised-1.yaml").exists()
    assert "filed a/advised-0: 2 nodes for 3h" in answer.err


def test_nothing_is_filed_unless_asked_or_due(repo: Path) -> None:
    before = sorted(repo.rglob("*.yaml"))
    assert egs("advise", "a", "--repo", repo, "--now", NOW).code == 0
    answer = egs("advise", "a", "--propose", "--repo", repo, "--now", NOW)
    assert "nothing must be filed for now" in answer.err
    assert sorted(repo.rglob("*.yaml")) == before


def test_too_many_at_once_are_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module.advice_of
    monkeypatch.setattr(module, "advice_of", lambda *asked: advised(made(*asked), [NOW] * 11))
    answer = egs("advise", "a", "--propose", "--repo", repo, "--now", NOW)
    assert answer.code == 2
    assert not list((repo / "slices/a/gprs").glob("advised-*"))


def test_an_unknown_slice(repo: Path) -> None:
    answer = egs("advise", "nowhere", "--repo", repo, "--now", NOW)
    assert answer.code == 1
    assert "there is no slice nowhere" in answer.err
