"""Commands with EGS_TRUST show what a controller signed, whatever lies on top of it (A6)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.compose import controller
from reconciler.settings import Settings, Trust
from reconciler.store.trailers import Stamp, message
from tests.reconciler.cli.rig import NOW, egs, fleet, repository, request
from tests.support.machinekeys import line, private_text
from tests.support.repos import commit, git
from tests.support.world import START

STATUS = "egs/status"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose controller signs: a/x is queued or further."""
    found = repository(tmp_path / "fleet.git", fleet(**request("a/x")))
    trust = tmp_path / "trust"
    trust.mkdir()
    (trust / "allowed_signers").write_text(line("controller") + "\n")
    key = tmp_path / "controller"
    key.write_bytes(private_text("controller"))
    key.chmod(0o600)
    settings = Settings(
        str(found), tmp_path / "state", pushes_per_minute=None, trust=Trust(folder=trust, key=key)
    )
    process = controller(settings, adopt=True)
    for minute in range(3):
        process.cycle(START + timedelta(minutes=minute))
    monkeypatch.setenv("EGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EGS_TRUST", str(trust))
    return found


def phases(repo: Path) -> tuple[dict[str, str], str]:
    done = egs("get", "gprs", "--repo", repo, "--now", NOW, "-o", "json")
    assert done.code == 0, done.err
    return {row["name"]: row["phase"] for row in done.json}, done.err


def forge(repo: Path) -> None:
    """a/x is over, says somebody who can push."""
    path = "slices/a/gprs/x.yaml"
    text = git(repo, "show", f"{STATUS}:{path}")
    phase = next(row for row in text.splitlines() if row.lstrip().startswith("phase: ")).strip()
    stamp = message("Forged", Stamp("controller-1", 99, 1))
    commit(repo, {path: text.replace(phase, "phase: Cancelled") + "\n"}, STATUS, stamp)


def test_a_signed_status_is_shown(repo):
    found, said = phases(repo)
    assert found["x"] in {"Queued", "Provisioning", "Provisioned"}
    assert STATUS not in said


def test_a_forged_status_is_not_shown_and_the_reader_hears_of_it(repo):
    before, _ = phases(repo)
    forge(repo)
    found, said = phases(repo)
    assert found == before
    assert "the last signed version is shown" in said


def test_without_keys_there_is_no_telling(repo, monkeypatch):
    forge(repo)
    monkeypatch.delenv("EGS_TRUST")
    assert phases(repo)[0] == {"x": "Cancelled"}
