"""What a forge shows of who stands behind a file's content on main, and of who approved exactly that content.

Pure but for the questions to the forge. The forge's faults go through: then nothing is known, and nothing counts.
Everything is bound to content: a pull request vouches only for the files that it changes, and only for what they
hold at its head, however it was merged. Only persons vouch and approve, never applications.

Held by tests/reconciler/forges/test_review_evidence.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.forges.forge_port import Account, Forge, Pull, Review
from reconciler.model.evidence import Voucher

NOBODY: Mapping[int, frozenset[str]] = {}


def forge_vouchers(
    forge: Forge, commit: str, path: str, blob_oid: str | None, branch: str = "main"
) -> tuple[Voucher, ...]:
    """Who stands behind `path` having that content (None: being gone) since `commit`, a first-parent step of `branch`.

    A pull request's author does for what its head holds, as long as they pushed the head themselves: others may push
    to the same branch. Whoever had it merged does for what the merge made of the files that it changes. Without a
    pull request it is whoever pushed the commit.
    """
    pulls = _merged(forge, commit, branch)
    if not pulls:
        pusher = forge.pusher_of(branch, commit)
        # A merge is a push too, and forges may tell of that first: asked again, they know of both.
        pulls = _merged(forge, commit, branch)
        if not pulls:
            return _vouchers([pusher])
    found: list[Account | None] = []
    for pull in pulls:
        if path not in forge.changed_paths(pull.number):
            continue  # what a pull request does not change it says nothing about, also where its head is older
        at_head = forge.blob_at(pull.head, path) == blob_oid
        if at_head and pull.last_pusher is not None and pull.last_pusher.id == pull.author.id:
            found.append(pull.author)
        if at_head or pull.merge_commit == commit:
            found.append(pull.merged_by)
    return _vouchers(found)


def approving(
    forge: Forge,
    commit: str,
    path: str,
    blob_oid: str,
    branch: str = "main",
    *,
    addresses: Mapping[int, frozenset[str]] = NOBODY,
) -> tuple[tuple[Review, Pull], ...]:
    """Reviews that approve exactly this content of `path`, brought to `branch` by `commit`.

    Every rule but who is an admin: the latest word of a person, an approval of the very head whose content is on the
    branch, not dismissed, and not of the author, of the last pusher or of anybody who wrote or committed a commit of
    it. `addresses` are e-mail addresses by account, for commits whose account the forge does not know. A pull request
    whose last pusher the forge does not tell has no approvals.
    """
    return tuple(
        (review, pull)
        for pull in _merged(forge, commit, branch)
        if path in forge.changed_paths(pull.number) and forge.blob_at(pull.head, path) == blob_oid
        for review in _independent(forge, pull, addresses)
    )


def _independent(forge: Forge, pull: Pull, addresses: Mapping[int, frozenset[str]]) -> Iterator[Review]:
    if pull.last_pusher is None:
        return
    approvals = [review for review in forge.reviews(pull.number) if _approves(review, pull)]
    if not approvals:
        return  # the rest need not be asked
    committers = forge.committers(pull.number)
    involved = {pull.author.id, pull.last_pusher.id, *(c.account for c in committers)}
    emails = {c.email.lower() for c in committers}
    for review in approvals:
        own = {address.lower() for address in addresses.get(review.by.id, frozenset())}
        if review.by.id not in involved and not own & emails:
            yield review


def _approves(review: Review, pull: Pull) -> bool:
    return (
        review.decision == "approve"
        and not review.is_dismissed
        and _is_somebody(review.by)
        and review.commit == pull.head
        and pull.head != ""
    )


def _merged(forge: Forge, commit: str, branch: str) -> list[Pull]:
    """Pull requests that brought the commit to the branch."""
    return [p for p in forge.pulls_of(commit) if p.state == "merged" and p.base_branch == branch]


def _is_somebody(account: Account) -> bool:
    return account.is_person and account.id > 0


def _vouchers(accounts: list[Account | None]) -> tuple[Voucher, ...]:
    ids = dict.fromkeys(account.id for account in accounts if account is not None and _is_somebody(account))
    return tuple(Voucher("forge", account=id_) for id_ in ids)
