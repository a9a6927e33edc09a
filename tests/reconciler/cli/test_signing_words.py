"""`egs approve --key`: the admin's own signature, made offline (E5, D8)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.sshsig import canonical_key
from schemas.documents.approval import NAMESPACE, Approval, statement
from tests.reconciler.cli.rig import ADA, NOW, egs, fleet, main_file, repository, request, shell, worktree
from tests.support.court import Bench, Case, Court, person
from tests.support.machinekeys import private_text
from tests.support.repos import git
from tests.support.world import parsed

WORD = "approvals/a/over/ada.yaml"


def _key(folder: Path, kind: str = "ed25519") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / kind
    made = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "ada", "-f", str(path)]
    subprocess.run(made, check=True, capture_output=True)
    return path


def _signer(text: str) -> str | None:
    """The key whose signature of what the file says is in it."""
    word = parsed(WORD, text)
    assert isinstance(word, Approval)
    return SystemVerifier().key_of(NAMESPACE, statement("default", word), word.spec.signature or "")


def _public(key: Path) -> str | None:
    return canonical_key(key.with_suffix(".pub").read_text())


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_key_signs_all_that_the_file_says(tmp_path: Path, kind: str) -> None:
    repo, key = repository(tmp_path / "r.git", fleet(**request("a/over", nodes=3))), _key(tmp_path, kind)
    said = ("--key", key, "--reason", "for the paper: ✓", "--limit-gpus", "48")
    done = egs("approve", "a/over", "--repo", repo, "--author", ADA, *said)
    assert (done.code, "not signed" in done.err, "does not list this key" in done.err) == (0, False, True)
    text = main_file(repo, WORD)
    assert _signer(text) == _public(key)
    assert _signer(text.replace("gpus: 48", "gpus: 49")) is None


def test_the_key_that_git_signs_with_is_taken_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, config = _key(tmp_path), tmp_path / "gitconfig"
    config.write_text(f"[gpg]\n  format = ssh\n[user]\n  signingkey = {key}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    repo = repository(tmp_path / "r.git", fleet(**request("a/over", nodes=3)))
    assert egs("reject", "a/over", "--repo", repo, "--author", ADA, "--reason", "no").code == 0
    assert _signer(main_file(repo, WORD)) == _public(key)


def test_a_clone_without_a_network_is_enough(tmp_path: Path) -> None:
    """E5: signed in a work tree whose origin cannot be reached; the file is then carried as any other."""
    tree = worktree(tmp_path / "w", fleet(**request("a/over", nodes=3)))
    git(tree, "remote", "add", "origin", str(tmp_path / "nowhere.git"))
    key = _key(tmp_path)
    done = egs("approve", "a/over", "--as", "ada", "--repo", tree, "--key", key, "--now", NOW)
    assert done.code == 0, done.err
    assert _signer((tree / WORD).read_text()) == _public(key)
    assert "?? approvals/" in shell(tree, "git", "status", "--porcelain").stdout


def test_grace_beyond_the_bound_is_approved_by_a_word_of_its_own(tmp_path: Path) -> None:
    """C10, D9: the word names the rule and the most grace."""
    files = fleet(**request("a/long", extend="3h"))
    repo, key = repository(tmp_path / "r.git", files), _key(tmp_path)
    ready = ("approve", "a/long", "--repo", repo, "--author", ADA, "--rule", "extension")
    assert egs(*ready, "--key", key).code == 0
    text = main_file(repo, "approvals/a/long/ada.yaml")
    assert "  rule: extension\n" in text
    assert "    extend: 0d3h0m\n" in text
    more = egs(*ready, "--key", key, "--limit-extend", "5h")
    assert (more.code, "extend: 5h" in main_file(repo, "approvals/a/long/ada.yaml")) == (0, True)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        pytest.param(["--key", "none"], 1, "nothing was signed", id="a key that is not there"),
        pytest.param(
            ["--key", "ed25519", "--not-after", "2029-01-01T00:00:00Z"], 2, "366 days at most", id="too long"
        ),
        pytest.param(["--limit-extend", "3h"], 2, "--rule extension", id="grace of another rule"),
        pytest.param(["--rule", "extension"], 1, "needs no approval", id="grace within the bound"),
    ],
)
def test_a_word_that_could_not_count_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, sentence: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/over", nodes=3)))
    _key(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = egs("approve", "a/over", "--repo", repo, "--author", ADA, "--now", NOW, *args)
    assert (done.code, sentence in done.err) == (code, True), done.err
    assert WORD not in git(repo, "ls-tree", "-r", "--name-only", "main")


def _by_command(*args: str) -> Callable[[Bench], None]:
    """Ada types it, with her key in a file, and Bo's push is not even signed."""

    def act(bench: Bench) -> None:
        repo = bench.court.repo
        key = repo.parent / "ada"
        key.write_bytes(private_text("ada"))
        key.chmod(0o600)
        done = egs(args[0], bench.key, "--repo", repo, "--author", ADA, "--key", key, "--now", NOW, *args[1:])
        assert done.code == 0, done.err
        assert "does not list" not in done.err

    return act


def test_what_the_commands_write_counts_where_everything_is_verified(tmp_path: Path) -> None:
    """E5, D8, C10: the whole way from a person at a prompt to a controller that believes signatures alone."""
    running = {"nodes": 1, "duration": "4h", "extend": "3h"}
    cases = [
        Case("approve", _by_command("approve"), "approved"),
        Case("reject", _by_command("reject", "--reason", "not now"), "rejected"),
        Case("grace", _by_command("approve", "--rule", "extension"), "extended", spec=running),
    ]
    court = Court(tmp_path, "signature", cases, {"admins": [person("ada")]})
    court.start(lambda store, settings: {})
    court.hold()
    assert court.wrong() == {}
