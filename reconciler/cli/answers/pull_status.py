"""`egs pr status`: open pull requests, each checked now: effects, needed and given approvals, what is stale.

On plain Git, branches below requests/ stand for them. Held by tests/reconciler/cli/test_pullstatus.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from egs.commands import output
from egs.commands.output import Form
from reconciler.forges.forge_port import Forge, Pull, Review
from reconciler.forges.open_forge import open_forge
from reconciler.model.evidence import Voucher
from reconciler.pulls import check_sentences
from reconciler.pulls.check import PullCheck
from reconciler.pulls.check_repository import PullToCheck, checked
from reconciler.queries.state import clock
from reconciler.sources.bare_repository import Bare
from reconciler.sources.believed_keys import trust_folder
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.forge_choice import forge_address
from reconciler.sources.open_source import opened
from reconciler.sources.source import PROPOSED
from reconciler.trust.keyring import read_keyring
from reconciler.trust.signature_check import SystemVerifier
from schemas.errors import UserError

_UNREADABLE = frozenset({"NoCommonHistory", "TooManyFiles", "NoProject"})
"""Reasons for which a branch cannot be checked; the reason is then its summary."""
_GOOD = ("Good to merge", "Valid")
"""How good verdicts begin."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that asks to be merged: a pull request, or a branch on plain Git."""

    name: str  # number, or branch
    title: str
    author: str
    head: str
    account: int = 0  # of the author, on the forge; 0: there is none
    url: str = ""
    state: str = "open"
    reviews: tuple[Review, ...] = ()


Row = dict[str, Any]


def show_pulls(repo: str | None, name: str | None, now: str | None, form: Form) -> None:
    with opened(repo) as source:
        remote = source.upstream()
        if not isinstance(remote, Bare):
            raise WrongUse("this folder has no repository with pull requests; name one with --repo PATH|URL")
        moment = clock(now, source)
        rows = [_row(remote, proposal, moment) for proposal in _proposals(remote, name)]
    if form is not Form.TABLE:
        output.data(rows, form)
        return
    head = ("PULL REQUEST", "TITLE", "AUTHOR", "CHECK", "WAITS FOR", "APPROVED BY", "STALE")
    cells = [
        (
            row["name"],
            row["title"],
            row["author"],
            row["summary"],
            [need["request"] for need in row["needs"]],
            row["approvedBy"],
            _stale(row),
        )
        for row in rows
    ]
    output.table(head, cells, "no pull request is open")


def _stale(row: Row) -> str | None:
    """Approvals of an older head, and how far main moved."""
    old = [f"main moved by {row['behind']}"] if row["behind"] else []
    if row["staleApprovals"]:
        old.append(f"approvals of an older head by {', '.join(row['staleApprovals'])}")
    return "; ".join(old) or None


def _proposals(remote: Bare, name: str | None) -> Iterable[Proposal]:
    address = forge_address(remote.address)
    if address is None:
        yield from _branches(remote, name)
        return
    forge = open_forge(address)
    if name is not None and not name.isdigit():
        raise WrongUse(f"{name} is no pull request; on a forge name it by its number")
    pulls = forge.open_pulls() if name is None else (forge.pull(int(name)),)
    heads = remote.store.fetch_heads([pull.head_ref for pull in pulls if pull.head_ref])
    for pull in pulls:
        if pull.head_ref in heads or pull.state != "open":
            yield _of_pull(forge, pull)


def _of_pull(forge: Forge, pull: Pull) -> Proposal:
    reviews = tuple(forge.reviews(pull.number))
    author = pull.author
    return Proposal(
        str(pull.number), pull.title, author.login, pull.head, author.id, pull.url, pull.state, reviews
    )


def _branches(remote: Bare, name: str | None) -> Iterable[Proposal]:
    found = remote.store.fetch([f"{PROPOSED}*"])
    heads = {branch: oid for branch, oid in found.items() if branch.startswith(PROPOSED)}
    wanted = name if name is None or name.startswith(PROPOSED) else PROPOSED + name
    if wanted is not None and wanted not in heads:
        raise NotFound("branch", wanted, heads)
    main = remote.commit_of(None)
    for branch, oid in sorted(heads.items()):
        if wanted in (None, branch):
            commit = remote.store.commit(oid)
            state = "merged" if remote.store.is_ancestor(oid, main) else "open"
            if state == "open" or wanted is not None:
                yield Proposal(branch, commit.message.splitlines()[0], commit.author.email, oid, state=state)


def _row(remote: Bare, proposal: Proposal, now: datetime) -> Row:
    check = None if proposal.state != "open" else _checked(remote, proposal, now)
    row: Row = {
        "name": proposal.name,
        "title": proposal.title,
        "author": proposal.author,
        "url": proposal.url or None,
        "state": proposal.state,
        "head": proposal.head,
        "verdict": None,
        "judged": None,
        "summary": f"is {proposal.state}",
        "needs": [],
        "behind": 0,
        **_approvals(proposal),
    }
    if isinstance(check, str):
        return row | {"verdict": "refused", "summary": check}
    return row if check is None else row | _said(check)


def _checked(remote: Bare, proposal: Proposal, now: datetime) -> PullCheck | str:
    """The check now, with the acting person as in `egs check-pr`; or a sentence that explains why there is none."""
    status, folder = remote.status(), trust_folder()
    vouchers = {"": (Voucher("forge", account=proposal.account),)} if proposal.account else {}
    asked = PullToCheck(
        remote.commit_of(None),
        proposal.head,
        None if status is None else status[1],
        vouchers,
        proposal.author if vouchers else None,
        read_keyring(folder),
        SystemVerifier(folder),
    )
    try:
        return checked(remote.store, asked, now)
    except UserError as error:
        if error.reason not in _UNREADABLE:
            raise
        return str(error)


def _said(check: PullCheck) -> Row:
    needs = [
        {
            "request": need.key,
            "rule": need.rule,
            "why": need.why,
            "admins": list(need.admins),
            "count": need.count,
        }
        for need in check.needs
    ]
    return {
        "verdict": check.verdict,
        "judged": check.judged.actor,
        "summary": _summary(check),
        "needs": needs,
        "behind": check.stamps.behind,
    }


def _summary(check: PullCheck) -> str:
    """The verdict in one line; of an unknown author's change it does not say that it may be merged."""
    text = check_sentences.description(check)
    if check.judged.actor is not None or not check.judged.may:
        return text
    begin = next((begin for begin in _GOOD if text.startswith(begin)), None)
    return text if begin is None else f"Valid, but who may do it is not judged here{text.removeprefix(begin)}"


def _approvals(proposal: Proposal) -> Row:
    """Who approved the present head, and who an older one, by their names on the forge."""
    given = [r for r in proposal.reviews if r.decision == "approve" and not r.is_dismissed]
    return {
        "approvedBy": sorted({r.by.login for r in given if r.commit == proposal.head}),
        "staleApprovals": sorted({r.by.login for r in given if r.commit != proposal.head}),
    }
