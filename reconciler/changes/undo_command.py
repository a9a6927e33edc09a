"""`egs undo` on a repository: shows what taking a commit back does to others, then proposes it."""

from __future__ import annotations

from functools import partial
from typing import Any

from reconciler.changes.change import Change, Means, Submitted
from reconciler.changes.publish import publish
from reconciler.changes.reinstate import file_versions
from reconciler.changes.undo import Undo, commit_on, subject_of, undo
from reconciler.queries.plans import planned
from reconciler.queries.state import State, clock
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING


def undone(means: Means, commit: str, now: str | None, *, is_trial: bool) -> dict[str, Any]:
    """The change with the requests of others that it moves; a trial writes nothing. Raises NotAllowed, NotFound."""
    with opened(means.repo) as given:
        source = given.upstream() if given.is_folder else given
        if source is None:
            raise WrongUse("a folder without a remote has no history; name a repository with --repo")
        found: list[Undo] = []

        def build(state: State, base: str) -> Change:
            made = _made(source, state, base, commit)
            found[:] = [made]
            return Change(made.changes, subject_of(made.commit), f"undo-{made.commit.oid[:12]}")

        tried = publish(source, means, build, now, is_trial=True)
        moves = _moves(source, now, tried)
        done = tried if is_trial else publish(source, means, build, now)
    return {**shown(found[-1]), "moves": moves, **_where(done)}


def _made(source: Source, state: State, base: str, commit: str) -> Undo:
    versions = partial(file_versions, source, state, base)
    made = undo(source.store, commit_on(source.store, base, commit), lambda path: versions(path).data)
    check_leases(made, state)
    return made


def check_leases(made: Undo, state: State) -> None:
    """Raises NotAllowed if a file would go whose request has nodes: that would not end it."""
    for step in made.steps:
        if step.data is not None or "/gprs/" not in step.path:
            continue
        key = step.path.removeprefix("slices/").removesuffix(".yaml").replace("/gprs/", "/")
        status = state.facts.requests.get(key)
        if status is not None and status.phase in HOLDING:
            raise NotAllowed(f"{key} is {status.phase}; release it instead, with `egs gpr release {key}`")


def shown(made: Undo) -> dict[str, Any]:
    """The change as data, without its effect."""
    commit = made.commit
    return {
        "undoes": commit.oid,
        "subject": commit.message.partition("\n")[0],
        "by": commit.author.email,
        "files": [
            {"path": s.path, "change": _word(s.data, s.fields), "fields": list(s.fields)} for s in made.steps
        ],
        "left": list(made.left),
    }


def _word(data: bytes | None, fields: tuple[str, ...]) -> str:
    return "removed" if data is None else "changed" if fields else "restored"


def _moves(source: Source, now: str | None, tried: Submitted) -> list[dict[str, Any]]:
    own = {path for path in tried.change.changes if "/gprs/" in path}
    rows = planned(source, clock(now, source), tried.commit, tried.base).json()["changes"]
    return [row for row in rows if gpr_path(row["slice"], row["name"]) not in own]


def _where(done: Submitted) -> dict[str, Any]:
    pull = None if done.pull is None else {"number": done.pull.number, "url": done.pull.url}
    return {"commit": done.shown, "branch": done.branch or None, "pullRequest": pull}
