"""Common parts of GitHub and Gitea: paths, comments, reviews, commits, files and contents.

Held by tests/reconciler/forges/test_recorded.py and tests/contract/test_forge_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reconciler.forges.comments import Comments, Where
from reconciler.forges.forge_http import Api, quoted, quoted_path
from reconciler.forges.forge_port import Account, Committer, Review
from reconciler.forges.json_fields import Row
from schemas.errors import UserError


def path_of(repository: str) -> str:
    """The API path of the repository OWNER/NAME. Raises UserError `BadForge`."""
    owner, slash, name = repository.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise UserError("--forge-repository: give OWNER/NAME", "BadForge")
    return f"/repos/{quoted(owner)}/{quoted(name)}"


def comments_of(api: Api, repository: str, is_own: Callable[[Row], bool]) -> Comments:
    """The comments of its pull requests, which are issues there; `repository` is the result of `path_of`."""
    issues = f"{repository}/issues"
    where = Where(
        lambda number: f"{issues}/{number}/comments",
        lambda _, comment: f"{issues}/comments/{comment}",
        "PATCH",
        is_own,
    )
    return Comments(api, where)


def latest_of(reviews: Iterable[Review]) -> list[Review]:
    """Each reviewer's latest review, given the oldest first; a comment after an approval does not withdraw it."""
    latest: dict[int, Review] = {}
    for review in reviews:
        if review.decision != "comment" or review.by.id not in latest:
            latest[review.by.id] = review
    return list(latest.values())


def committers_in(rows: Sequence[Row], account: Callable[[Row | None], Account]) -> list[Committer]:
    """Authors and committers of commits, with their accounts if known."""
    return [
        Committer(account(row.maybe_row(role)).id, row.row("commit").row(role).maybe_text("email"))
        for row in rows
        for role in ("author", "committer")
    ]


def paths_in(rows: Sequence[Row]) -> list[str]:
    """Names of changed files, for renamed ones both."""
    names = [(row.text("filename"), row.maybe_text("previous_filename")) for row in rows]
    return [name for pair in names for name in pair if name]


def blob_of(api: Api, repository: str, commit: str, path: str) -> str | None:
    """Git's blob id of a plain file; None for anything else: missing, a folder, a link."""
    where = f"{repository}/contents/{quoted_path(path)}"
    found = api.get(where, {"ref": commit})
    if not isinstance(found, dict):
        return None
    row = Row.of(found, where)
    return row.oid("sha") if row.text("type") == "file" and row.text("path") == path else None
