"""Changes proposed for merging: a branch below requests/, and on a forge a pull request for it.

The branch's name ends in the idempotency key (or the request id), so that a repeated call finds it. A change that an
open branch proposes already is not proposed again: the same caller gets that branch, another caller a refusal that
names it. A branch is open for a path while main has not changed that path since the branch was made.

Held by tests/portal/test_budget.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from portal.http.errors import ApiError, bad_parameters, conflict, unavailable
from portal.writes.idempotency import is_ours, made_in
from portal.writes.write_request import Landed
from portal.writes.write_round import Step
from reconciler.changes.propose import listed, slug
from reconciler.changes.push import push, refused_push, unanswered
from reconciler.forges.forge_port import Forge
from reconciler.settings import ForgeAddress
from reconciler.sources.forge_choice import page_to_open
from reconciler.sources.source import PROPOSED
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import Outcome, Store
from schemas.errors import EgsError, Fault
from schemas.rules.problems import quoted

log = logging.getLogger(__name__)

_TAIL = (
    "\n\n_Requested through the API by {who}. The check says whether it is valid, and who must approve it._\n"
)
MOST_ASKED = 5
"""Workspaces that one person may have waiting for an admin."""


@dataclass(frozen=True, slots=True)
class _Brought:
    """What a branch proposes."""

    email: str = ""
    base: str = ""
    """The commit of main that it starts from."""
    contents: Mapping[str, str | None] = field(default_factory=dict)
    """Blob ids by path; None: deleted."""


@dataclass(slots=True)
class Proposals:
    """Pushes branches, for one owner. Call `look` first; another thread may call `opened`."""

    store: Store
    main: str
    address: ForgeAddress | None
    forge: Callable[[ForgeAddress], Forge]
    counted: Callable[[], None]
    """Called before each push."""
    _tips: dict[str, str] = field(default_factory=dict)
    _brought: dict[str, _Brought] = field(default_factory=dict)  # by tip

    def look(self) -> None:
        """Read the branches of the remote: one fetch for all following proposals."""
        self._tips = dict(self.store.fetch([f"{PROPOSED}*"]))
        there = set(self._tips.values())
        self._brought = {oid: found for oid, found in self._brought.items() if oid in there}

    def push(self, step: Step, tip: str) -> Landed:
        """The branch, pushed now or existing already. Raises ApiError, or a Fault of the store."""
        branch = branch_of(step)
        there = self._tips.get(branch)
        if there is not None:
            return self._again(step, branch, there)
        same = self._proposed(step, tip)
        if same is not None:
            return same
        self._check_asked(step, tip)
        self.counted()
        outcome, (oid,) = push(self.store, branch, [step.draft], tip, None)
        match outcome:
            case Outcome.COMMITTED:
                self._tips[branch] = oid
                return Landed("branch", oid, branch, id=step.waiting.origin.id)
            case Outcome.CONFLICT:
                self.look()
                return self.push(step, tip)
            case Outcome.REFUSED:
                to_do = f"let the portal push branches below {PROPOSED}"
                raise ApiError(HTTPStatus.FORBIDDEN, "PushRefused", refused_push(branch, to_do))
        raise unavailable(unanswered(f"the branch {branch}", "try again"))

    def _again(self, step: Step, branch: str, oid: str) -> Landed:
        made = made_in(self.store.commit(oid))
        origin = step.waiting.origin.print
        if made is None or (origin and step.waiting.key and made.print != origin):
            raise conflict(
                f"the branch {branch} holds another change under this Idempotency-Key; use a new key",
                "IdempotencyKeyReused",
            )
        return Landed("branch", oid, branch, id=made.id)

    def _proposed(self, step: Step, main: str) -> Landed | None:
        """The same caller's branch with the same change; None: there is none. ApiError 409 for another caller's."""
        wanted = {path: None if data is None else blob_oid(data) for path, data in step.changes.items()}
        others: list[tuple[str, str]] = []
        for branch, oid in self._tips.items():
            brought = self._brought_by(oid, main)
            shared = self._still_open(brought, sorted(wanted.keys() & brought.contents.keys()), main)
            if shared and brought.email == step.waiting.write.caller.email and brought.contents == wanted:
                made = made_in(self.store.commit(oid))
                return Landed("branch", oid, branch, id=step.waiting.origin.id if made is None else made.id)
            others += [(branch, path) for path in shared]
        for branch, path in others:
            text = (
                f"the branch {quoted(branch)} already proposes another change of {quoted(path)}; have it merged or "
                "deleted, then try again"
            )
            raise conflict(text, "AlreadyProposed", {"branch": branch, "path": path})
        return None

    def _check_asked(self, step: Step, main: str) -> None:
        """ApiError 422 if the caller has too many requested workspaces waiting."""
        caller = step.waiting.write.caller
        if caller.is_admin or not _workspaces(step.changes):
            return
        brought = [self._brought_by(oid, main) for oid in self._tips.values()]
        own = (each for each in brought if each.email == caller.email)
        if sum(bool(self._still_open(each, _workspaces(each.contents), main)) for each in own) >= MOST_ASKED:
            raise bad_parameters(
                f"{MOST_ASKED} workspaces that you requested wait for an admin already; have them merged or deleted, "
                "then try again"
            )

    def _brought_by(self, oid: str, main: str) -> _Brought:
        if oid not in self._brought:
            try:
                self._brought[oid] = self._read(oid, main)
            except Fault as fault:  # what cannot be read cannot be merged
                log.warning("branch not read commit=%s message=%s", oid, fault)
                self._brought[oid] = _Brought()
        return self._brought[oid]

    def _read(self, oid: str, main: str) -> _Brought:
        commit = self.store.commit(oid)
        # The service's branches have one commit; other branches may have many.
        bases = commit.parents[:1] if is_ours(commit) else self.store.merge_bases(main, oid)
        if not bases:
            return _Brought()
        contents = {entry.path: entry.oid for entry in self.store.diff(bases[0], oid)}
        return _Brought(commit.author.email, bases[0], contents)

    def _still_open(self, brought: _Brought, paths: Sequence[str], main: str) -> list[str]:
        """Paths not changed on main since: a merged proposal is not open any more."""
        changed = {path: self.store.last_change(main, path) for path in paths}
        return [p for p, by in changed.items() if by is None or self.store.is_ancestor(by, brought.base)]

    def opened(self, step: Step, landed: Landed) -> Landed:
        """With its pull request if there is a forge; only the branch if the forge does not answer."""
        if self.address is None:
            return landed
        page = page_to_open(self.address, landed.branch)
        if self.address.token is None:
            return replace(landed, url=page)
        title = step.draft.message.split("\n", 1)[0]
        text = listed(step.changes) + _TAIL.format(who=f"`{step.waiting.write.caller.email}`")
        try:
            pull = self.forge(self.address).open_pull(landed.branch, self.main, title, text)
        except EgsError as error:
            log.warning("pull request not opened branch=%s message=%s", landed.branch, error)
            return replace(landed, url=page)
        return replace(landed, way="pull-request", url=pull.url)


def _workspaces(paths: Iterable[str]) -> list[str]:
    return sorted(path for path in paths if path.startswith("requests/"))


def branch_of(step: Step) -> str:
    """The branch name: the subject, plus the key or request id."""
    name = slug(step.draft.message.split("\n", 1)[0])
    own = (step.waiting.key or step.waiting.origin.id)[:12]
    return f"{PROPOSED}{name}-{own}" if name else f"{PROPOSED}{own}"
