"""A change that waits for somebody to merge it: a branch below requests/, and on a forge the pull request for it.

The branch's name ends in the caller's idempotency key (or the request's id), so that the same asked again finds it.

Held by tests/portal/test_proposals.py.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from portal.errors import ApiError, conflict, forbidden, unavailable
from portal.idempotency import made_in
from portal.sorting import Step
from portal.writing import Landed
from reconciler.commands.forging import page_to_open
from reconciler.commands.proposing import FOLDER
from reconciler.forges.port import Forge
from reconciler.settings import ForgeAddress
from reconciler.store.port import Outcome, Store, chain
from schemas.errors import EgsError

log = logging.getLogger(__name__)

_TAIL = "\n\n_Asked for through the API by {who}. The check says whether it is valid, and who has to approve it._\n"


@dataclass(frozen=True, slots=True)
class Proposals:
    """Pushes branches; one owner. `opened` may be called from another thread."""

    store: Store
    main: str
    address: ForgeAddress | None
    forge: Callable[[ForgeAddress], Forge]

    def push(self, step: Step, tip: str) -> Landed:
        """The branch, pushed or there already. Raises ApiError, or a Fault of the store."""
        branch = branch_of(step)
        there = self.store.fetch([branch]).get(branch)
        if there is not None:
            return self._again(step, branch, there)
        (oid,) = self.store.write_all(chain(tip, [step.draft]))
        match self.store.push(branch, oid, None):
            case Outcome.COMMITTED:
                return Landed("branch", oid, branch, id=step.waiting.asked.id)
            case Outcome.CONFLICT:
                return self.push(step, tip)
            case Outcome.REFUSED:
                text = f"the server refused the branch {branch}; let the portal push branches below {FOLDER}"
                raise ApiError(forbidden("").status, "PushRefused", text)
        raise unavailable(f"the server did not answer whether the branch {branch} arrived; ask again")

    def _again(self, step: Step, branch: str, oid: str) -> Landed:
        made = made_in(self.store.commit(oid))
        asked = step.waiting.asked.print
        if made is None or (asked and step.waiting.key and made.print != asked):
            raise conflict(
                f"the branch {branch} holds another change under this Idempotency-Key; take a new key",
                "IdempotencyKeyReused",
            )
        return Landed("branch", oid, branch, id=made.id)

    def opened(self, step: Step, landed: Landed) -> Landed:
        """With its pull request, where there is a forge; a branch that only waits for one where it does not answer."""
        if self.address is None:
            return landed
        page = page_to_open(self.address, landed.branch)
        if self.address.token is None:
            return replace(landed, url=page)
        title = step.draft.message.split("\n", 1)[0]
        try:
            pull = self.forge(self.address).open_pull(landed.branch, self.main, title, _text(step))
        except EgsError as error:
            log.warning("pull request not opened branch=%s message=%s", landed.branch, error)
            return replace(landed, url=page)
        return replace(landed, way="pull-request", url=pull.url)


def branch_of(step: Step) -> str:
    """Of the subject and of what tells the change from others like it."""
    subject = step.draft.message.split("\n", 1)[0]
    slug = re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:60].strip("-")
    own = (step.waiting.key or step.waiting.asked.id)[:12]
    return f"{FOLDER}{slug}-{own}" if slug else f"{FOLDER}{own}"


def _text(step: Step) -> str:
    lines = [
        f"- `{path}`{' is removed' if data is None else ''}" for path, data in sorted(step.changes.items())
    ]
    return "\n".join(lines) + _TAIL.format(who=f"`{step.waiting.wish.caller.email}`")
