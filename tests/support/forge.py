"""A forge for tests: a real bare repository, people, pull requests, reviews; answers in three dialects over HTTP.

`Forge(bare, kind)` is the forge itself, where tests act as people do (`push`, `open`, `approve`, `merge`); `serve`
gives its API out on loopback.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support import repos
from tests.support.forgestate import (
    START,
    Call,
    Comment,
    PullRequest,
    PushEvent,
    Review,
    User,
)

TOKEN = "forge-token-0123456789"
REPOSITORY = "acme/fleet"
Answer = tuple[int, Any]


class Forge:
    """The forge's state. `down` answers that status to everything, `limited` says to come back later."""

    def __init__(self, repo: Path, kind: str = "github") -> None:
        self.repo, self.kind = repo, kind
        self.users: dict[str, User] = {}
        self.pulls: dict[int, PullRequest] = {}
        self.pushes: list[PushEvent] = []
        self.statuses: list[dict[str, Any]] = []
        self.comments: dict[int, Comment] = {}
        self.protection: dict[str, dict[str, Any]] = {}
        self.settings: dict[str, Any] = {"resets": False, "tells_times": True}
        self.calls: list[Call] = []
        self.down: int | None = None
        self.limited = False
        self.detects_merges: bool | None = (
            False  # Gitea: a push may count as a merge; None: it is too old to tell
        )
        self.wrote: threading.Event | None = None  # set at every call that changed something
        self.now = START
        self.me = self.user("egs-controller", bot=True)
        self._ids = iter(range(1001, 10**6))

    # -- acting as people do -----------------------------------------------------------------------------------

    def user(self, login: str, *, bot: bool = False) -> User:
        """Somebody with an account; the same every time."""
        if login not in self.users:
            self.users[login] = User(11 + len(self.users), login, bot)
        return self.users[login]

    def tick(self, seconds: float = 60) -> datetime:
        """Time passes at the forge."""
        self.now += timedelta(seconds=seconds)
        return self.now

    def next_id(self) -> int:
        return next(self._ids)

    def push(
        self,
        branch: str,
        files: Mapping[str, repos.FileText],
        by: str,
        *,
        author: str = "",
        fork: str = "",
        base: str = "main",
    ) -> str:
        """Somebody pushes one commit to a branch (of their fork), which begins at the tip of `base`."""
        local = f"forks/{fork}/{branch}" if fork else branch
        before = self._tip(local)
        if not before and branch != base and self._tip(base):
            repos.point(self.repo, f"refs/heads/{local}", self._tip(base))
        who = author or f"{by} <{self.user(by).email}>"
        after = repos.commit(self.repo, files, local, f"Change by {by}", who)
        self.pushed(branch, before, after, by, fork=fork)
        return after

    def pushed(
        self, branch: str, before: str, after: str, by: str, *, fork: str = "", kind: str = ""
    ) -> None:
        """A push that moved the ref already is told to the forge."""
        commits = repos.git(self.repo, "rev-list", after, *([f"^{before}"] if before else ["-n1"])).split()
        kind = kind or ("push" if before else "branch_creation")
        owner = self.user(fork) if fork else None
        event = PushEvent(branch, before or "0" * 40, after, self.user(by), kind, self.tick(), commits, owner)
        self.pushes.append(event)
        for pull in self.pulls.values():
            if pull.state == "open" and pull.branch == branch and pull.fork == owner:
                self._moved(pull, event)
        for pull in list(self.pulls.values()):
            if pull.state == "open" and pull.base == branch and not fork and self._has(after, pull.head):
                pull.merge_base = repos.git(self.repo, "merge-base", before, pull.head)
                self._end(pull, after, self.user(by))  # what is on the base branch counts as merged

    def _moved(self, pull: PullRequest, event: PushEvent) -> None:
        pull.head = event.after
        self._point(pull)
        pushed = {"is_force_push": event.kind == "force_push", "commit_ids": [event.before, event.after]}
        if event.kind != "force_push":
            pushed["commit_ids"] = event.commits[::-1]
        self.note(pull, "pull_push", event.by, json.dumps(pushed))
        if self.settings["resets"]:
            pull.reviews = []

    def note(self, pull: PullRequest, kind: str, by: User, body: str = "") -> None:
        """One line of the timeline."""
        pull.timeline.append({"id": self.next_id(), "type": kind, "by": by, "body": body, "at": self.now})

    def open(self, branch: str, by: str, base: str = "main", title: str = "", *, fork: str = "") -> int:
        """Somebody opens a pull request."""
        number = len(self.pulls) + 1
        owner = self.user(fork) if fork else None
        head = self._tip(f"forks/{fork}/{branch}" if fork else branch)
        assert head, f"no branch {branch}"
        pull = PullRequest(
            number, self.user(by), branch, base, title or f"Pull {number}", "", head, self.tick(), owner
        )
        self.pulls[number] = pull
        self._point(pull)
        return number

    def approve(self, number: int, by: str, state: str = "approve", commit: str = "") -> Review:
        """Somebody reviews it."""
        pull = self.pulls[number]
        review = Review(self.next_id(), self.user(by), state, commit or pull.head, self.tick())
        pull.reviews.append(review)
        if state == "approve":
            comment = Comment(
                self.next_id(), number, review.by, "approved this merge request", self.now, system=True
            )
            self.comments[comment.id] = comment
        return review

    def comment(self, number: int, by: str, body: str) -> Comment:
        """Somebody writes."""
        comment = Comment(self.next_id(), number, self.user(by), body, self.tick())
        self.comments[comment.id] = comment
        return comment

    def auto_merge(self, number: int, by: str) -> None:
        """Somebody tells it to merge itself when it may."""
        self.tick()
        self.pulls[number].auto_merge_by = self.user(by)
        self.note(self.pulls[number], "pull_scheduled_merge", self.user(by))

    def merge(self, number: int, by: str = "", how: str = "merge") -> str:
        """Merge as the forge does: merge, squash or rebase. `by` nobody: whoever told it to merge itself."""
        pull = self.pulls[number]
        merger = self.user(by) if by else pull.auto_merge_by
        assert merger is not None
        before = self._tip(pull.base)
        pull.merge_base = repos.git(self.repo, "merge-base", before, pull.head)
        if how == "rebase":
            after = self._rebase(pull, before)
        else:
            tree = repos.git(self.repo, "merge-tree", "--write-tree", before, pull.head).splitlines()[0]
            parents = [before, pull.head] if how == "merge" else [before]
            after = self._commit(tree, parents, merger, f"Merge pull request #{number}")
            repos.point(self.repo, f"refs/heads/{pull.base}", after)
        self.tick()
        self._end(pull, after, merger)
        commits = repos.git(self.repo, "rev-list", after, f"^{before}").split()
        self.pushes.append(PushEvent(pull.base, before, after, merger, "pr_merge", self.now, commits))
        return after

    def merge_by_push(self, number: int, pusher: str, names: str) -> str:
        """A push of a merge commit that names somebody as its author; the forge takes that one for the merger."""
        self.merge(number, names)
        made = self.pushes.pop()
        self.pushes.append(replace(made, by=self.user(pusher), kind="push"))
        return made.after

    def _rebase(self, pull: PullRequest, before: str) -> str:
        for oid in repos.git(self.repo, "rev-list", "--reverse", pull.head, f"^{before}").split():
            lines = repos.git(self.repo, "diff-tree", "-r", "--no-commit-id", "--name-status", oid)
            files: dict[str, repos.FileText] = {}
            for line in lines.splitlines():
                status, path = line.split("\t", 1)
                files[path] = None if status == "D" else self.content(oid, path)
            author = repos.git(self.repo, "show", "-s", "--format=%an <%ae>", oid)
            repos.commit(self.repo, files, pull.base, "Rebased", author)
        return self._tip(pull.base)

    def _end(self, pull: PullRequest, after: str, by: User) -> None:
        pull.state, pull.merge_commit, pull.merged_by, pull.merged_at = "merged", after, by, self.now

    def _commit(self, tree: str, parents: list[str], by: User, message: str) -> str:
        who = f"{by.login} <{by.email}> {int(self.now.timestamp())} +0000"
        head = [f"tree {tree}", *(f"parent {oid}" for oid in parents), f"author {who}", f"committer {who}"]
        return repos.write_object(self.repo, "commit", ("\n".join(head) + f"\n\n{message}\n").encode())

    # -- looking -----------------------------------------------------------------------------------------------

    def _tip(self, branch: str) -> str:
        return repos.git(self.repo, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def _has(self, tip: str, commit: str) -> bool:
        return commit in repos.git(self.repo, "rev-list", tip).split()

    def _point(self, pull: PullRequest) -> None:
        kind = "merge-requests" if self.kind == "gitlab" else "pull"
        repos.point(self.repo, f"refs/{kind}/{pull.number}/head", pull.head)

    def content(self, commit: str, path: str) -> bytes:
        return repos.git(self.repo, "show", f"{commit}:{path}").encode() + b"\n"

    def blob(self, commit: str, path: str) -> str | None:
        """The id of a plain file's content at a commit."""
        line = repos.git(self.repo, "ls-tree", commit, "--", path)
        return line.split("\t")[0].split()[2] if line.startswith("100644") else None

    def changed(self, pull: PullRequest) -> list[str]:
        """Paths that it changes."""
        base = pull.merge_base or repos.git(self.repo, "merge-base", self._tip(pull.base), pull.head)
        return repos.git(self.repo, "diff", "--name-only", "--no-renames", base, pull.head).splitlines()

    def commits_of(self, pull: PullRequest) -> list[tuple[str, str, str]]:
        """Id, author's and committer's address of each of its commits."""
        base = pull.merge_base or repos.git(self.repo, "merge-base", self._tip(pull.base), pull.head)
        text = repos.git(self.repo, "log", "--reverse", "--format=%H %ae %ce", f"{base}..{pull.head}")
        return [(a, b, c) for a, b, c in (line.split(" ") for line in text.splitlines())]

    def by_email(self, email: str) -> User | None:
        return next((user for user in self.users.values() if user.email == email), None)

    def pulls_of(self, commit: str) -> list[PullRequest]:
        """Merged ones that brought a commit to their base."""
        found = []
        for pull in self.pulls.values():
            push = next(
                (p for p in self.pushes if p.after == pull.merge_commit and pull.state == "merged"), None
            )
            if pull.state == "merged" and (
                commit == pull.merge_commit or (push is not None and commit in push.commits)
            ):
                found.append(pull)
        return found

    def status(self, commit: str, context: str) -> dict[str, Any] | None:
        """The newest commit status with that context."""
        found = [s for s in self.statuses if s["commit"] == commit and s["context"] == context]
        return found[-1] if found else None

    def comments_of(self, number: int) -> list[Comment]:
        """What people and machines wrote."""
        return [c for c in self.comments.values() if c.number == number and not c.system]

    def writes(self) -> list[Call]:
        """Calls that changed something."""
        return [call for call in self.calls if call.method != "GET" and call.status < 300]


Routes = list[tuple[str, str, Callable[..., Answer]]]


@dataclass
class Request:
    """What a handler gets."""

    forge: Forge
    query: dict[str, str]
    body: dict[str, Any]
    user: User | None
    base: str


def _routes(kind: str) -> tuple[str, Routes]:
    from tests.support.dialects import gitea, github, gitlab

    return {"github": github, "gitlab": gitlab, "gitea": gitea}[kind].ROUTES


@contextlib.contextmanager
def serve(forge: Forge) -> Iterator[str]:
    """The forge's API; gives its address, as `--forge-api` has it."""
    prefix, routes = _routes(forge.kind)

    class Handler(_Handler):
        pass

    Handler.forge, Handler.prefix, Handler.routes = forge, prefix, routes
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    forge: Forge
    prefix: str
    routes: Routes
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def _answer(self, method: str) -> None:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        path = parts.path.removeprefix(self.prefix)
        query = dict(parse_qsl(parts.query))
        status, body = self._routed(method, path, query, json.loads(raw) if raw else {})
        self.forge.calls.append(Call(method, path, status))
        if method != "GET" and status < 300 and self.forge.wrote is not None:
            self.forge.wrote.set()
        headers: dict[str, str] = {}
        if isinstance(body, list):
            body, headers = self._page(body, parts.path, query)
        self._send(status, json.dumps(body).encode(), headers)

    def _routed(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer:
        forge = self.forge
        if forge.down is not None:
            return forge.down, {"message": "no"}
        given = self.headers.get("Authorization", "")
        if given and given != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        if forge.limited:
            return 429, {"message": "slow down"}
        request = Request(forge, query, body, forge.me if given else None, f"http://forge.test{self.prefix}")
        if method != "GET" and not given:
            return 403, {"message": "Forbidden"}
        for verb, pattern, handler in self.routes:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                return handler(request, *(unquote(group) for group in found.groups()))
        return 404, {"message": "Not Found"}

    def _page(self, rows: list[Any], path: str, query: dict[str, str]) -> tuple[list[Any], dict[str, str]]:
        size = int(query.get("limit" if self.forge.kind == "gitea" else "per_page", "30"))
        page = int(query.get("page", "1"))
        here = f"http://{self.headers['Host']}{path}"
        links = []
        if page * size < len(rows):
            links.append(f'<{here}?page={page + 1}&per_page={size}&limit={size}>; rel="next"')
        return rows[(page - 1) * size : page * size], {"Link": ", ".join(links)} if links else {}

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        etag = f'"{hashlib.sha256(body + repr(headers).encode()).hexdigest()[:32]}"'
        if status == 200 and self.forge.kind != "gitea" and self.headers.get("If-None-Match") == etag:
            status, body = 304, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.forge.kind != "gitea" and status in (200, 304):
            self.send_header("ETag", etag)
        if status == 429:
            self.send_header("Retry-After", "60")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def served(forge: Forge, folder: Path) -> Iterator[Any]:
    """The forge's API, as settings name it: `reconciler.settings.ForgeAddress` with a token."""
    from reconciler.settings import ForgeAddress

    token = folder / "forge-token"
    token.write_text(TOKEN + "\n")
    with serve(forge) as api:
        yield ForgeAddress(forge.kind, api, REPOSITORY, token)  # type: ignore[arg-type]
