"""The site of the documents: what its navigation names, and links that leave docs/. `make site` finds dead links."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("site_links", ROOT / "docs" / "site_links.py")
assert SPEC is not None
assert SPEC.loader is not None
site_links = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(site_links)


def test_every_page_has_one_place_in_the_navigation() -> None:
    """But decisions, which have no order that helps a reader."""
    named = re.findall(r"([\w./-]+\.md)", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2])
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(page for page in pages if not page.startswith("decisions/"))


@pytest.mark.parametrize(
    ("text", "repository", "want"),
    [
        pytest.param("[a](b.md#c)", None, "[a](b.md#c)", id="a page of the site stays"),
        pytest.param("[a](https://x.example)", None, "[a](https://x.example)", id="an address stays"),
        pytest.param("[a](../../CHANGELOG.md)", None, "a", id="a file beside docs is text"),
        pytest.param(
            "[a](../../CHANGELOG.md#b)",
            "https://x.example/r/",
            "[a](https://x.example/r/blob/main/CHANGELOG.md)",
            id="or leads to the repository",
        ),
        pytest.param("[a](../decisions/)", None, "a", id="a folder is no page"),
    ],
)
def test_a_link_leaves_the_site_only_for_the_repository(text: str, repository: str | None, want: str) -> None:
    assert site_links.inside(text, "guides/x.md", repository) == want
