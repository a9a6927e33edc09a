"""What people type counts where main is verified: the commands sign with the key that git signs with (A1, A6, D11)."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from reconciler.compose import controller
from reconciler.cycle import Cycle
from reconciler.settings import Settings, Trust
from schemas.status.gpr_status import Phase
from tests.reconciler.cli.rig import Answer, egs, fleet, minutes, repository
from tests.support.repos import git
from tests.support.world import START, project, slice_

PEOPLE = ("ada", "bo", "eve", "controller")


class Verified:
    """A repository whose controller counts nothing but signed changes; people take turns at one machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keys = {name: self._key(name) for name in PEOPLE}
        people = {n: {"email": f"{n}@example.com", "keys": [key]} for n, key in keys.items()}
        files = {
            "project.yaml": project(admins=[people["ada"]]),
            "slices/a/slice.yaml": slice_("a", members=[people["bo"]]),
        }
        self.repo = repository(folder / "r.git", fleet(**files))
        trust = folder / "trust"
        trust.mkdir()
        signers = f"ada@example.com {keys['ada']}\ncontroller {keys['controller']}\n"
        (trust / "allowed_signers").write_text(signers)
        settings = Settings(
            repo=str(self.repo),
            state=folder / "state",
            pushes_per_minute=None,
            trust=Trust("signature", trust, folder / "controller"),
        )
        self.controller, self.now = controller(settings, adopt=True), START
        self.last: Cycle | None = None
        self.run(minutes(1))

    def _key(self, name: str) -> str:
        file = self.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file], check=True)
        return (self.folder / f"{name}.pub").read_text().strip()

    def types(self, name: str, *words: object) -> Answer:
        """Somebody types a command, with their own name and key in git's configuration."""
        git(self.repo, "config", "gpg.format", "ssh")
        git(self.repo, "config", "user.signingkey", str(self.folder / name))
        return egs(*words, "--repo", self.repo, "--author", f"{name} <{name}@example.com>")

    def run(self, until: datetime) -> None:
        """Cycle at every instant that matters until then."""
        for _ in range(300):
            self.last = self.controller.cycle(self.now)
            if self.last.wake > self.now and self.last.wake > until:
                self.now = until
                return
            self.now = max(self.now, self.last.wake)
        raise AssertionError("no rest")

    def phase(self, key: str) -> Phase | None:
        assert self.last is not None
        assert self.last.facts is not None
        found = self.last.facts.requests.get(key)
        return None if found is None else found.phase


@pytest.fixture
def verified(tmp_path: Path) -> Verified:
    return Verified(tmp_path)


def test_a_member_files_and_releases_with_no_review(verified: Verified) -> None:
    create = ("gpr", "create", "a/mine", "--nodes", 1, "--duration", "1h")
    assert verified.types("bo", *create).code == 0
    verified.run(minutes(5))
    assert verified.phase("a/mine") is Phase.PROVISIONED
    assert verified.types("bo", "gpr", "release", "a/mine").code == 0
    verified.run(minutes(6))
    assert verified.phase("a/mine") in {Phase.RELEASING, Phase.COMPLETED}


def test_nobody_files_in_a_slice_of_others(verified: Verified) -> None:
    assert verified.types("eve", "gpr", "create", "a/hers", "--nodes", 1, "--duration", "1h").code == 0
    verified.run(minutes(5))
    assert verified.phase("a/hers") is None


def test_a_slice_that_is_asked_for_on_main_waits_for_the_admins_merge(verified: Verified) -> None:
    assert verified.types("eve", "slice", "request", "lab", "--push").code == 0
    verified.run(minutes(2))
    (row,) = egs("get", "requests", "--repo", verified.repo, "-o", "json").json
    assert (row["name"], row["phase"]) == ("lab", "PendingApproval")
    made = verified.types("ada", "slice", "create", "lab", "--member", "eve@example.com")
    assert made.code == 0, made.err
    verified.run(minutes(3))
    assert [row["name"] for row in egs("get", "slices", "--repo", verified.repo, "-o", "json").json] == [
        "a",
        "b",
        "lab",
    ]


def test_only_an_admins_move_counts(verified: Verified) -> None:
    for name in ("run", "one", "two"):
        verified.types("bo", "gpr", "create", f"a/{name}", "--nodes", 1, "--duration", "1h")
        verified.run(verified.now)
    assert verified.types("bo", "gpr", "move", "a/two", "--first").code == 0
    verified.run(minutes(3))
    assert verified.last is not None
    assert verified.last.facts is not None
    assert verified.last.facts.requests["a/two"].accepted_spec.move == 0
