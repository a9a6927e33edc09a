"""Undo a commit of main as a proposal, after its effect was shown. `reconciler.changes.undo` makes the change.

Held by tests/portal/test_undo.py: what is filed is what was shown, and no one undoes what they may not see.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from portal.http.context import Changed, Wire, example, optional
from portal.http.errors import conflict, not_found
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.past.blame import may_see_file
from portal.views.view import View
from portal.views.what_if import WhatIf, what_if
from portal.writes.proposed_files import ProposedTree
from portal.writes.write_request import Changes, Tree
from reconciler.changes.undo import Undo, commit_on, touched, undo
from reconciler.changes.undo_command import check_leases, shown
from reconciler.sources.command_errors import NotAllowed, NotFound
from reconciler.store.store_port import Commit, Store


class UndoneFile(Wire):
    """One file that the undo changes."""

    path: str
    change: str = Field(description="changed, restored or removed.")
    fields: list[str] = Field(description="Fields that get their earlier values.")


class UndoShown(Wire):
    """What taking a commit back would do."""

    undoes: str = Field(description="The commit of main.")
    subject: str
    by: str = Field(description="Address of its author.")
    files: list[UndoneFile]
    left: list[str] = Field(description="Changed files that are no documents, and stay as they are.")
    digest: str = Field(
        description="Of this change; give it to POST, so that what is filed is what was shown."
    )
    effect: WhatIf


class UndoAsk(Wire):
    """Which commit to take back."""

    model_config = example({"commit": "8d5f0a1c6b7e", "digest": "0c4e8f2a6b1d3c5e7f9a8b6c4d2e0f1a"})

    commit: str = Field(
        min_length=7, max_length=64, description="A commit of main, or at least its first 7 characters."
    )
    digest: str = optional(
        "Of what `GET undo` showed; 409 if the change would be another one now.", max_length=64
    )


class UndoProposed(Wire):
    """The undo, proposed for merging."""

    undoes: str
    change: Changed


def commit_of(store: Store, view: View, caller: Caller, name: str) -> Commit:
    """The commit, if the caller may see every file that it changed. ApiError 404, and 409 for the first commit."""
    try:
        commit = commit_on(store, view.main, name)
        paths = touched(store, commit)
    except NotFound as error:
        raise not_found("commit of main", name) from error
    except NotAllowed as error:
        raise conflict(str(error)) from error
    if not all(may_see_file(view, caller, path) for path in paths):
        raise not_found("commit of main", name)
    return commit


def made(store: Store, view: View, tree: Tree, commit: Commit) -> Undo:
    """The change on these files. ApiError 409: a field changed again since, or a request has its nodes."""
    try:
        found = undo(store, commit, tree.read)
        check_leases(found, view.state)
    except NotAllowed as error:
        raise conflict(str(error)) from error
    return found


def undo_shown(store: Store, view: View, caller: Caller, name: str, now: datetime) -> UndoShown:
    """What it would do, to whom. Costs a plan or two. ApiError 403, 404, 409."""
    commit = commit_of(store, view, caller, name)
    found = made(store, view, ProposedTree(view, store), commit)
    row = shown(found) | {"subject": Redactor(caller, view).text(shown(found)["subject"])}
    effect = what_if(view, store, caller, found.changes, now)
    return UndoShown.model_validate({**row, "digest": found.digest, "effect": effect})


def undo_changes(store: Store, view: View, tree: Tree, commit: Commit, digest: str | None) -> Changes:
    """The files to propose. ApiError 409: not what was shown."""
    found = made(store, view, tree, commit)
    if digest and digest != found.digest:
        raise conflict(
            f"undoing {commit.oid[:12]} would now change something other than what was shown; look again"
        )
    return found.changes
