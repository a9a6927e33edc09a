"""The pull request of a CI job and its author, as the forge tells the job. Nothing is queried.

GitHub, Gitea and Forgejo write the event to a file; GitLab sets variables. The account's number counts, its
name is only shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 4_000_000
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+#=-]{0,200}")


@dataclass(frozen=True, slots=True)
class Event:
    """What is known of the pull request; empty and 0: not given."""

    base_branch: str = ""
    base: str = ""  # its commit at the time of the event; the branch takes precedence if present
    head: str = ""
    login: str = ""
    account: int = 0


def event_of(environment: Mapping[str, str]) -> Event | None:
    """The pull request of this job; None outside CI, and for jobs without one."""
    if environment.get("GITHUB_EVENT_PATH"):
        return _from_file(Path(environment["GITHUB_EVENT_PATH"]))
    if environment.get("CI_MERGE_REQUEST_IID"):
        return _from_gitlab(environment)
    return None


def _from_file(file: Path) -> Event | None:
    try:
        with file.open("rb") as opened:
            content = json.loads(opened.read(MOST_BYTES))
    except (OSError, ValueError):
        return None
    pull = _mapping(content, "pull_request")
    if pull:
        user, base, head = _mapping(pull, "user"), _mapping(pull, "base"), _mapping(pull, "head")
        branch, oids = _text(base, "ref"), (_text(base, "sha"), _text(head, "sha"))
        return _event(branch, oids, _text(user, "login"), _number(user.get("id")))
    group = _mapping(content, "merge_group")
    if group:
        oids = (_text(group, "base_sha"), _text(group, "head_sha"))
        return _event(_text(group, "base_ref").removeprefix("refs/heads/"), oids, "", 0)
    return None


def _from_gitlab(environment: Mapping[str, str]) -> Event:
    given = environment.get
    head = given("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or given("CI_COMMIT_SHA") or ""
    oids = (given("CI_MERGE_REQUEST_DIFF_BASE_SHA") or "", head)
    branch = given("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or ""
    return _event(branch, oids, given("GITLAB_USER_LOGIN") or "", _number(given("GITLAB_USER_ID")))


def _event(branch: str, oids: tuple[str, str], login: str, account: int) -> Event:
    base, head = (oid if _OID.fullmatch(oid) else "" for oid in oids)
    is_branch = _BRANCH.fullmatch(branch) is not None and ".." not in branch
    return Event(branch if is_branch else "", base, head, login, account)


def _mapping(content: Any, name: str) -> Mapping[str, Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def _text(content: Mapping[str, Any], name: str) -> str:
    found = content.get(name)
    return found if isinstance(found, str) else ""


def _number(value: object) -> int:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else 0
