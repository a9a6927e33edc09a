"""Log in with a key, choose among servers, and what is said when nothing opens one (K1, B7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from egs import cli
from egs.contexts import read
from tests.egs.remote import CLIENT_ALONE, INSTALLED, Shell
from tests.support.portal import KEYS, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as found:
        yield found


@pytest.fixture(params=[INSTALLED, CLIENT_ALONE], ids=["with everything", "the client alone"])
def shell(
    request, site: Site, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> Shell:
    installed: list[cli.Register] = request.param
    monkeypatch.setenv("EGS_CONFIG", str(tmp_path / "config.yaml"))
    for name, text in KEYS.items():
        (tmp_path / name).write_text(f"{text}\n")
    return Shell(site, url, tmp_path, capsys, list(installed))


def login(shell: Shell, key: str, *more: str) -> None:
    done = shell("login", shell.url, "--api-key-file", str(shell.folder / key), *more)
    assert done.code == 0, done.err


def test_from_logging_in_to_logging_out(shell: Shell) -> None:
    login(shell, "bo-editor", "--context", "work")
    login(shell, "ada-owner")
    host = shell.url.removeprefix("http://").replace(":", "-")
    assert shell("whoami").out.startswith(f"ada@example.com at {shell.url}, an admin (by key ada-owner)")
    assert [
        (row["name"], row["current"], row["by"]) for row in shell("context", "list", "-o", "json").data
    ] == [
        (host, True, "key"),
        ("work", False, "key"),
    ]
    assert shell("context", "use", "work").code == 0
    assert [row["name"] for row in shell("get", "slices", "-o", "json").data] == ["vision"]
    assert len(shell("get", "slices", "--context", host, "-o", "json").data) == 2
    assert shell("logout").code == 0
    done = shell("get", "slices")
    assert (done.code, done.out) == (1, "")
    assert f"egs login {shell.url} --context work" in done.err
    assert shell("context", "delete", "work").code == 0
    assert list(read(shell.folder / "config.yaml").contexts) == [host]


def test_no_key_is_ever_printed(shell: Shell) -> None:
    login(shell, "ada-owner", "--context", "c")
    for words in (
        ["context", "list"],
        ["context", "list", "-o", "json"],
        ["whoami"],
        ["whoami", "-o", "yaml"],
    ):
        done = shell(*words)
        assert KEYS["ada-owner"] not in done.out + done.err


@pytest.mark.parametrize("key", ["bo-expired", "bo-revoked"])
def test_a_key_that_opens_nothing_makes_no_context(shell: Shell, key: str) -> None:
    done = shell("login", shell.url, "--api-key-file", str(shell.folder / key))
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert not (shell.folder / "config.yaml").exists()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        pytest.param(["login"], 2, "say which server", id="no server at all"),
        pytest.param(["login", "SERVER"], 1, "has no identity provider", id="no key, and nobody to ask"),
        pytest.param(["login", "ftp://x"], 3, "not the address of a server", id="no address"),
        pytest.param(["login", "http://127.0.0.1:1"], 3, "127.0.0.1:1", id="nobody answers there"),
        pytest.param(["login", "SERVER", "--context", "a b"], 2, "not a valid context name", id="no name"),
        pytest.param(["whoami"], 1, "no server is named", id="nobody logged in"),
        pytest.param(["logout"], 1, "no current context", id="nobody to log out"),
        pytest.param(["context", "use", "x"], 1, "there is no context x", id="no such context"),
    ],
)
def test_what_is_wrong_is_one_sentence(shell: Shell, words: list[str], code: int, sentence: str) -> None:
    done = shell(*[shell.url if word == "SERVER" else word for word in words])
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done.err
    assert sentence in done.err


def test_a_server_that_is_away_is_a_fault(shell: Shell) -> None:
    """Exit 3: nothing is wrong with what was typed."""
    done = shell("plan", env={"EGS_SERVER": "http://127.0.0.1:1", "EGS_API_KEY": "k" * 20})
    assert (done.code, done.out) == (3, "")
    assert "http://127.0.0.1:1" in done.err
    assert "k" * 20 not in done.err


def test_a_broken_context_file_can_be_mended_and_help_comes_all_the_same(shell: Shell) -> None:
    file = shell.folder / "config.yaml"
    file.write_text("current-context: gone\ncontexts: {c: {server: https://s}}\n")
    assert shell("plan").code == 1
    assert shell("plan", "--help").code == 0
    assert shell("--version").code == 0
    assert shell("context", "use", "c").code == 0
    file.write_text("a: [")
    assert shell("plan").code == 3
    assert shell("--help").code == 0
    if shell.installed:
        assert shell("init", str(shell.folder / "new"), "--admin", "ada@example.com").code == 0
