"""Check one pull request in a repository that is there to be read: everything from commits to the answer.

For whoever has a store: the command in a clone or a CI job, the controller in its mirror, the hook of a Git server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.pulls.check import PullCheck, check_pull
from reconciler.pulls.judging import Vouchers, changes_of, judge
from reconciler.pulls.looking import Sights, look
from reconciler.pulls.merging import Merged, merged
from reconciler.store.port import Store
from reconciler.trust.authority import Authority, authority_of
from reconciler.trust.keyring import Keyring
from reconciler.trust.model import Verifier, Voucher
from reconciler.trust.verifying import SystemVerifier
from reconciler.trust.vouching import Behind, Signers, Step, file_of
from schemas.approval import NAMESPACE, Approval, statement

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Asked:
    """One pull request, and what is known of who stands behind it."""

    base: str  # commit of main
    head: str
    status: str | None  # commit of the status branch that counts; None: there is none
    vouchers: Vouchers = field(default_factory=dict)
    """By path; "" is of whoever stands behind all of it. Empty: nobody is known, and the controller judges."""
    shown: str | None = None  # what the one who acts is called where the project does not know them
    keyring: Keyring = field(default_factory=Keyring)
    verifier: Verifier | None = None
    """With it, where nobody is known otherwise, signatures of the branch's commits show who stands behind each file."""


def checked(store: Store, asked: Asked, now: datetime) -> PullCheck:
    """UserError `NoCommonHistory`, `TooManyFiles` or `NoProject`: then nothing can be said; and the store's faults."""
    merge = merged(store, asked.base, asked.head)
    sights = look(store, merge, asked.status, now)
    authority = authority_of(sights.base.repository.documents, asked.keyring)
    changes = changes_of(sights, merge, _approvers(sights, merge, asked, authority, now))
    vouchers = asked.vouchers or _signed(store, merge, asked, now)
    judged = judge(changes, vouchers, authority, asked.shown, now)
    return check_pull(sights, merge, judged, now)


def _approvers(
    sights: Sights, merge: Merged, asked: Asked, authority: Authority, now: datetime
) -> dict[str, str]:
    """Handles of the admins whose own signatures are in the approvals that it brings, by path."""
    verifier, found = asked.verifier or SystemVerifier(), {}
    for path in merge.changes:
        document = sights.head.repository.documents.get(path)
        if isinstance(document, Approval) and document.spec.signature is not None:
            message = statement(sights.base.wanted.project_name, document)
            key = verifier.key_of(NAMESPACE, message, document.spec.signature)
            actor = None if key is None else authority.actor(Voucher("signature", key=key), now, NAMESPACE)
            found[path] = "" if actor is None else actor.handle
    return found


def _signed(store: Store, merge: Merged, asked: Asked, now: datetime) -> Vouchers:
    """Who signed the commits that brought exactly the content of each file."""
    if asked.verifier is None or merge.fork is None:
        return {}
    signers, step = Signers(asked.verifier), Step(merge.fork, store.commit(merge.head), is_line=False)
    behind = Behind(store, step, MAIN, lambda commit: signers.vouchers(commit, asked.keyring, now))
    files = {path: file_of(entry.oid, entry.mode) for path, entry in merge.changes.items()}
    found = {path: behind.authors(path, file) for path, file in files.items()}
    return {path: vouchers for path, vouchers in found.items() if vouchers}
