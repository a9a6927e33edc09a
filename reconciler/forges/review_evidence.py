"""A forge's evidence of who made or merged a file's content on main, and who approved exactly that content.

Pure except for queries to the forge. The forge's faults pass through: then nothing is known, and nothing
counts. Everything is bound to content: a pull request vouches only for the files that it changes, and only
for their content at its head, however it was merged. Only people vouch and approve, never applications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.forges.forge_port import Account, Forge, Pull, Review
from reconciler.model.evidence import Voucher

NOBODY: Mapping[int, frozenset[str]] = {}


def forge_vouchers(
    forge: Forge, commit: str, path: str, blob_oid: str | None, branch: str = "main"
) -> tuple[Voucher, ...]:
    """Who vouches for that content of `path` (None: deleted) since `commit`, a first-parent step of `branch`.

    A pull request's author does for the head's content, if they pushed the head themselves: others may push
    to the same branch. The merger does for the merge's result in the files that it changes. Without a pull
    request it is the pusher of the commit.
    """
    pulls = _merged(forge, commit, branch)
    if not pulls:
        pusher = forge.pusher_of(branch, commit)
        # A merge is a push too, and forges may report the push first: queried again, they know both.
        pulls = _merged(forge, commit, branch)
        if not pulls:
            return _vouchers([pusher])
    found: list[Account | None] = []
    for pull in pulls:
        if path not in forge.changed_paths(pull.number):
            # A pull request proves nothing about files that it does not change, even if its head is older.
            continue
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

    Applies every rule except who is an admin: a person's latest review, approving the head whose content is
    on the branch, not dismissed, and not by the author, the last pusher or any author or committer of its
    commits. `addresses` are e-mail addresses by account, for commits whose account the forge does not know. A
    pull request with an unknown last pusher has no approvals.
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
        return  # no need to query the rest
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
