"""Proposes a change: a branch with one commit, and on a forge the pull request for it."""

from __future__ import annotations

import re
from dataclasses import replace

from egs.commands import output
from reconciler.changes.change import Change, Submitted
from reconciler.changes.push import refused_push, unanswered
from reconciler.forges.forge_port import Pull
from reconciler.forges.open_forge import open_forge
from reconciler.settings import ForgeAddress
from reconciler.sources.command_errors import NotAllowed
from reconciler.sources.forge_choice import forge_address, page_to_open
from reconciler.sources.source import MAIN, PROPOSED, Changes, Remote
from reconciler.store.store_port import Outcome
from schemas.errors import Fault

MOST_NAMES = 50
"""Number of branches with the same name (numbered from the second on) before cleaning up is required."""

_TAIL = (
    "\n\n_Opened with `egs`. The check shows whether it is valid, who must approve it, and which starts "
    "it moves._\n"
)


def propose(remote: Remote, signed: Submitted) -> Submitted:
    """Pushes the commit as a branch of its own, and opens a pull request if there is a forge."""
    branch = _pushed(remote, signed)
    done = replace(signed, branch=branch)
    address = forge_address(remote.address)
    if address is None:
        return done
    if address.token is None:
        return replace(done, link=page_to_open(address, branch))
    return replace(done, pull=_opened(address, done))


def _pushed(remote: Remote, signed: Submitted) -> str:
    """The first free branch name; the other branches are changes of other people waiting for a merge."""
    name = PROPOSED + (signed.change.branch or slug(signed.change.subject))
    for number in range(1, MOST_NAMES + 1):
        branch = name if number == 1 else f"{name}-{number}"
        outcome = remote.push_new(branch, signed.commit)
        if outcome is Outcome.COMMITTED:
            return branch
        if outcome is Outcome.REFUSED:
            to_do = f"ask for the right to push branches below {PROPOSED}, or work in a fork"
            raise NotAllowed(refused_push(branch, to_do, remote.refusal()), "PushFailed")
        if outcome is Outcome.UNKNOWN:
            raise Fault(unanswered(f"the branch {branch}", "check before trying again"))
    raise NotAllowed(f"there are {MOST_NAMES} branches like {name} already; delete those no longer needed")


def slug(subject: str) -> str:
    """The subject as the name of a branch; empty if nothing of it can be used."""
    return re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:60].strip("-")


def _opened(address: ForgeAddress, done: Submitted) -> Pull:
    try:
        return open_forge(address).open_pull(done.branch, MAIN, done.change.subject, text_of(done))
    except Fault as error:
        where = page_to_open(address, done.branch)
        raise Fault(
            f"the branch {done.branch} is pushed, but opening the pull request failed: {error}; open it at {where}",
            error.reason,
        ) from error


def text_of(done: Submitted) -> str:
    """The pull request's text: the change's own description, or the changed files."""
    change: Change = done.change
    if change.text is not None:
        return change.text(done) + _TAIL
    return listed(change.changes) + _TAIL


def listed(changes: Changes) -> str:
    """The changed files, for the text of a pull request."""
    lines = (f"- `{path}`{' is removed' if data is None else ''}" for path, data in sorted(changes.items()))
    return "\n".join(lines)


def report_branch(done: Submitted) -> None:
    """Prints where the change waits for a merge, and the next step."""
    subject = done.change.subject
    if done.pull is not None:
        output.note(f"{subject}: opened pull request #{done.pull.number}, {done.pull.url}")
        return
    output.note(f"{subject}: pushed as branch {done.branch}; it counts once it is merged into {MAIN}")
    if done.link:
        output.note(f"next: open a pull request at {done.link}")
    else:
        # If main is verified, a signed merge approves the change.
        committed = done.before.committed
        signs = " -S" if committed is not None and committed.trust is not None else ""
        output.note(
            f"next: a person with the right to merge runs: git fetch origin {done.branch} && git merge --no-ff{signs} "
            "FETCH_HEAD && git push"
        )
