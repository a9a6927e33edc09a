"""The forge as the REST API of Gitea and Forgejo tells it."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.support.forge import Answer, Request, Routes
from tests.support.forgestate import PullRequest, User, stamp

_REPO = r"/repos/acme/fleet"


def account(user: User | None) -> dict[str, Any] | None:
    if user is None:
        return None
    id_ = -2 if user.is_bot and user.login != "egs-controller" else user.id
    return {"id": id_, "login": user.login, "username": user.login, "full_name": "", "email": user.email}


def _pull(pull: PullRequest) -> dict[str, Any]:
    owner = pull.fork.login if pull.fork else "acme"
    repo = None if pull.fork_is_gone else {"id": 7, "full_name": f"{owner}/fleet"}
    return {
        "id": 5000 + pull.number,
        "number": pull.number,
        "user": account(pull.author),
        "title": pull.title,
        "body": pull.body,
        "state": "open" if pull.state == "open" else "closed",
        "html_url": f"http://forge.test/acme/fleet/pulls/{pull.number}",
        "merged": pull.state == "merged",
        "merged_at": stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_commit or None,
        "merged_by": account(pull.merged_by),
        "head": {
            "label": pull.branch,
            "ref": pull.branch,
            "sha": pull.head,
            "repo_id": 7 if pull.fork else 1,
            "repo": repo,
        },
        "base": {"label": pull.base, "ref": pull.base, "sha": "0" * 40, "repo_id": 1},
    }


def repository(request: Request) -> Answer:
    detects = request.forge.detects_merges
    told = {} if detects is None else {"autodetect_manual_merge": detects}
    return 200, {"id": 1, "full_name": "acme/fleet", "default_branch": "main", **told}


def pull_of(request: Request, commit: str) -> Answer:
    found = [p for p in request.forge.pulls.values() if p.state == "merged" and p.merge_commit == commit]
    return (200, _pull(found[0])) if found else (404, {"message": "not found"})


def pull(request: Request, number: str) -> Answer:
    found = request.forge.pulls.get(int(number))
    return (404, {"message": "not found"}) if found is None else (200, _pull(found))


def pulls(request: Request) -> Answer:
    return 200, [_pull(p) for p in request.forge.pulls.values() if p.state == "open"]


def open_pull(request: Request) -> Answer:
    number = request.forge.open(request.body["head"], request.user.login, request.body["base"])  # type: ignore[union-attr]
    made = request.forge.pulls[number]
    made.title, made.body = request.body["title"], request.body["body"]
    return 201, _pull(made)


def timeline(request: Request, number: str) -> Answer:
    return 200, [
        {
            "id": row["id"],
            "type": row["type"],
            "user": account(row["by"]),
            "body": row["body"],
            "created_at": stamp(row["at"]),
        }
        for row in request.forge.pulls[int(number)].timeline
    ]


def feeds(request: Request, owner: str) -> Answer:
    return 200, [
        {
            "id": number,
            "op_type": "commit_repo",
            "act_user": account(push.by),
            "ref_name": f"refs/heads/{push.branch}",
            "content": json.dumps(
                {
                    "Commits": [{"Sha1": oid, "Message": "x"} for oid in push.commits[:5]],
                    "HeadCommit": {"Sha1": push.after},
                    "CompareURL": f"acme/fleet/compare/{push.before}...{push.after}",
                    "Len": len(push.commits),
                }
            ),
            "created": stamp(push.at),
        }
        for number, push in reversed(list(enumerate(request.forge.pushes)))
        if (push.fork.login if push.fork else "acme") == owner
    ]


def reviews(request: Request, number: str) -> Answer:
    states = {"approve": "APPROVED", "reject": "REQUEST_CHANGES", "comment": "COMMENT"}
    pull = request.forge.pulls[int(number)]
    return 200, [
        {
            "id": r.id,
            "user": account(r.by),
            "team": None,
            "state": states[r.state],
            "body": r.text,
            "commit_id": r.commit,
            "stale": r.commit != pull.head,
            "official": True,
            "dismissed": r.dismissed,
            "submitted_at": stamp(r.at),
        }
        for r in pull.reviews
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
    return 200, [{"filename": path, "status": "changed"} for path in paths]


def contents(request: Request, path: str) -> Answer:
    oid = request.forge.blob(request.query["ref"], path)
    if oid is None:
        return 404, {"message": "object does not exist"}
    return 200, {"type": "file", "name": path.rsplit("/", 1)[-1], "path": path, "sha": oid, "size": 1}


def post_status(request: Request, commit: str) -> Answer:
    body = request.body
    row = {"commit": commit, "context": body["context"], "state": body["state"]}
    row |= {"description": body["description"], "target_url": body["target_url"]}
    request.forge.statuses.append(row)
    return 201, {"id": len(request.forge.statuses), "status": body["state"]}


def statuses(request: Request, commit: str) -> Answer:
    return 200, [
        {
            "id": number,
            "context": row["context"],
            "status": row["state"],
            "description": row["description"],
            "target_url": row["target_url"],
        }
        for number, row in reversed(list(enumerate(request.forge.statuses)))
        if row["commit"] == commit
    ]


def comments(request: Request, number: str) -> Answer:
    rows = request.forge.comments_of(int(number))
    return 200, [{"id": c.id, "body": c.body.strip(), "user": account(c.by)} for c in rows]


def post_comment(request: Request, number: str) -> Answer:
    made = request.forge.comment(int(number), request.user.login, request.body["body"])  # type: ignore[union-attr]
    return 201, {"id": made.id, "body": made.body}


def patch_comment(request: Request, id_: str) -> Answer:
    if int(id_) not in request.forge.comments:
        return 404, {"message": "Not Found"}
    request.forge.comments[int(id_)].body = request.body["body"]
    return 200, {"id": int(id_), "body": request.body["body"]}


def me(request: Request) -> Answer:
    return (200, account(request.user)) if request.user else (401, {"message": "token is required"})


def protection(request: Request, branch: str) -> Answer:
    found = request.forge.protection.get(branch)
    return (404, {"message": "not found"}) if found is None else (200, found)


def compare(request: Request, before: str, after: str) -> Answer:
    push = next((p for p in request.forge.pushes if (p.before, p.after) == (before, after)), None)
    oids = [] if push is None else push.commits
    return 200, {"total_commits": len(oids), "commits": [{"sha": oid} for oid in oids]}


def make_file(request: Request, path: str) -> Answer:
    """Commit one file on a new branch."""
    text = base64.b64decode(request.body["content"])
    oid = request.forge.push(request.body["new_branch"], {path: text}, request.user.login)  # type: ignore[union-attr]
    return 201, {"content": {"path": path}, "commit": {"sha": oid}}


def merge(request: Request, number: str) -> Answer:
    request.forge.merge(int(number), request.user.login, request.body["Do"])  # type: ignore[union-attr]
    return 200, {}


ROUTES: tuple[str, Routes] = (
    "/api/v1",
    [
        ("GET", _REPO, repository),
        ("GET", rf"{_REPO}/commits/([0-9a-f]+)/pull", pull_of),
        ("GET", rf"{_REPO}/commits/([0-9a-f]+)/statuses", statuses),
        ("POST", rf"{_REPO}/statuses/([0-9a-f]+)", post_status),
        ("GET", rf"{_REPO}/pulls", pulls),
        ("POST", rf"{_REPO}/pulls", open_pull),
        ("GET", rf"{_REPO}/pulls/(\d+)", pull),
        ("GET", rf"{_REPO}/pulls/(\d+)/reviews", reviews),
        ("GET", rf"{_REPO}/pulls/(\d+)/commits", commits),
        ("GET", rf"{_REPO}/pulls/(\d+)/files", files),
        ("GET", rf"{_REPO}/issues/(\d+)/timeline", timeline),
        ("GET", r"/repos/([^/]+)/fleet/activities/feeds", feeds),
        ("GET", rf"{_REPO}/contents/(.+)", contents),
        ("POST", rf"{_REPO}/contents/(.+)", make_file),
        ("POST", rf"{_REPO}/pulls/(\d+)/merge", merge),
        ("GET", rf"{_REPO}/issues/(\d+)/comments", comments),
        ("POST", rf"{_REPO}/issues/(\d+)/comments", post_comment),
        ("PATCH", rf"{_REPO}/issues/comments/(\d+)", patch_comment),
        ("GET", rf"{_REPO}/compare/([0-9a-f]+)\.\.\.([0-9a-f]+)", compare),
        ("GET", r"/user", me),
        ("GET", rf"{_REPO}/branch_protections/([^/]+)", protection),
    ],
)
