"""GitLab, on gitlab.com or self-hosted. REST API v4; merge requests are pull requests here.

A GitLab approval has no commit id. It counts for the head only if it is younger than the last version of the
diff, or, without a time, if the project resets approvals at each push. Pushers come from the project's
events.

Held by tests/reconciler/forges/test_recorded.py and tests/contract/test_forge_contract.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from reconciler.forges.branch_protection import gitlab_lacks
from reconciler.forges.comments import Comments, Posted, Said, Where, commented, described
from reconciler.forges.forge_http import Api, quoted
from reconciler.forges.forge_port import GHOST, Account, CommitState, Committer, Pull, Review
from reconciler.forges.json_fields import Row
from schemas.errors import Fault, UserError

MOST_PUSHES = 3
"""Pages of pushes that are searched."""
MOST_COMPARED = 10
"""Pushes whose commits are searched for one that was not the last of its push."""
APPROVED = "approved this merge request"
"""GitLab's system note for an approval; people cannot write system notes."""
_STATES: Mapping[CommitState, str] = {
    "pending": "pending",
    "success": "success",
    "failure": "failed",
    "error": "failed",
}
_READ: Mapping[str, CommitState] = {"pending": "pending", "success": "success", "failed": "failure"}


class GitLab:
    """`Forge` for the project with that full path."""

    def __init__(self, api: Api, repository: str) -> None:
        if "/" not in repository.strip("/"):
            raise UserError("--forge-repository: give the project's full path, GROUP/PROJECT", "BadForge")
        self._api = api
        self._project = f"/projects/{quoted(repository)}"
        self._posted = Posted()
        requests = f"{self._project}/merge_requests"
        where = Where(
            lambda number: f"{requests}/{number}/notes",
            lambda number, note: f"{requests}/{number}/notes/{note}",
            "PUT",
            self._is_own,
            {"sort": "asc", "order_by": "created_at"},
        )
        self._comments = Comments(api, where)
        self._id: int | None = None
        self._own: int | None = None
        self._persons: dict[int, bool] = {}
        self._refs: dict[str, str] = {}  # of heads that are on no branch of the project

    @property
    def kind(self) -> str:
        return "gitlab"

    # -- reading: evidence ------------------------------------------------------------------------------------

    def pulls_of(self, commit: str) -> Sequence[Pull]:
        rows = self._api.rows(f"{self._project}/repository/commits/{commit}/merge_requests")
        merged = [row for row in rows if row.text("state") == "merged"]
        return [self.pull(row.number("iid")) for row in merged if row.number("project_id") == self._own_id()]

    def pull(self, number: int) -> Pull:
        row = self._api.the_row(f"{self._project}/merge_requests/{number}")
        return self._pull(row, self._last_pusher(row))

    def open_pulls(self) -> Sequence[Pull]:
        rows = self._api.rows(f"{self._project}/merge_requests", {"state": "opened", "scope": "all"})
        return [self._pull(row, None) for row in rows if row.maybe_text("sha")]

    def _pull(self, row: Row, last_pusher: Account | None) -> Pull:
        number, state = row.number("iid"), row.text("state")
        known: Mapping[str, Literal["open", "merged", "closed"]] = {"opened": "open", "merged": "merged"}
        merged = state == "merged"
        merger = row.maybe_row("merge_user") or row.maybe_row("merged_by")
        ref = f"refs/merge-requests/{number}/head"
        if row.has("source_project_id") and row.number("source_project_id") != row.number(
            "target_project_id"
        ):
            self._refs[row.oid("sha")] = ref
        return Pull(
            number=number,
            author=self._account(row.maybe_row("author")),
            head=row.oid("sha"),
            base_branch=row.text("target_branch"),
            title=row.text("title"),
            url=row.text("web_url"),
            state=known.get(state, "closed"),
            head_ref=ref,
            merge_commit=_merge_commit(row) if merged else "",
            merged_by=self._account(merger) if merged and merger is not None else None,
            last_pusher=last_pusher,
        )

    def _last_pusher(self, row: Row) -> Account | None:
        if not row.has("source_project_id"):
            return None  # the fork was deleted, with the record of its pushers
        project = f"/projects/{row.number('source_project_id')}"
        for event, push in self._pushes(project, row.text("source_branch")):
            if push.maybe_text("commit_to") == row.oid("sha"):
                return self._account(event.maybe_row("author"))
        return None

    def _pushes(self, project: str, branch: str) -> list[tuple[Row, Row]]:
        """Push events of a branch with their data, newest first."""
        asked = {"action": "pushed", "sort": "desc"}
        rows = self._api.rows(f"{project}/events", asked, MOST_PUSHES)
        pushes = [(row, row.row("push_data")) for row in rows if row.has("push_data")]
        return [
            (row, push)
            for row, push in pushes
            if push.maybe_text("ref_type") == "branch" and push.maybe_text("ref") == branch
        ]

    def _account(self, row: Row | None) -> Account:
        if row is None:
            return GHOST
        id_ = row.number("id")
        if id_ not in self._persons:
            user = self._api.row(f"/users/{id_}")
            # Old servers do not distinguish bots from people.
            self._persons[id_] = user is not None and user.has("bot") and not user.flag("bot")
        return Account(id_, row.text("username"), self._persons[id_])

    def reviews(self, number: int) -> Sequence[Review]:
        """Current approvals; GitLab removes withdrawn ones."""
        where = f"{self._project}/merge_requests/{number}"
        found = self._api.row(f"{where}/approvals")
        rows = [] if found is None else found.rows("approved_by")
        if not rows:
            return []
        head, since = self._newest_version(where)
        noted = self._noted(where)
        reviews = []
        for row in rows:
            by = self._account(row.row("user"))
            at = row.when("approved_at") if row.has("approved_at") else noted.get(by.id)
            is_of_head = self._resets() if at is None else at > since
            when = since if at is None else at
            reviews.append(
                Review(
                    by, "approve", head if is_of_head else "", when, f"{number}/{by.id}/{when.isoformat()}"
                )
            )
        return reviews

    def _newest_version(self, where: str) -> tuple[str, datetime]:
        rows = self._api.rows(f"{where}/versions", most_pages=1)
        if not rows:
            raise Fault(f"the forge lists no versions of {where}", "ForgeRefused")
        newest = max(rows, key=lambda row: row.number("id"))
        return newest.oid("head_commit_sha"), newest.when("created_at")

    def _noted(self, where: str) -> dict[int, datetime]:
        """When each account last approved, from GitLab's system notes."""
        rows = self._api.rows(f"{where}/notes", {"sort": "asc", "order_by": "created_at"})
        own = [row for row in rows if row.flag("system") and row.text("body") == APPROVED]
        return {row.row("author").number("id"): row.when("created_at") for row in own}

    def _resets(self) -> bool:
        found = self._api.row(f"{self._project}/approvals")
        return found is not None and found.flag("reset_approvals_on_push")

    def committers(self, number: int) -> Sequence[Committer]:
        """GitLab gives addresses, not accounts."""
        rows = self._api.rows(f"{self._project}/merge_requests/{number}/commits")
        return [
            Committer(0, row.maybe_text(name)) for row in rows for name in ("author_email", "committer_email")
        ]

    def changed_paths(self, number: int) -> Sequence[str]:
        rows = self._api.rows(f"{self._project}/merge_requests/{number}/diffs")
        return [row.text(name) for row in rows for name in ("old_path", "new_path")]

    def blob_at(self, commit: str, path: str) -> str | None:
        row = self._api.row(f"{self._project}/repository/files/{quoted(path)}", {"ref": commit})
        return None if row is None or row.text("file_path") != path else row.oid("blob_id")

    def pusher_of(self, branch: str, commit: str) -> Account | None:
        pushes = self._pushes(self._project, branch)
        for event, push in pushes:
            if push.maybe_text("commit_to") == commit:
                return self._account(event.maybe_row("author"))
        for event, push in pushes[:MOST_COMPARED]:
            if commit in self._between(push.maybe_oid("commit_from"), push.maybe_oid("commit_to")):
                return self._account(event.maybe_row("author"))
        return None

    def _between(self, before: str, after: str) -> set[str]:
        if not before.strip("0") or not after:
            return set()
        found = self._api.row(f"{self._project}/repository/compare", {"from": before, "to": after})
        return set() if found is None else {row.text("id") for row in found.rows("commits")}

    def _own_id(self) -> int:
        if self._id is None:
            self._id = self._api.the_row(self._project).number("id")
        return self._id

    # -- writing ----------------------------------------------------------------------------------------------

    def put_status(self, commit: str, state: CommitState, context: str, description: str, url: str) -> None:
        said = Said(_READ[_STATES[state]], described(description), url)
        before = self._status(commit, context)
        if before == said:
            return
        body = {"state": _STATES[state], "name": context, "description": said.description}
        body |= {"target_url": url} if url else {}
        body |= {"ref": self._refs[commit]} if commit in self._refs else {}
        try:
            self._api.send("POST", f"{self._project}/statuses/{commit}", body)
        except Fault as fault:
            # GitLab has no transition from a state to itself: the old description stays.
            if fault.reason != "ForgeRefused" or before is None or before.state != said.state:
                raise
        self._posted.note_status(commit, context, said)

    def _status(self, commit: str, context: str) -> Said | None:
        if (commit, context) not in self._posted.statuses:
            where = f"{self._project}/repository/commits/{commit}/statuses"
            for row in self._api.rows(where, {"name": context}):
                if row.text("name") == context:
                    said = Said(
                        _READ.get(row.text("status"), "error"),
                        row.maybe_text("description"),
                        row.maybe_text("target_url"),
                    )
                    self._posted.note_status(commit, context, said)
        return self._posted.statuses.get((commit, context))

    def put_comment(self, number: int, marker: str, body: str) -> None:
        self._comments.put(number, marker, body)

    def _is_own(self, note: Row) -> bool:
        if self._own is None:
            self._own = self._api.the_row("/user").number("id")
        return note.row("author").number("id") == self._own

    def open_pull(self, branch: str, base: str, title: str, body: str) -> Pull:
        where = f"{self._project}/merge_requests"
        asked = {"state": "opened", "scope": "all", "source_branch": branch, "target_branch": base}
        for row in self._api.rows(where, asked):
            if row.text("source_branch") == branch and row.number("source_project_id") == self._own_id():
                return self._pull(row, None)
        content = {
            "source_branch": branch,
            "target_branch": base,
            "title": title,
            "description": commented(body),
            "remove_source_branch": True,
        }
        return self._pull(self._api.send("POST", where, content), None)

    # -- protection -------------------------------------------------------------------------------------------

    def protection(self, branch: str) -> Sequence[str]:
        protected = self._api.row(f"{self._project}/protected_branches/{quoted(branch)}")
        return gitlab_lacks(branch, self._api.the_row(self._project), protected)


def _merge_commit(row: Row) -> str:
    """The commit on the target branch: GitLab leaves unused fields empty."""
    return row.maybe_oid("merge_commit_sha") or row.maybe_oid("squash_commit_sha") or row.oid("sha")
