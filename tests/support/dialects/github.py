"""The forge as GitHub's REST API tells it."""

from __future__ import annotations

from typing import Any

from tests.support.forge import Answer, Request, Routes
from tests.support.forgestate import PullRequest, User, stamp

_REPO = r"/repos/acme/fleet"


def account(user: User | None) -> dict[str, Any] | None:
    if user is None:
        return None
    login = f"{user.login}[bot]" if user.is_bot else user.login
    return {"login": login, "id": user.id, "type": "Bot" if user.is_bot else "User", "site_admin": False}


def _pull(pull: PullRequest, *, whole: bool) -> dict[str, Any]:
    owner = pull.fork.login if pull.fork else "acme"
    repo = None if pull.fork_is_gone else {"id": 7, "full_name": f"{owner}/fleet"}
    found: dict[str, Any] = {
        "number": pull.number,
        "state": "open" if pull.state == "open" else "closed",
        "title": pull.title,
        "body": pull.body,
        "html_url": f"http://forge.test/acme/fleet/pull/{pull.number}",
        "user": account(pull.author),
        "head": {"ref": pull.branch, "sha": pull.head, "label": f"{owner}:{pull.branch}", "repo": repo},
        "base": {"ref": pull.base, "sha": "0" * 40, "repo": {"id": 1, "full_name": "acme/fleet"}},
        "merged_at": stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_commit or None,
        "auto_merge": None
        if pull.auto_merge_by is None
        else {"enabled_by": account(pull.auto_merge_by), "merge_method": "squash"},
    }
    if whole:
        found |= {"merged": pull.state == "merged", "merged_by": account(pull.merged_by)}
    return found


def pulls_of(request: Request, commit: str) -> Answer:
    return 200, [_pull(pull, whole=False) for pull in request.forge.pulls_of(commit)]


def pull(request: Request, number: str) -> Answer:
    found = request.forge.pulls.get(int(number))
    return (404, {"message": "Not Found"}) if found is None else (200, _pull(found, whole=True))


def pulls(request: Request) -> Answer:
    rows = [p for p in request.forge.pulls.values() if p.state == "open"]
    if "head" in request.query:
        rows = [p for p in rows if f"acme:{p.branch}" == request.query["head"] and p.fork is None]
    return 200, [_pull(p, whole=False) for p in rows]


def open_pull(request: Request) -> Answer:
    number = request.forge.open(request.body["head"], request.user.login, request.body["base"])  # type: ignore[union-attr]
    made = request.forge.pulls[number]
    made.title, made.body = request.body["title"], request.body["body"]
    return 201, _pull(made, whole=True)


def reviews(request: Request, number: str) -> Answer:
    states = {"approve": "APPROVED", "reject": "CHANGES_REQUESTED", "comment": "COMMENTED"}
    return 200, [
        {
            "id": r.id,
            "user": account(r.by),
            "body": r.text,
            "state": "DISMISSED" if r.dismissed else states[r.state],
            "commit_id": r.commit,
            "submitted_at": stamp(r.at),
        }
        for r in request.forge.pulls[int(number)].reviews
    ]


def commits(request: Request, number: str) -> Answer:
    forge = request.forge
    return 200, [
        {
            "sha": oid,
            "author": account(forge.by_email(author)),
            "committer": account(forge.by_email(committer)),
            "commit": {
                "author": {"name": "x", "email": author},
                "committer": {"name": "x", "email": committer},
            },
        }
        for oid, author, committer in forge.commits_of(forge.pulls[int(number)])
    ]


def files(request: Request, number: str) -> Answer:
    paths = request.forge.changed(request.forge.pulls[int(number)])
    return 200, [{"sha": "1" * 40, "filename": path, "status": "modified"} for path in paths]


def contents(request: Request, path: str) -> Answer:
    oid = request.forge.blob(request.query["ref"], path)
    if oid is None:
        return 404, {"message": "Not Found"}
    return 200, {"type": "file", "name": path.rsplit("/", 1)[-1], "path": path, "sha": oid, "size": 1}


def activity(request: Request, owner: str) -> Answer:
    ref = request.query["ref"]
    return 200, [
        {
            "id": number,
            "node_id": "PSH_x",
            "before": push.before,
            "after": push.after,
            "ref": f"refs/heads/{push.branch}",
            "timestamp": stamp(push.at),
            "activity_type": push.kind,
            "actor": account(push.by),
        }
        for number, push in reversed(list(enumerate(request.forge.pushes)))
        if f"refs/heads/{push.branch}" == ref and (push.fork.login if push.fork else "acme") == owner
    ]


def compare(request: Request, before: str, after: str) -> Answer:
    push = next((p for p in request.forge.pushes if (p.before, p.after) == (before, after)), None)
    oids = [] if push is None else push.commits
    return 200, {"status": "ahead", "commits": [{"sha": oid} for oid in oids]}


def post_status(request: Request, commit: str) -> Answer:
    body = request.body
    row = {"commit": commit, "context": body["context"], "state": body["state"]}
    row |= {"description": body["description"], "target_url": body.get("target_url")}
    request.forge.statuses.append(row | {"id": len(request.forge.statuses) + 1})
    return 201, {"id": len(request.forge.statuses), "state": body["state"]}


def status(request: Request, commit: str) -> Answer:
    latest = {row["context"]: row for row in request.forge.statuses if row["commit"] == commit}
    return 200, {"state": "pending", "sha": commit, "statuses": list(latest.values())}


def comments(request: Request, number: str) -> Answer:
    return 200, [
        {
            "id": c.id,
            "body": c.body.replace("\n", "\r\n"),
            "user": account(c.by),
            "performed_via_github_app": None,
        }
        for c in request.forge.comments_of(int(number))
    ]


def post_comment(request: Request, number: str) -> Answer:
    made = request.forge.comment(int(number), request.user.login, request.body["body"])  # type: ignore[union-attr]
    return 201, {"id": made.id, "body": made.body}


def patch_comment(request: Request, id_: str) -> Answer:
    if int(id_) not in request.forge.comments:
        return 404, {"message": "Not Found"}
    request.forge.comments[int(id_)].body = request.body["body"]
    return 200, {"id": int(id_), "body": request.body["body"]}


def user(request: Request) -> Answer:
    return (200, account(request.user)) if request.user else (401, {"message": "Requires authentication"})


def rules(request: Request, branch: str) -> Answer:
    return 200, request.forge.protection.get(branch, {}).get("rules", [])


def protection(request: Request, branch: str) -> Answer:
    found = request.forge.protection.get(branch, {}).get("older")
    return (404, {"message": "Branch not protected"}) if found is None else (200, found)


ROUTES: tuple[str, Routes] = (
    "",
    [
        ("GET", rf"{_REPO}/commits/([0-9a-f]+)/pulls", pulls_of),
        ("GET", rf"{_REPO}/commits/([0-9a-f]+)/status", status),
        ("GET", rf"{_REPO}/pulls", pulls),
        ("POST", rf"{_REPO}/pulls", open_pull),
        ("GET", rf"{_REPO}/pulls/(\d+)", pull),
        ("GET", rf"{_REPO}/pulls/(\d+)/reviews", reviews),
        ("GET", rf"{_REPO}/pulls/(\d+)/commits", commits),
        ("GET", rf"{_REPO}/pulls/(\d+)/files", files),
        ("GET", rf"{_REPO}/contents/(.+)", contents),
        ("GET", r"/repos/([^/]+)/fleet/activity", activity),
        ("GET", rf"{_REPO}/compare/([0-9a-f]+)\.\.\.([0-9a-f]+)", compare),
        ("POST", rf"{_REPO}/statuses/([0-9a-f]+)", post_status),
        ("GET", rf"{_REPO}/issues/(\d+)/comments", comments),
        ("POST", rf"{_REPO}/issues/(\d+)/comments", post_comment),
        ("PATCH", rf"{_REPO}/issues/comments/(\d+)", patch_comment),
        ("GET", r"/user", user),
        ("GET", rf"{_REPO}/rules/branches/(.+)", rules),
        ("GET", rf"{_REPO}/branches/([^/]+)/protection", protection),
    ],
)
