"""Controller, agent and CLI as processes, on a repository that asks who is there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.system import example_files
from tests.support import repos, servers
from tests.support.ready_python import ready_python
from tests.support.servers import Authority, Sshd

pytestmark = pytest.mark.slow

SECRET = "s3cr3t-t0ken-of-egs"
GPU = {"uuid": "GPU-a", "index": 0, "product": "H100-80GB", "memory_mib": 81920, "temp_c": 50}
ENTRIES = {
    "egs": "egs.cli",
    "egs-reconciler": "reconciler.main",
    "egs-agent": "agent.main",
}


def program(name: str, *words: object, **variables: object) -> subprocess.CompletedProcess[str]:
    """A console script in a process of its own, with these variables beside a plain environment."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("EGS_", "GIT_"))}
    return subprocess.run(
        [ready_python(ENTRIES[name]), "-c", f"from {ENTRIES[name]} import main; main()", *map(str, words)],
        env=plain | {key: str(value) for key, value in variables.items()},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repos.bare(tmp_path / "fleet.git", example_files())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return servers.authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if servers.SSHD is None:
        pytest.skip("sshd is not installed (openssh-server)")
    with servers.sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def secret(folder: Path, authority: Authority, token: str) -> Path:
    folder.mkdir()
    (folder / "username").write_text("egs")
    (folder / "password").write_text(token)
    (folder / "ca.crt").write_text(authority.ca.read_text())
    return folder


def test_every_program_opens_the_repository_over_https(
    repo: Path, authority: Authority, tmp_path: Path
) -> None:
    folder = secret(tmp_path / "secret", authority, SECRET)
    opened = {"EGS_GIT_CREDENTIALS": folder, "EGS_CACHE": tmp_path / "cache"}
    (tmp_path / "gpus.json").write_text(
        json.dumps([GPU | {"uuid": f"GPU-{i}", "index": i} for i in range(8)])
    )
    node = ("--cluster", "east", "--node", "h100-1", "--simulated", tmp_path / "gpus.json")
    with repos.serve(tmp_path, f"egs:{SECRET}", authority.tls) as url:
        where = ("--repo", f"{url}/fleet.git")
        done = [
            program(
                "egs-reconciler", "adopt", *where, "--verify", "none", "--state", tmp_path / "state", **opened
            ),
            program("egs-agent", "once", *where, *node, "--state", tmp_path / "agent", **opened),
            program("egs", "get", "queue", *where, "-o", "json", **opened),
        ]
    assert [one.returncode for one in done] == [0, 0, 0], [one.stderr for one in done]
    assert repos.tip(repo, "egs/agents/east/h100-1")
    assert len(json.loads(done[2].stdout)) > 0
    assert not any(SECRET in one.stdout + one.stderr for one in done)


def test_a_wrong_token_is_told_with_its_reason_and_stays_untold(
    repo: Path, authority: Authority, tmp_path: Path
) -> None:
    folder = secret(tmp_path / "secret", authority, SECRET)
    opened = {"EGS_GIT_CREDENTIALS": folder, "EGS_CACHE": tmp_path / "cache"}
    with repos.serve(tmp_path, "egs:another", authority.tls) as url:
        where = ("--repo", f"{url}/fleet.git")
        controller = program(
            "egs-reconciler", "once", *where, "--verify", "none", "--state", tmp_path / "state", **opened
        )
        reader = program("egs", "plan", *where, **opened)
    assert (controller.returncode, reader.returncode, reader.stderr.count("\n")) == (3, 3, 1)
    assert "reason=LoginRefused message=" in controller.stderr
    assert "the server refused the login; check the username" in reader.stderr
    assert not any(SECRET in one.stdout + one.stderr for one in (controller, reader))


def test_the_cli_opens_the_repository_over_ssh_by_the_files_it_is_told(
    repo: Path, sshd: Sshd, tmp_path: Path
) -> None:
    opened = {
        "EGS_GIT_SSH_KEY_FILE": sshd.key,
        "EGS_GIT_KNOWN_HOSTS_FILE": sshd.known_hosts,
        "EGS_CACHE": tmp_path / "cache",
    }
    where = ("--repo", f"{sshd.url}{repo}")
    wish = ("--nodes", 1, "--duration", "1h", "--author", "Ada <ada@example.com>")
    done = program("egs", "gpr", "create", "nlp/by-ssh", *wish, *where, **opened)
    assert done.returncode == 0, done.stderr
    assert "by-ssh" in repos.git(repo, "ls-tree", "-r", "--name-only", "main")


def test_ssh_without_known_hosts_says_what_to_do(sshd: Sshd, tmp_path: Path) -> None:
    done = program(
        "egs", "plan", "--repo", "git@forge:x.git", EGS_GIT_SSH_KEY_FILE=sshd.key, EGS_CACHE=tmp_path
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "ssh-keyscan" in done.stderr
    assert "EGS_GIT_KNOWN_HOSTS_FILE" in done.stderr


def test_a_folder_of_credentials_that_is_not_there_ends_the_controller_at_once(tmp_path: Path) -> None:
    words = (
        "run",
        "--verify",
        "none",
        "--repo",
        "https://forge.invalid/x.git",
        "--state",
        tmp_path / "state",
    )
    done = program("egs-reconciler", *words, EGS_GIT_CREDENTIALS=tmp_path / "none")
    assert (done.returncode, "(BadCredentials)" in done.stderr) == (1, True)
