"""Gitea and Forgejo. Their REST API v1, identical in the parts used here.

Pushers come from a pull request's timeline, and from the repository's activity for pushes before it was
opened or without one.

Held by tests/reconciler/forges/test_recorded.py and tests/contract/test_forge_contract.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from reconciler.forges.branch_protection import gitea_lacks
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
from reconciler.forges.json_fields import Json, Row
from schemas.errors import Fault

_BETWEEN = re.compile(r"/compare/([0-9a-f]{40,64}\.\.\.[0-9a-f]{40,64})$")
MOST_FEED = 6
"""Pages of the activity that are searched."""
_DECISIONS: Mapping[str, Literal["approve", "reject", "comment"]] = {
    "APPROVED": "approve",
    "REQUEST_CHANGES": "reject",
    "COMMENT": "comment",
}
_READ: Mapping[str, CommitState] = {"pending": "pending", "success": "success", "failure": "failure"}


class Gitea:
    """`Forge` for the repository OWNER/NAME."""

    def __init__(self, api: Api, repository: str) -> None:
        self._api = api
        self._repository = path_of(repository)
        self._posted = Posted()
        self._comments = comments_of(api, self._repository, self._is_own)
        self._own: int | None = None

    @property
    def kind(self) -> str:
        return "gitea"

    # -- reading: evidence ------------------------------------------------------------------------------------

    def pulls_of(self, commit: str) -> Sequence[Pull]:
        row = self._api.row(f"{self._repository}/commits/{commit}/pull") or self._rebased(commit)
        return [] if row is None or not row.flag("merged") else [self.pull(row.number("number"))]

    def _rebased(self, commit: str) -> Row | None:
        """The pull request of a commit merged together with others: Gitea only records the last of them."""
        base = self._api.the_row(self._repository).text("default_branch")
        for _, push in self._feed(self._repository, base):
            head = push.get("head")
            if isinstance(head, str) and head != commit and commit in self._pushed(push):
                return self._api.row(f"{self._repository}/commits/{quoted(head)}/pull")
        return None

    def pull(self, number: int) -> Pull:
        row = self._api.the_row(f"{self._repository}/pulls/{number}")
        timeline = self._api.rows(f"{self._repository}/issues/{number}/timeline")
        return _pull(row, self._last_pusher(row, timeline), self._merger(row, timeline))

    def _merger(self, pull: Row, timeline: Sequence[Row]) -> Account | None:
        """Who merged it; None: not recorded."""
        if not pull.flag("merged") or not pull.has("merged_by"):
            return None
        merger: Account | None = _account(pull.row("merged_by"))
        if self._may_detect_merges():
            # The record then names the author of a pushed commit, chosen by the pusher; the real pusher is unknown.
            merger = self.pusher_of(pull.row("base").text("ref"), pull.oid("merge_commit_sha"))
        return None if merger is None or _was_pushed_unseen(timeline, merger) else merger

    def _may_detect_merges(self) -> bool:
        """True if a push may count as a merge there, or if the server is too old to say (go-gitea/gitea#36581)."""
        repository = self._api.the_row(self._repository)
        return not repository.has("autodetect_manual_merge") or repository.flag("autodetect_manual_merge")

    def open_pulls(self) -> Sequence[Pull]:
        return [
            _pull(row, None, None) for row in self._api.rows(f"{self._repository}/pulls", {"state": "open"})
        ]

    def _last_pusher(self, pull: Row, timeline: Sequence[Row]) -> Account | None:
        """Who pushed its head: from the timeline, or from the activity if there was no push since it was opened."""
        head = pull.row("head")
        pushes = [row for row in timeline if row.text("type") == "pull_push"]
        if pushes:
            newest = max(pushes, key=lambda row: row.number("id"))
            return _account(newest.maybe_row("user")) if head.oid("sha") in _pushed(newest) else None
        repository = head.maybe_row("repo")
        if repository is None:
            return None  # the fork was deleted, with the record of its pushers
        owner, _, name = repository.text("full_name").partition("/")
        where = f"/repos/{quoted(owner)}/{quoted(name)}"
        # `ref` is invalid if the branch was deleted after the merge.
        for row, push in self._feed(where, head.text("label").rpartition(":")[2]):
            if head.oid("sha") in (push.get("head"), *_listed(push)):
                return _account(row.maybe_row("act_user"))
        return None

    def _feed(self, repository: str, branch: str) -> list[tuple[Row, Mapping[str, Json]]]:
        """Pushes to a branch with their content, newest first."""
        rows = self._api.rows(f"{repository}/activities/feeds", most_pages=MOST_FEED)
        return [
            (row, _content(row.maybe_text("content")))
            for row in rows
            if row.text("op_type") == "commit_repo"
            and row.maybe_text("ref_name").removeprefix("refs/heads/") == branch
        ]

    def _pushed(self, push: Mapping[str, Json]) -> list[str]:
        """All commits of a push; the activity lists only the last five."""
        listed, between = _listed(push), push.get("between")
        if not isinstance(between, str) or push.get("count") == len(listed):
            return listed
        found = self._api.row(f"{self._repository}/compare/{between}")
        return listed if found is None else [row.text("sha") for row in found.rows("commits")]

    def reviews(self, number: int) -> Sequence[Review]:
        rows = self._api.rows(f"{self._repository}/pulls/{number}/reviews")
        # In any other state it was only requested, or is not submitted yet.
        submitted = [row for row in rows if row.text("state") in _DECISIONS]
        return latest_of(map(_review, sorted(submitted, key=lambda row: row.number("id"))))

    def committers(self, number: int) -> Sequence[Committer]:
        asked = {"verification": "false", "files": "false"}
        rows = self._api.rows(f"{self._repository}/pulls/{number}/commits", asked)
        return committers_in(rows, _account)

    def changed_paths(self, number: int) -> Sequence[str]:
        return paths_in(self._api.rows(f"{self._repository}/pulls/{number}/files"))

    def blob_at(self, commit: str, path: str) -> str | None:
        return blob_of(self._api, self._repository, commit, path)

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        for row, push in self._feed(self._repository, branch):
            if commit == push.get("head") or commit in self._pushed(push):
                return _account(row.maybe_row("act_user"))
        return None

    # -- writing ----------------------------------------------------------------------------------------------

    def put_status(self, commit: str, state: CommitState, context: str, description: str, url: str) -> None:
        said = Said(state, described(description), url)
        if self._status(commit, context) == said:
            return
        body = {"state": state, "context": context, "description": said.description, "target_url": url}
        self._api.send("POST", f"{self._repository}/statuses/{commit}", body)
        self._posted.note_status(commit, context, said)

    def _status(self, commit: str, context: str) -> Said | None:
        if (commit, context) not in self._posted.statuses:
            rows = self._api.rows(f"{self._repository}/commits/{commit}/statuses")
            own = [row for row in rows if row.text("context") == context]
            if own:
                newest = max(own, key=lambda row: row.number("id"))
                state = _READ.get(newest.text("status"), "error")
                said = Said(state, newest.maybe_text("description"), newest.maybe_text("target_url"))
                self._posted.note_status(commit, context, said)
        return self._posted.statuses.get((commit, context))

    def put_comment(self, number: int, marker: str, body: str) -> None:
        self._comments.put(number, marker, body)

    def _is_own(self, comment: Row) -> bool:
        if self._own is None:
            self._own = self._api.the_row("/user").number("id")
        return _account(comment.maybe_row("user")).id == self._own

    def open_pull(self, branch: str, base: str, title: str, body: str) -> Pull:
        where = f"{self._repository}/pulls"
        for row in self._api.rows(where, {"state": "open"}):
            head, onto = row.row("head"), row.row("base")
            own = head.has("repo_id") and head.number("repo_id") == onto.number("repo_id")
            if own and head.text("ref") == branch and onto.text("ref") == base:
                return _pull(row, None, None)
        content = {"title": title, "head": branch, "base": base, "body": commented(body)}
        return _pull(self._api.send("POST", where, content), None, None)

    # -- protection -------------------------------------------------------------------------------------------

    def protection(self, branch: str) -> Sequence[str]:
        try:
            rule = self._api.row(f"{self._repository}/branch_protections/{quoted(branch)}")
        except Fault as fault:
            if fault.reason != "ForgeRefused":
                raise
            return (f"the protection of {branch} is unknown: the token may not read it",)
        return gitea_lacks(branch, rule)


def _account(row: Row | None) -> Account:
    """Gitea does not distinguish bots from people, but its built-in accounts have numbers below 1."""
    if row is None or not isinstance(id_ := row.values.get("id"), int) or isinstance(id_, bool) or id_ < 1:
        return GHOST
    return Account(row.number("id"), row.text("login"), is_person=True)


def _pull(row: Row, last_pusher: Account | None, merged_by: Account | None) -> Pull:
    number, merged = row.number("number"), row.flag("merged")
    state: Literal["open", "closed"] = "open" if row.text("state") == "open" else "closed"
    return Pull(
        number=number,
        author=_account(row.maybe_row("user")),
        head=row.row("head").oid("sha"),
        base_branch=row.row("base").text("ref"),
        title=row.text("title"),
        url=row.text("html_url"),
        state="merged" if merged else state,
        head_ref=f"refs/pull/{number}/head",
        merge_commit=row.maybe_oid("merge_commit_sha") if merged else "",
        merged_by=merged_by,
        last_pusher=last_pusher,
    )


def _review(row: Row) -> Review:
    return Review(
        by=_account(row.maybe_row("user")),
        decision=_DECISIONS[row.text("state")],
        commit="" if row.flag("stale") else row.maybe_oid("commit_id"),
        at=row.when("submitted_at"),
        id=str(row.number("id")),
        text=row.maybe_text("body"),
        is_dismissed=row.flag("dismissed"),
    )


def _was_pushed_unseen(timeline: Sequence[Row], merger: Account) -> bool:
    """True if the merger requested an automatic merge, and another account pushed after that."""
    told = [row.number("id") for row in timeline if row.text("type") == "pull_scheduled_merge"]
    return any(
        row.text("type") == "pull_push"
        and row.number("id") > max(told)
        and _account(row.maybe_row("user")) != merger
        for row in timeline
        if told
    )


def _pushed(row: Row) -> list[str]:
    """Commits of a timeline's `pull_push`; for a forced one the old and the new head."""
    found = _decoded(row.maybe_text("body"))
    ids = found.get("commit_ids")
    if not isinstance(ids, list):
        return []
    return [id_ for id_ in (ids[-1:] if found.get("is_force_push") is True else ids) if isinstance(id_, str)]


def _content(text: str) -> dict[str, Json]:
    """A push's new head (`head`), listed commits, their number, and its range (`between`)."""
    found = _decoded(text)
    head, commits = found.get("HeadCommit"), found.get("Commits")
    ids = [c.get("Sha1") for c in commits if isinstance(c, dict)] if isinstance(commits, list) else []
    compared = _BETWEEN.search(url) if isinstance(url := found.get("CompareURL"), str) else None
    return {
        "head": head.get("Sha1") if isinstance(head, dict) else None,
        "listed": ids,
        "count": found.get("Len"),
        "between": None if compared is None else compared[1],
    }


def _listed(push: Mapping[str, Json]) -> list[str]:
    ids = push.get("listed")
    return [id_ for id_ in ids if isinstance(id_, str)] if isinstance(ids, list) else []


def _decoded(text: str) -> dict[str, Json]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
