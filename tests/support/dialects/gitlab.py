"""The forge as GitLab's REST API tells it."""

from __future__ import annotations

from typing import Any

from tests.support.forge import Answer, Request, Routes
from tests.support.forgestate import PullRequest, PushEvent, User, stamp

_PROJECT = r"/projects/acme%2Ffleet"
_ID = 1
_STATES = {"approve": "approved"}


def account(user: User | None) -> dict[str, Any] | None:
    return (
        None
        if user is None
        else {"id": user.id, "username": user.login, "name": user.login, "state": "active"}
    )


def _request(pull: PullRequest) -> dict[str, Any]:
    source = None if pull.fork_is_gone else _ID if pull.fork is None else 1000 + pull.fork.id
    return {
        "id": 5000 + pull.number,
        "iid": pull.number,
        "project_id": _ID,
        "title": pull.title,
        "description": pull.body,
        "state": {"open": "opened"}.get(pull.state, pull.state),
        "target_branch": pull.base,
        "source_branch": pull.branch,
        "source_project_id": source,
        "target_project_id": _ID,
        "author": account(pull.author),
        "merge_user": account(pull.merged_by),
        "merged_by": account(pull.merged_by),
        "merged_at": stamp(pull.merged_at),
        "sha": pull.head,
        "merge_commit_sha": pull.merge_commit or None,
        "squash_commit_sha": None,
        "web_url": f"http://forge.test/acme/fleet/-/merge_requests/{pull.number}",
    }


def project(request: Request) -> Answer:
    checks = request.forge.protection.get("project", {})
    return 200, {"id": _ID, "path_with_namespace": "acme/fleet", "default_branch": "main", **checks}


def pulls_of(request: Request, commit: str) -> Answer:
    return 200, [_request(pull) for pull in request.forge.pulls_of(commit)]


def pull(request: Request, number: str) -> Answer:
    found = request.forge.pulls.get(int(number))
    return (404, {"message": "404 Not found"}) if found is None else (200, _request(found))


def pulls(request: Request) -> Answer:
    rows = [p for p in request.forge.pulls.values() if p.state == "open"]
    if "source_branch" in request.query:
        rows = [p for p in rows if p.branch == request.query["source_branch"]]
    return 200, [_request(p) for p in rows]


def open_pull(request: Request) -> Answer:
    body = request.body
    number = request.forge.open(body["source_branch"], request.user.login, body["target_branch"])  # type: ignore[union-attr]
    made = request.forge.pulls[number]
    made.title, made.body = body["title"], body["description"]
    return 201, _request(made)


def events(request: Request, project: str) -> Answer:
    def is_of(push: PushEvent) -> bool:
        return project == (str(1000 + push.fork.id) if push.fork else "1") or (
            project == "acme/fleet" and push.fork is None
        )

    return 200, [
        {
            "id": number,
            "project_id": _ID,
            "action_name": "pushed to",
            "author": account(push.by),
            "author_username": push.by.login,
            "created_at": stamp(push.at),
            "push_data": {
                "commit_count": len(push.commits),
                "action": "created" if push.kind == "branch_creation" else "pushed",
                "ref_type": "branch",
                "ref": push.branch,
                "commit_from": None if push.kind == "branch_creation" else push.before,
                "commit_to": push.after,
            },
        }
        for number, push in reversed(list(enumerate(request.forge.pushes)))
        if is_of(push)
    ]


def user(request: Request, id_: str) -> Answer:
    found = next((u for u in request.forge.users.values() if u.id == int(id_)), None)
    return (
        (404, {"message": "404 User Not Found"})
        if found is None
        else (
            200,
            {**(account(found) or {}), "bot": found.is_bot},
        )
    )


def approvals(request: Request, number: str) -> Answer:
    latest = {r.by.id: r for r in request.forge.pulls[int(number)].reviews}
    told = request.forge.settings["tells_times"]
    return 200, {
        "id": 1,
        "iid": int(number),
        "approved_by": [
            {"user": account(r.by), **({"approved_at": stamp(r.at)} if told else {})}
            for r in latest.values()
            if r.state == "approve" and not r.dismissed
        ],
    }


def project_approvals(request: Request) -> Answer:
    return 200, {"reset_approvals_on_push": request.forge.settings["resets"]}


def versions(request: Request, number: str) -> Answer:
    pull = request.forge.pulls[int(number)]
    moves = [row for row in pull.timeline if row["type"] == "pull_push"]
    at = moves[-1]["at"] if moves else pull.at
    newest = {
        "id": 100 + len(moves),
        "head_commit_sha": pull.head,
        "created_at": stamp(at),
        "state": "collected",
    }
    return 200, [newest]


def notes(request: Request, number: str) -> Answer:
    rows = [c for c in request.forge.comments.values() if c.number == int(number)]
    if not request.forge.settings.get("notes", True):
        rows = [c for c in rows if not c.system]
    return 200, [
        {"id": c.id, "body": c.body, "author": account(c.by), "system": c.system, "created_at": stamp(c.at)}
        for c in rows
    ]


def post_note(request: Request, number: str) -> Answer:
    made = request.forge.comment(int(number), request.user.login, request.body["body"])  # type: ignore[union-attr]
    return 201, {"id": made.id, "body": made.body}


def put_note(request: Request, _: str, id_: str) -> Answer:
    if int(id_) not in request.forge.comments:
        return 404, {"message": "Not Found"}
    request.forge.comments[int(id_)].body = request.body["body"]
    return 200, {"id": int(id_), "body": request.body["body"]}


def commits(request: Request, number: str) -> Answer:
    forge = request.forge
    return 200, [
        {"id": oid, "author_email": author, "committer_email": committer, "title": "x"}
        for oid, author, committer in forge.commits_of(forge.pulls[int(number)])
    ]


def diffs(request: Request, number: str) -> Answer:
    paths = request.forge.changed(request.forge.pulls[int(number)])
    return 200, [{"old_path": path, "new_path": path, "deleted_file": False} for path in paths]


def file(request: Request, path: str) -> Answer:
    oid = request.forge.blob(request.query["ref"], path)
    if oid is None:
        return 404, {"message": "404 File Not Found"}
    return 200, {"file_name": path.rsplit("/", 1)[-1], "file_path": path, "blob_id": oid}


def compare(request: Request) -> Answer:
    pair = (request.query["from"], request.query["to"])
    push = next((p for p in request.forge.pushes if (p.before, p.after) == pair), None)
    return 200, {"commits": [{"id": oid} for oid in ([] if push is None else push.commits)]}


def post_status(request: Request, commit: str) -> Answer:
    body = request.body
    states = {"failed": "failure"}
    before = request.forge.status(commit, body["name"])
    if before is not None and before["raw"] == body["state"]:
        return 400, {"message": f"Cannot transition status via :enqueue from :{body['state']}"}
    forks = {p.head for p in request.forge.pulls.values() if p.fork is not None}
    if commit in forks and "ref" not in body:
        return 404, {"message": "404 References for commit Not Found"}
    request.forge.statuses.append(
        {
            "commit": commit,
            "context": body["name"],
            "state": states.get(body["state"], body["state"]),
            "raw": body["state"],
            "description": body["description"],
            "target_url": body.get("target_url"),
        }
    )
    return 201, {"id": 1, "status": body["state"]}


def statuses(request: Request, commit: str) -> Answer:
    latest = {row["context"]: row for row in request.forge.statuses if row["commit"] == commit}
    return 200, [
        {
            "id": number,
            "name": row["context"],
            "status": row["raw"],
            "description": row["description"],
            "target_url": row["target_url"],
        }
        for number, row in enumerate(latest.values())
    ]


def me(request: Request) -> Answer:
    return (200, account(request.user)) if request.user else (401, {"message": "401 Unauthorized"})


def protected(request: Request, branch: str) -> Answer:
    found = request.forge.protection.get(branch)
    return (404, {"message": "404 Not found"}) if found is None else (200, found)


ROUTES: tuple[str, Routes] = (
    "/api/v4",
    [
        ("GET", _PROJECT, project),
        ("GET", rf"{_PROJECT}/repository/commits/([0-9a-f]+)/merge_requests", pulls_of),
        ("GET", rf"{_PROJECT}/repository/commits/([0-9a-f]+)/statuses", statuses),
        ("POST", rf"{_PROJECT}/statuses/([0-9a-f]+)", post_status),
        ("GET", rf"{_PROJECT}/merge_requests", pulls),
        ("POST", rf"{_PROJECT}/merge_requests", open_pull),
        ("GET", rf"{_PROJECT}/merge_requests/(\d+)", pull),
        ("GET", rf"{_PROJECT}/merge_requests/(\d+)/approvals", approvals),
        ("GET", rf"{_PROJECT}/merge_requests/(\d+)/versions", versions),
        ("GET", rf"{_PROJECT}/merge_requests/(\d+)/notes", notes),
        ("POST", rf"{_PROJECT}/merge_requests/(\d+)/notes", post_note),
        ("PUT", rf"{_PROJECT}/merge_requests/(\d+)/notes/(\d+)", put_note),
        ("GET", rf"{_PROJECT}/merge_requests/(\d+)/commits", commits),
        ("GET", rf"{_PROJECT}/merge_requests/(\d+)/diffs", diffs),
        ("GET", rf"{_PROJECT}/approvals", project_approvals),
        ("GET", rf"{_PROJECT}/repository/files/([^/]+)", file),
        ("GET", rf"{_PROJECT}/repository/compare", compare),
        ("GET", r"/projects/([^/]+)/events", events),
        ("GET", r"/users/(\d+)", user),
        ("GET", r"/user", me),
        ("GET", rf"{_PROJECT}/protected_branches/([^/]+)", protected),
    ],
)
