"""Which command line is for a repository and which for a server (K1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from egs.commands.errors import Said
from egs.contexts import Book, Context, write
from egs.modes import Here, Line, Target, line_of, server_of, target_of

PROD = Target("https://prod", "key-p", context="prod", email="bo@example.com")
DEV = Target("https://dev", token="tok", context="dev")


@pytest.fixture
def here(tmp_path: Path):
    """Somebody with two contexts, of which prod is the current one."""
    book = Book().having("dev", Context("https://dev", token="tok"))
    write(tmp_path / "config.yaml", book.having("prod", Context("https://prod", "bo@example.com", "key-p")))

    def made(folder: str = "", env: Mapping[str, str] | None = None, repositories: bool = True) -> Here:
        place = tmp_path / "place"
        place.mkdir(exist_ok=True)
        for name in filter(None, folder.split(",")):
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if name.endswith("/") else path.touch()
        return Here({"EGS_CONFIG": str(tmp_path / "config.yaml"), **(env or {})}, place, repositories)

    return made


BARE = "HEAD,objects/,refs/"


@pytest.mark.parametrize(
    ("words", "folder", "env", "want"),
    [
        pytest.param("plan", "", {}, PROD, id="outside of a repository the current context"),
        pytest.param("plan", "project.yaml", {}, None, id="in a repository the repository"),
        pytest.param("plan", BARE, {}, None, id="in a bare one too"),
        pytest.param("plan", ".git/", {}, PROD, id="somebody's other repository is none of ours"),
        pytest.param("plan --repo x", "", {}, None, id="--repo"),
        pytest.param(
            "plan --repo=x", "", {"EGS_SERVER": "https://s"}, None, id="--repo beats the environment"
        ),
        pytest.param("plan --instance a.csv", "", {}, None, id="a CSV needs neither"),
        pytest.param("--context dev plan", "project.yaml", {}, DEV, id="--context beats the folder"),
        pytest.param("plan --context=dev", "", {"EGS_REPO": "x"}, DEV, id="and the environment"),
        pytest.param(
            "plan --server https://s", "", {}, Target("https://s"), id="a server nobody has a key of"
        ),
        pytest.param(
            "plan --server https://s",
            "",
            {"EGS_API_KEY": "k"},
            Target("https://s", "k"),
            id="with a key from outside",
        ),
        pytest.param("plan --server https://dev/", "", {}, DEV, id="a server that a context knows"),
        pytest.param(
            "plan", "project.yaml", {"EGS_SERVER": "https://dev"}, DEV, id="EGS_SERVER beats the folder"
        ),
        pytest.param(
            "plan", "", {"EGS_REPO": "x", "EGS_SERVER": "https://s"}, None, id="EGS_REPO beats EGS_SERVER"
        ),
    ],
)
def test_what_a_line_is_for(here, words: str, folder: str, env: dict[str, str], want: Target | None) -> None:
    assert target_of(line_of(words.split()), here(folder, env)) == want


def test_the_client_alone_knows_no_repository(here) -> None:
    assert target_of(line_of(["plan"]), here("project.yaml", {"EGS_REPO": "x"}, repositories=False)) == PROD


def test_without_a_context_the_folder_counts(tmp_path: Path) -> None:
    nobody = Here({"EGS_CONFIG": str(tmp_path / "none.yaml")}, tmp_path, has_repositories=True)
    assert target_of(line_of(["plan"]), nobody) is None


def test_accounts_mean_a_server_wherever_one_stands(here) -> None:
    assert server_of(line_of(["whoami"]), here("project.yaml")) == PROD
    assert server_of(line_of(["whoami", "--context", "dev"]), here("project.yaml")) == DEV


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param("get gprs --server u -o json", Line(("get", "gprs", "-o", "json"), "u"), id="anywhere"),
        pytest.param("--context=c get gprs", Line(("get", "gprs"), "", "c"), id="in front"),
        pytest.param(
            "kubeconfig a --context k",
            Line(("kubeconfig", "a", "--context", "k")),
            id="of a command that has its own",
        ),
        pytest.param(
            "--context c login u --context n",
            Line(("login", "u", "--context", "n"), "", "c"),
            id="both of them",
        ),
        pytest.param(
            "gpr rename a/b -- --server", Line(("gpr", "rename", "a/b", "--", "--server")), id="behind --"
        ),
    ],
)
def test_the_options_that_choose_are_taken_out(words: str, want: Line) -> None:
    assert line_of(words.split()) == want


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plan --server", "needs a value"),
        ("plan --repo x --server u", "give one of them"),
        ("plan --context a --server u", "give one of them"),
        ("plan --context nope", "there is no context nope"),
    ],
)
def test_lines_that_make_no_sense(here, words: str, sentence: str) -> None:
    with pytest.raises(Said, match=sentence):
        target_of(line_of(words.split()), here())


def test_a_key_may_lie_in_a_file(here, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k\n")
    env = {"EGS_SERVER": "https://s", "EGS_API_KEY_FILE": str(tmp_path / "key")}
    assert target_of(line_of(["plan"]), here("", env)) == Target("https://s", "k")
    for text in (None, ""):
        (tmp_path / "key").unlink() if text is None else (tmp_path / "key").write_text(text)
        with pytest.raises(Said, match="no API key can be read there"):
            target_of(line_of(["plan"]), here("", env))


@pytest.mark.parametrize(
    "env", [{"EGS_SERVER": "https://s"}, {}], ids=["a server is named", "a context is current"]
)
@pytest.mark.parametrize("key", ["", " \n"], ids=["empty", "blank"])
def test_an_empty_key_is_an_error_and_nobody_else_is_taken(here, env: dict[str, str], key: str) -> None:
    with pytest.raises(Said, match="EGS_API_KEY is set and empty") as caught:
        target_of(line_of(["plan"]), here("", {**env, "EGS_API_KEY": key}))
    assert (caught.value.reason, caught.value.exit_code) == ("ApiKeyInvalid", 1)


def test_no_secret_is_shown() -> None:
    assert "key-p" not in repr(PROD)
    assert "tok" not in repr(DEV).replace("token", "")
