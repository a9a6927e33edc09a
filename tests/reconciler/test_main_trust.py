"""`egs-reconciler` with keys: what it signs, what stops it, and a main that was rewritten (D8, D11)."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reconciler.main import app
from schemas.errors import EgsError
from tests.support import realkeys as keys
from tests.support import repos
from tests.support.world import cluster, gpr, project, slice_

FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a", ("east",)),
}
ONE, TWO, THREE = ({f"slices/a/gprs/{name}.yaml": gpr("a", name)} for name in ("one", "two", "three"))


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return repos.bare(tmp_path / "fleet.git", FILES)


@pytest.fixture
def key(tmp_path: Path) -> keys.Key:
    return keys.ssh_key(tmp_path / "keys", "controller")


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def done(fleet: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Command:
    """Runs a command on the repository: its exit status, and what it said and logged."""
    lives = count()

    def run(*words: str, forgets: bool = False) -> tuple[int, str]:
        caplog.clear()
        state = tmp_path / f"state-{next(lives)}"
        if last and not forgets:
            shutil.copytree(last[-1], state)  # the life before did not let go of its own
        last.append(state)
        with caplog.at_level(logging.INFO):
            result = CliRunner().invoke(app, [*words, "--repo", str(fleet), "--state", str(state)])
        said = str(result.exception) if isinstance(result.exception, EgsError) else result.output
        return result.exit_code, caplog.text + said

    last: list[Path] = []
    return run


def trust(folder: Path, text: str) -> Path:
    """A trust folder with these signers."""
    folder.mkdir(exist_ok=True)
    (folder / "allowed_signers").write_text(text)
    return folder


def signer(fleet: Path, signers: Path) -> str:
    """Whom git itself names as the signer of the status branch's tip."""
    options = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={signers / 'allowed_signers'}")
    return repos.git(fleet, *options, "log", "-1", "--format=%G? %GS", "refs/heads/egs/status")


def test_a_controller_with_a_key_signs_what_it_commits(done, fleet, tmp_path, key):
    folder = trust(tmp_path / "trust", f"controller {key.public}\n")
    status, said = done("once", "--key", str(key.private), "--trust", str(folder))
    assert status == 0, said
    assert signer(fleet, folder) == "G controller"
    assert "PRIVATE" not in said


def test_one_without_a_key_signs_nothing(done, fleet, tmp_path):
    status, said = done("once")
    assert status == 0, said
    assert signer(fleet, trust(tmp_path / "trust", "")).strip() == "N"


@pytest.mark.parametrize(
    ("signers", "options", "says"),
    [
        pytest.param("controller {other}", ("--key", "{key}"), "does not count", id="another's key"),
        pytest.param("controller {own}", (), "give --key FILE", id="no key"),
        pytest.param("controller", ("--key", "{key}"), "allowed_signers:1", id="a line that cannot be read"),
        pytest.param("controller {own}", ("--key", "{key}.pub"), "chmod 600", id="the public half"),
        pytest.param("controller {own}", ("--key", "missing"), "check its path", id="no such key"),
    ],
)
def test_keys_that_somebody_has_to_mend_are_one_sentence_and_exit_1(
    done, fleet, tmp_path, key, signers, options, says
):
    other = keys.ssh_key(tmp_path / "keys", "other")
    folder = trust(tmp_path / "trust", signers.format(own=key.public, other=other.public) + "\n")
    words = [word.format(key=key.private) for word in options]
    status, said = done("once", *words, "--trust", str(folder))
    assert status == 1
    assert says in said.splitlines()[-1]
    assert "egs/status" not in repos.git(fleet, "for-each-ref")


def statuses(fleet: Path) -> list[str]:
    """Requests that have a status."""
    listed = repos.git(fleet, "ls-tree", "-r", "--name-only", "refs/heads/egs/status")
    return [
        Path(path).stem for path in listed.splitlines() if path.startswith("slices/") and "/gprs/" in path
    ]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["where the mirror is", "on a machine without it"])
@pytest.mark.parametrize("level", ["none", "signature"])
def test_a_main_that_was_rewritten_counts_when_somebody_adopts_it(
    done, fleet, tmp_path, key, level, elsewhere
):
    options = ("--verify", level)
    if level == "signature":
        options += (
            "--key",
            str(key.private),
            "--trust",
            str(trust(tmp_path / "t", f"controller {key.public}")),
        )
    first = repos.tip(fleet)
    repos.commit(fleet, ONE)
    assert done("adopt", *options)[0] == 0
    assert statuses(fleet) == ["one"]
    repos.git(fleet, "update-ref", "refs/heads/main", first)
    repos.commit(fleet, TWO)
    status, said = done("once", *options, forgets=elsewhere)
    assert status == 0, said
    assert statuses(fleet) == ["one"], "what was judged stays in force"
    assert "egs-reconciler adopt" in said
    status, said = done("adopt", *options, forgets=elsewhere)
    assert status == 0, said
    assert "two" in statuses(fleet)
    repos.commit(fleet, {"README.md": "Hello\n"})
    status, said = done("once", *options)
    assert status == 0, said
    assert "rewritten" not in said


@pytest.mark.parametrize("command", ["once", "adopt"])
def test_who_forgets_the_options_writes_over_no_signed_status(done, fleet, tmp_path, key, command):
    """Unsigned and unverified it would act on all that is held."""
    folder = trust(tmp_path / "trust", f"controller {key.public}\n")
    options = ("--verify", "signature", "--key", str(key.private), "--trust", str(folder))
    assert done("adopt", *options)[0] == 0
    repos.commit(fleet, ONE)
    before = repos.tip(fleet, "egs/status")
    status, said = done(command, forgets=True)
    assert (status, repos.tip(fleet, "egs/status")) == (1, before)
    assert "the status of this repository is signed; use the same --key, --trust and --verify" in said
    assert done("once", *options)[0] == 0


def test_a_strangers_signature_on_the_status_stops_nobody_who_signs_nothing(done, fleet):
    """Only what a controller wrote says that controllers sign here."""
    assert done("once")[0] == 0
    tip = repos.tip(fleet, "egs/status")
    tree = repos.git(fleet, "rev-parse", f"{tip}^{{tree}}")
    who = "Eve <eve@example.com> 1795000000 +0000"
    head = f"tree {tree}\nparent {tip}\nauthor {who}\ncommitter {who}\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n"
    oid = repos.write_object(fleet, "commit", f"{head}\nby hand\n".encode())
    repos.git(fleet, "update-ref", "refs/heads/egs/status", oid)
    assert done("once")[0] == 0


def test_adopting_tells_what_comes_into_force_and_what_stays_held(done, fleet, tmp_path, key):
    folder = trust(tmp_path / "trust", f"controller {key.public}\n")
    options = ("--verify", "signature", "--key", str(key.private), "--trust", str(folder))
    assert done("adopt", *options)[0] == 0
    first = repos.tip(fleet)
    repos.commit(fleet, ONE)
    assert done("once", *options)[0] == 0
    repos.git(fleet, "update-ref", "refs/heads/main", first)
    repos.commit(fleet, {**ONE, **TWO}, message="Another")
    status, said = done("adopt", *options)
    assert status == 0, said
    assert statuses(fleet) == ["two"], "what was held is held"
    out = said[said.rindex("adopted 1 request\n") :]
    assert f"main at {repos.tip(fleet)[:12]} counts instead of" in out
    assert out.splitlines()[2:] == [
        "  new slices/a/gprs/two.yaml",
        "still held:",
        "  slices/a/gprs/one.yaml (NobodyStandsBehindIt)",
    ]


def test_what_nobody_signed_is_held_where_signatures_are_asked_for(done, fleet, tmp_path, key):
    folder = trust(tmp_path / "trust", f"controller {key.public}\n")
    options = ("--verify", "signature", "--key", str(key.private), "--trust", str(folder))
    assert done("adopt", *options)[0] == 0
    repos.commit(fleet, THREE)
    status, said = done("once", *options)
    assert status == 0, said
    assert statuses(fleet) == []
    assert "ChangeNotAuthorised" in said
