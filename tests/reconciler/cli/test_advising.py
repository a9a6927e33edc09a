"""`egs advise` and what `--propose` files (J3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.queries.demand import slice_advice as module
from reconciler.telemetry import served_history
from tests.reconciler.cli.rig import NOW, egs, fleet, folder, request
from tests.support.endpoints import document
from tests.support.world import cluster


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


def test_an_endpoint_is_advised_from_what_it_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """J3: `--metrics-files` has the credentials; the hours of which no server told are named."""
    monkeypatch.setattr(
        served_history,
        "requests_by_hour",
        lambda *_: (None, *(float(8 * (n % 24 < 6)) for n in range(100)), None),
    )
    metrics = {"metrics": {"prometheus": {"url": "https://prometheus.example.com"}}}
    endpoint = document("chat", scaling={"by": "keda", "requestsPerReplica": 4})
    files = {"clusters/east.yaml": cluster(nodes=4, **metrics), "slices/a/endpoints/chat.yaml": endpoint}
    repo = folder(tmp_path / "repo", fleet(**files))
    answer = egs("advise", "a/chat", "--hours", "3", "-o", "json", "--repo", repo, "--now", NOW)
    assert answer.code == 0, answer.err
    found = answer.json
    assert (found["endpoint"], found["historyHours"], found["silentHours"]) == ("chat", 101, 1)
    assert found["method"] != "known-needs"
    table = egs("advise", "a/chat", "--hours", "3", "--repo", repo, "--now", NOW, "--metrics-files", tmp_path)
    assert "no server told in 1 hour of the history" in table.err
    assert egs("advise", "a/", "--repo", repo, "--now", NOW).code == 2
    assert "there is no endpoint a/no" in egs("advise", "a/no", "--repo", repo, "--now", NOW).err


def test_an_unknown_slice(repo: Path) -> None:
    answer = egs("advise", "nowhere", "--repo", repo, "--now", NOW)
    assert answer.code == 1
    assert "there is no slice nowhere" in answer.err
