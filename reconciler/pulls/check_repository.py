"""Checks one pull request in a readable repository, from commits to the result.

Used by the command in a clone or a CI job, the controller on its mirror, and the hook of a Git server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.model.evidence import Verifier, Voucher
from reconciler.pulls.before_and_after import Sights, look
from reconciler.pulls.change_rights import Vouchers, changes_of, judge
from reconciler.pulls.check import PullCheck, check_pull
from reconciler.pulls.merged_tree import Merged, merged
from reconciler.store.store_port import History, Store
from reconciler.trust.authority import Authority, authority_of
from reconciler.trust.keyring import Keyring
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.vouchers import Behind, Signers, Step, file_of
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.rules.problems import Problem

MAIN = "main"
MOST_SIGNATURES = 50
"""Signed approvals of one pull request that are verified: each may start a program."""


@dataclass(frozen=True, slots=True)
class PullToCheck:
    """One pull request, and the evidence about its author."""

    base: str  # commit of main
    head: str
    status: str | None  # commit of the status branch that counts; None: there is none
    vouchers: Vouchers = field(default_factory=dict)
    """By path; "" is for all paths. Empty: the author is unknown, and the controller judges later."""
    shown: str | None = None  # the author's name if the project does not know them
    keyring: Keyring = field(default_factory=Keyring)
    verifier: Verifier | None = None
    """Identifies the author of each file by the branch's signatures, if nothing else identifies the author."""


def checked(store: Store, asked: PullToCheck, now: datetime) -> PullCheck:
    """UserErrors `NoCommonHistory`, `SeveralMergeBases`, `TooManyFiles` and `NoProject`: there is no result."""
    merge = merged(store, asked.base, asked.head)
    return checked_merge(
        store, merge, replace(asked, vouchers=asked.vouchers or _signed(store, merge, asked, now)), now
    )[0]


def checked_merge(
    store: History, merge: Merged, asked: PullToCheck, now: datetime
) -> tuple[PullCheck, Sights]:
    """The check of a merge, and both sides. Of `asked` the author's evidence is used, without signatures of commits."""
    sights = look(store, merge, asked.status, now)
    authority = authority_of(sights.base.repository.documents, asked.keyring)
    signed, unread = _signed_approvals(sights, merge)
    approvers = _approvers(signed, sights.base.wanted.project_name, asked, authority, now)
    changes = (c for c in changes_of(sights, merge, approvers) if c.path not in unread)
    judged = judge(changes, asked.vouchers, authority, asked.shown, now)
    check = check_pull(sights, merge, judged, now)
    return replace(check, problems=tuple(sorted({*check.problems, *map(_not_looked_at, unread)}))), sights


def _signed_approvals(sights: Sights, merge: Merged) -> tuple[dict[str, Approval], tuple[str, ...]]:
    """Signed approvals that the pull request adds, by path; and those beyond the limit."""
    documents = ((path, sights.head.repository.documents.get(path)) for path in sorted(merge.changes))
    found = {p: d for p, d in documents if isinstance(d, Approval) and d.spec.signature is not None}
    paths = list(found)
    return {path: found[path] for path in paths[:MOST_SIGNATURES]}, tuple(paths[MOST_SIGNATURES:])


def _not_looked_at(path: str) -> Problem:
    text = f"the pull request has more than {MOST_SIGNATURES} signed approvals, and this one was not checked"
    return Problem(path, 1, 1, "TooManyApprovals", "error", text, "split the change")


def _approvers(
    approvals: Mapping[str, Approval], project: str, asked: PullToCheck, authority: Authority, now: datetime
) -> dict[str, str]:
    """Handles of the admins whose valid signatures are in these approvals, by path."""
    verifier, found = asked.verifier or SystemVerifier(), {}
    for path, approval in approvals.items():
        key = verifier.key_of(NAMESPACE, statement(project, approval), approval.spec.signature or "")
        actor = None if key is None else authority.actor(Voucher("signature", key=key), now, NAMESPACE)
        found[path] = "" if actor is None else actor.handle
    return found


def _signed(store: Store, merge: Merged, asked: PullToCheck, now: datetime) -> Vouchers:
    """Signers of the commits that brought exactly each file's content."""
    if asked.verifier is None:
        return {}
    signers, step = Signers(asked.verifier), Step(merge.fork, store.commit(merge.head), is_line=False)
    behind = Behind(store, step, MAIN, lambda commit: signers.vouchers(commit, asked.keyring, now))
    files = {path: file_of(entry.oid, entry.mode) for path, entry in merge.changes.items()}
    found = {path: behind.authors(path, file) for path, file in files.items()}
    return {path: vouchers for path, vouchers in found.items() if vouchers}
