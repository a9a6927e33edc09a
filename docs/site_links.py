"""A hook of the site: links that leave docs/ lead to the repository, or become text where its address is not known.

Pages link to files beside docs/ (examples, CHANGELOG.md), which a forge shows and the site does not have.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)")


def inside(markdown: str, page: str, repository: str | None) -> str:
    """The text of a page of docs/ with no relative link that leads out of docs/, nor to a folder."""

    def one(found: re.Match[str]) -> str:
        _, words, target, _ = found.groups()
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if path.startswith("docs/") and not target.endswith("/"):
            return found[0]
        return words if repository is None else f"[{words}]({repository.rstrip('/')}/blob/main/{path})"

    return LINK.sub(one, markdown)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Called by MkDocs for each page."""
    return inside(markdown, page.file.src_uri, config.repo_url or None)
