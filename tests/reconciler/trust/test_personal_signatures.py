"""People sign with the keys that they have: files, agents, and what git is configured for (D9)."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.trust.personal_signatures import configured_key, sign_as_person
from reconciler.trust.signature_check import SystemVerifier
from schemas.errors import UserError
from tests.support import realkeys as keys
from tests.support import repos

MESSAGE = b"egs-approval v1\n"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent of the person's own, without keys."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it tells where it listens
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.parametrize("kind", ["ada_key", "rsa_key"])
def test_a_key_in_a_file(kind, request):
    key = request.getfixturevalue(kind)
    signature = sign_as_person(key.private, "egs-approval", MESSAGE)
    assert SystemVerifier().key_of("egs-approval", MESSAGE, signature) == key.public


def test_a_key_that_only_the_agent_has(agent, tmp_path):
    key = keys.ssh_key(tmp_path / "keys")
    subprocess.run(["ssh-add", "-q", str(key.private)], check=True)
    key.private.unlink()
    for by in (key.private.with_name("key.pub"), key.public):
        signature = sign_as_person(by, "git", MESSAGE)
        assert SystemVerifier().key_of("git", MESSAGE, signature) == key.public


def test_a_key_that_is_not_there_says_what_to_do(tmp_path):
    with pytest.raises(UserError, match="check the file and the agent") as caught:
        sign_as_person(tmp_path / "missing", "git", MESSAGE)
    assert caught.value.reason == "NotSigned"


def test_a_machine_without_ssh_says_what_to_install(ada_key, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="install OpenSSH"):
        sign_as_person(ada_key.private, "git", MESSAGE)


@contextlib.contextmanager
def configured(home: Path, **settings: str) -> Iterator[Path]:
    """A repository, and a person whose git is configured so."""
    tree = home / "tree"
    tree.mkdir()
    repos.git(tree, "init", "--quiet")
    for name, value in settings.items():
        repos.git(tree, "config", name.replace("_", "."), value)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield tree


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param({}, None, id="nothing is configured"),
        pytest.param({"gpg_format": "ssh"}, None, id="a kind and no key"),
        pytest.param({"user_signingkey": "~/.ssh/id"}, None, id="a key for OpenPGP"),
        pytest.param({"gpg_format": "ssh", "user_signingkey": "/keys/id"}, Path("/keys/id"), id="a file"),
        pytest.param({"gpg_format": "ssh", "user_signingkey": "~/id.pub"}, Path("home/id.pub"), id="at home"),
        pytest.param(
            {"gpg_format": "ssh", "user_signingkey": "id"}, Path("home/tree/id"), id="in the folder"
        ),
    ],
)
def test_the_key_that_git_signs_with(tmp_path, settings, want):
    with configured(tmp_path, **settings) as tree:
        found = configured_key(tree)
    expected = tmp_path / want.relative_to("home") if want is not None and not want.is_absolute() else want
    assert found == expected


def test_a_key_that_stands_in_the_configuration_is_the_agents(tmp_path, ada_key):
    for written in (f"key::{ada_key.public} ada@laptop", ada_key.public):
        folder = tmp_path / str(len(written))
        folder.mkdir()
        with configured(folder, gpg_format="ssh", user_signingkey=written) as tree:
            assert configured_key(tree) == ada_key.public
