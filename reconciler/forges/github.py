"""GitHub, and GitHub Enterprise Server. REST API, version 2022-11-28.

Pushers come from the repository's activity. A pull request whose head was last pushed by another account than
the author, or with an automatic merge requested before later pushes, proves less than it seems: see
`_merged_by`.

Held by tests/reconciler/forges/test_recorded.py and tests/contract/test_forge_contract.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from reconciler.forges.branch_protection import github_lacks
from reconciler.forges.comments import Posted, Said, commented, described
from reconciler.forges.forge_http import Api, quoted
from reconciler.forges.forge_port import GHOST, Account, CommitState, Committer, Pull, Review
from reconciler.forges.github_and_gitea import (
    blob_of,
    comments_of,
    committers_in,
    latest_of,
    path_of,
    paths_in,
)
from reconciler.forges.json_fields import Row
from schemas.errors import Fault

MOST_COMMITS = 250
"""Commits listed of a pull request."""
MOST_PUSHES = 3
"""Pages of pushes that are searched."""
MOST_COMPARED = 10
"""Pushes whose commits are searched for one that was not the last of its push."""
_DECISIONS: Mapping[str, Literal["approve", "reject"]] = {
    "APPROVED": "approve",
    "CHANGES_REQUESTED": "reject",
    "DISMISSED": "reject",
}
_READ: Mapping[str, CommitState] = {"pending": "pending", "success": "success", "failure": "failure"}
_PUSHES = frozenset({"push", "force_push", "branch_creation"})


class GitHub:
    """`Forge` for the repository OWNER/NAME."""

    def __init__(self, api: Api, repository: str) -> None:
        self._api = api
        self._repository = path_of(repository)
        self._owner = repository.partition("/")[0]
        self._posted = Posted()
        self._comments = comments_of(api, self._repository, self._is_own)
        self._own: int | None = None

    @property
    def kind(self) -> str:
        return "github"

    # -- reading: evidence ------------------------------------------------------------------------------------

    def pulls_of(self, commit: str) -> Sequence[Pull]:
        rows = self._api.rows(f"{self._repository}/commits/{commit}/pulls")
        return [self.pull(row.number("number")) for row in rows if row.has("merged_at")]

    def pull(self, number: int) -> Pull:
        row = self._api.the_row(f"{self._repository}/pulls/{number}")
        pusher = self._last_pusher(row)
        return _pull(row, pusher, _merged_by(row, pusher))

    def open_pulls(self) -> Sequence[Pull]:
        rows = self._api.rows(f"{self._repository}/pulls", {"state": "open", "sort": "created"})
        return [_pull(row, None, None) for row in rows]

    def _last_pusher(self, pull: Row) -> Account | None:
        head = pull.row("head")
        repository = head.maybe_row("repo")
        if repository is None:
            return None  # the fork was deleted, with the record of its pushers
        owner, _, name = repository.text("full_name").partition("/")
        where = f"/repos/{quoted(owner)}/{quoted(name)}/activity"
        ref = f"refs/heads/{head.text('ref')}"
        for row in self._api.rows(where, {"ref": ref}, MOST_PUSHES):
            if row.text("ref") == ref and row.text("after") == head.oid("sha"):
                return _account(row.maybe_row("actor"))
        return None

    def reviews(self, number: int) -> Sequence[Review]:
        rows = self._api.rows(f"{self._repository}/pulls/{number}/reviews")
        return latest_of(_review(row) for row in rows if row.text("state") != "PENDING")

    def committers(self, number: int) -> Sequence[Committer]:
        """Fault `ForgeRefused` if there are too many commits to list all."""
        rows = self._api.rows(f"{self._repository}/pulls/{number}/commits")
        if len(rows) >= MOST_COMMITS:
            raise Fault(
                f"pull request {number} has {MOST_COMMITS} commits or more, and GitHub does not list all of them: "
                "its approvals do not count; squash it",
                "ForgeRefused",
            )
        return committers_in(rows, _account)

    def changed_paths(self, number: int) -> Sequence[str]:
        """GitHub lists the first 3000."""
        return paths_in(self._api.rows(f"{self._repository}/pulls/{number}/files"))

    def blob_at(self, commit: str, path: str) -> str | None:
        return blob_of(self._api, self._repository, commit, path)

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        ref = f"refs/heads/{branch}"
        rows = self._api.rows(f"{self._repository}/activity", {"ref": ref}, MOST_PUSHES)
        pushes = [row for row in rows if row.text("ref") == ref and row.text("activity_type") in _PUSHES]
        for row in pushes:
            if row.text("after") == commit:
                return _account(row.maybe_row("actor"))
        for row in pushes[:MOST_COMPARED]:
            if commit in self._between(row.text("before"), row.oid("after")):
                return _account(row.maybe_row("actor"))
        return None

    def _between(self, before: str, after: str) -> set[str]:
        if not before.strip("0"):
            return set()  # the branch was new
        found = self._api.row(f"{self._repository}/compare/{quoted(before)}...{after}")
        return set() if found is None else {row.text("sha") for row in found.rows("commits")}

    # -- writing ----------------------------------------------------------------------------------------------

    def put_status(self, commit: str, state: CommitState, context: str, description: str, url: str) -> None:
        said = Said(state, described(description), url)
        if self._status(commit, context) == said:
            return
        body = {"state": state, "context": context, "description": said.description}
        self._api.send(
            "POST", f"{self._repository}/statuses/{commit}", body | ({"target_url": url} if url else {})
        )
        self._posted.note_status(commit, context, said)

    def _status(self, commit: str, context: str) -> Said | None:
        if (commit, context) not in self._posted.statuses:
            found = self._api.row(f"{self._repository}/commits/{commit}/status", {"per_page": "100"})
            for row in [] if found is None else found.rows("statuses"):
                if row.text("context") == context:
                    state = _READ.get(row.text("state"), "error")
                    said = Said(state, row.maybe_text("description"), row.maybe_text("target_url"))
                    self._posted.note_status(commit, context, said)
        return self._posted.statuses.get((commit, context))

    def put_comment(self, number: int, marker: str, body: str) -> None:
        self._comments.put(number, marker, body)

    def _is_own(self, comment: Row) -> bool:
        if self._own is None:
            try:
                self._own = self._api.the_row("/user").number("id")
            except Fault as fault:
                if fault.reason != "ForgeRefused":
                    raise
                self._own = 0  # an application's token, which cannot query its own account
        by = _account(comment.maybe_row("user"))
        return by.id == self._own if self._own else comment.has("performed_via_github_app")

    def open_pull(self, branch: str, base: str, title: str, body: str) -> Pull:
        where = f"{self._repository}/pulls"
        asked = {"state": "open", "head": f"{self._owner}:{branch}", "base": base}
        for row in self._api.rows(where, asked):
            if row.row("head").text("ref") == branch:
                return _pull(row, None, None)
        content = {"title": title, "head": branch, "base": base, "body": commented(body)}
        return _pull(self._api.send("POST", where, content), None, None)

    # -- protection -------------------------------------------------------------------------------------------

    def protection(self, branch: str) -> Sequence[str]:
        """Rulesets; classic branch protection if the token may read it."""
        rules = self._api.rows(f"{self._repository}/rules/branches/{quoted(branch)}")
        try:
            older = self._api.row(f"{self._repository}/branches/{quoted(branch)}/protection")
        except Fault as fault:
            if fault.reason != "ForgeRefused":
                raise
            older = None  # needs admin permission, which the token may lack
        return github_lacks(branch, rules, older)


def _account(row: Row | None) -> Account:
    if row is None:
        return GHOST
    return Account(row.number("id"), row.text("login"), row.maybe_text("type") == "User")


def _pull(row: Row, last_pusher: Account | None, merged_by: Account | None) -> Pull:
    number, head = row.number("number"), row.row("head")
    state: Literal["open", "merged", "closed"] = "open" if row.text("state") == "open" else "closed"
    return Pull(
        number=number,
        author=_account(row.maybe_row("user")),
        head=head.oid("sha"),
        base_branch=row.row("base").text("ref"),
        title=row.text("title"),
        url=row.text("html_url"),
        state="merged" if row.has("merged_at") else state,
        head_ref=f"refs/pull/{number}/head",
        merge_commit=row.maybe_oid("merge_commit_sha") if row.has("merged_at") else "",
        merged_by=merged_by,
        last_pusher=last_pusher,
    )


def _merged_by(row: Row, last_pusher: Account | None) -> Account | None:
    """Who merged it as it is. An account that requested an automatic merge may not have seen later pushes."""
    if not row.has("merged_at") or not row.has("merged_by"):
        return None
    merger = _account(row.row("merged_by"))
    if row.has("auto_merge") and (last_pusher is None or last_pusher.id != merger.id):
        return None
    return merger


def _review(row: Row) -> Review:
    state = row.text("state")
    return Review(
        by=_account(row.maybe_row("user")),
        decision=_DECISIONS.get(state, "comment"),
        commit=row.maybe_oid("commit_id"),
        at=row.when("submitted_at"),
        id=str(row.number("id")),
        text=row.maybe_text("body"),
        is_dismissed=state == "DISMISSED",
    )
