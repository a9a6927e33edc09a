"""The context file (K1): readable for its owner alone, replaced as a whole, and nothing of it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from egs.commands.errors import Said
from egs.contexts import Book, Context, path_of, read, write
from tests.support.profile import law

PROD = Context("https://egs.example.com", "bo@example.com", api_key="egs_secret")
CI = Context("http://127.0.0.1:8000", token="t0ken", expires="2026-11-21T09:00:00Z")


@pytest.mark.parametrize(
    ("environ", "want"),
    [
        pytest.param({"EGS_CONFIG": "/x/y"}, "/x/y", id="as it is named"),
        pytest.param({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/egs/config.yaml", id="where XDG says"),
        pytest.param({"HOME": "/h"}, "/h/.config/egs/config.yaml", id="below home"),
        pytest.param(
            {"EGS_CONFIG": "", "XDG_CONFIG_HOME": "", "HOME": "/h"},
            "/h/.config/egs/config.yaml",
            id="empty is unset",
        ),
    ],
)
def test_where_it_lies(environ: dict[str, str], want: str) -> None:
    assert path_of(environ) == Path(want)


def test_what_was_written_is_read_again_and_only_its_owner_can(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.yaml"
    assert read(path) == Book()
    book = Book().having("prod", PROD).having("ci", CI)
    write(path, book)
    assert read(path) == book
    assert book.current == "ci"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    write(path, book.using("prod"))
    assert read(path).current == "prod"
    assert [one.name for one in path.parent.iterdir()] == ["config.yaml"]


def test_what_is_not_known_here_stays(tmp_path: Path) -> None:
    """A newer egs, or a person, may have written more."""
    path = tmp_path / "config.yaml"
    path.write_text("colour: blue\ncontexts:\n  a: {server: https://a, region: eu}\ncurrent-context: a\n")
    write(path, read(path).having("b", CI))
    found = yaml.safe_load(path.read_text())
    assert found["colour"] == "blue"
    assert found["contexts"]["a"] == {"server": "https://a", "region": "eu"}
    assert found["current-context"] == "b"


def test_no_secret_is_shown() -> None:
    text = repr(Book().having("prod", PROD).having("ci", CI))
    assert "egs_secret" not in text
    assert "t0ken" not in text


def test_who_deletes_the_current_context_has_none() -> None:
    book = Book().having("prod", PROD).having("ci", CI)
    assert book.without("ci").current == ""
    assert book.without("prod").current == "ci"


@pytest.mark.parametrize("act", [Book.using, Book.without, Book.named])
def test_a_context_that_is_not_there_is_told_with_those_that_are(act) -> None:
    with pytest.raises(Said, match="there is no context nope; choose from prod") as caught:
        act(Book().having("prod", PROD), "nope")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a: [", "it is not YAML", id="broken"),
        pytest.param("- a\n", "it has no map of contexts", id="a list"),
        pytest.param("contexts: 3\n", "it has no map of contexts", id="contexts of another kind"),
        pytest.param("contexts: {a: 1}\n", "context a names no server", id="a context of another kind"),
        pytest.param("contexts: {a: {api-key: egs_secret}}\n", "context a names no server", id="no server"),
    ],
)
def test_a_file_that_nobody_understands_is_told_and_left(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(Said, match=why) as caught:
        read(path)
    assert caught.value.exit_code == 3
    assert "egs_secret" not in str(caught.value)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["", "-x", "a b", "../x", "a" * 64, "a\n"])
def test_names_that_no_context_has(name: str) -> None:
    with pytest.raises(Said):
        Book().having(name, PROD)


_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
_TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=30)
_CONTEXTS = st.builds(
    Context, server=_TEXTS.filter(bool), email=_TEXTS, api_key=_TEXTS, token=_TEXTS, expires=_TEXTS
)


@law(50)
@given(found=st.dictionaries(_NAMES, _CONTEXTS, max_size=5))
def test_whatever_a_context_holds_comes_back(tmp_path_factory, found: dict[str, Context]) -> None:
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    book = Book(found, next(iter(found), ""))
    write(path, book)
    assert read(path) == book
