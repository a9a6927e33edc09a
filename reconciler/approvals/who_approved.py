"""Whose approval of a request counts: Approval files, reviews on the forge, and admins' own merges.

This module establishes the author from evidence; `reconciler.approvals.is_approved` decides whether the
approvals cover the request. A signature is checked once; its key's owner, revocation and the approval's end or
use in every cycle. An approval that cannot be verified now does not count now.

Held by tests/reconciler/trust/test_approval_corpus.py: no forgery counts, every genuine approval does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.approvals.file_at_commit import Content
from reconciler.approvals.forge_reviews import Reviews
from reconciler.approvals.used_approvals import is_live
from reconciler.model.evidence import GIT, ApprovalDecision, Level, Verifier, Voucher
from reconciler.model.facts import Facts, Wanted
from reconciler.model.memo import Memo
from reconciler.settings import Settings
from reconciler.store.store_port import Store
from reconciler.trust.authority import Authority, roll_of
from reconciler.trust.keyring import Keyring, TrustFolder
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.sshsig import parse
from scheduler.choices.fit import MOST_GPUS, approval_reasons
from schemas.documents.approval import NAMESPACE, Approval, ApprovalLimit, statement, statement_id
from schemas.documents.base import Person
from schemas.errors import Fault
from schemas.reading.units import format_instant
from schemas.rules.fit import free_priority
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import TERMINAL, WAITING, GPRStatus, Provenance

log = logging.getLogger(__name__)

LONGEST = timedelta(days=366)
"""A signed approval that ends later does not count: used approvals must not be remembered forever."""
MOST_CHECKS = 200
"""Signatures checked in one cycle; the rest wait for the next, so that a flood of them cannot block the controller."""

Decisions = Mapping[str, tuple[ApprovalDecision, ...]]
IgnoredDecisions = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class IgnoredDecision:
    """Why something that looks like an approval does not count."""

    sentence: str


_Found = ApprovalDecision | IgnoredDecision


@dataclass(frozen=True, slots=True)
class _About:
    """One request, as its approvals are judged against it."""

    key: str
    wanted: Wanted
    status: GPRStatus | None
    provenance: Provenance | None
    now: datetime

    @property
    def path(self) -> str:
        slice_, _, name = self.key.partition("/")
        return gpr_path(slice_, name)


def file_decisions(wanted: Wanted) -> Decisions:
    """Without verification: every Approval named after an admin counts."""
    admins = {person.handle: person for person in wanted.project.admins}
    return {
        key: tuple(
            _decision(key, approval, admins[approval.metadata.name], wanted)
            for approval in approvals
            if approval.metadata.name in admins
        )
        for key, approvals in wanted.approvals.items()
    }


def recorded_decisions(facts: Facts) -> Decisions:
    """For readers without keys: the approvals that counted when the controller last looked."""
    return {
        key: tuple(_recorded(key, status))
        for key, status in facts.requests.items()
        if status.approval is not None and status.approval.decision is not None
    }


def with_readers_decisions(wanted: Wanted, facts: Facts) -> Wanted:
    """The documents with the approvals that a reader of the repository can rely on."""
    if facts.trust is None:
        return replace(wanted, decisions=file_decisions(wanted))
    return replace(wanted, decisions=recorded_decisions(facts), ignored_decisions=recorded_ignored(facts))


def recorded_ignored(facts: Facts) -> IgnoredDecisions:
    """What the controller last recorded about approvals that do not count."""
    pending = {k: s.message or "" for k, s in facts.requests.items() if s.reason == "NeedsApproval"}
    said = {key: message.partition("; ")[2] for key, message in pending.items()}
    return {key: (sentences,) for key, sentences in said.items() if sentences}


def _recorded(key: str, status: GPRStatus) -> Iterator[ApprovalDecision]:
    state = status.approval
    assert state is not None
    for by, id_ in zip(state.by.split(", "), state.ids or (state.by,), strict=False):
        yield ApprovalDecision(
            request=key,
            verdict=state.decision or "approve",
            by=by,
            email=by,
            digest=status.spec_digest,
            how=state.how or "file",
            id=id_,
            limit=state.limit,
            reason=state.message,
        )


class DecisionReader:
    """Finds the approvals that count where changes are verified. One owner; caches signature checks."""

    def __init__(
        self,
        level: Level,
        store: Store,
        keyring: Callable[[], Keyring],
        verifier: Verifier,
        reviews: Reviews | None = None,
    ) -> None:
        self._level = level
        self._keyring = keyring
        self._verifier = verifier
        self._reviews = reviews
        # Keys by namespace, message and signature.
        self._checked: dict[tuple[str, bytes, str], str | None] = {}
        self._used: set[tuple[str, bytes, str]] = set()
        self._checks = 0
        self._content = Content(store)
        self._in_files: Memo[Decisions] = Memo()
        self._heard: Memo[Wanted] = Memo()

    def hear(self, wanted: Wanted, facts: Facts, now: datetime) -> Wanted:
        """The documents with all approvals that count now; the same object if nothing changed."""
        if self._level != "none":
            return self._same(wanted, *self._all(wanted, facts, now))
        decisions = self._in_files.of("", partial(file_decisions, wanted), same=(wanted.approvals,))
        return self._same(wanted, decisions, {})

    def _same(self, wanted: Wanted, decisions: Decisions, ignored: IgnoredDecisions) -> Wanted:
        with_decisions = partial(replace, wanted, decisions=decisions, ignored_decisions=ignored)
        return self._heard.of("", with_decisions, same=(wanted,), equal=(decisions, ignored))

    def _all(self, wanted: Wanted, facts: Facts, now: datetime) -> tuple[Decisions, IgnoredDecisions]:
        decisions: dict[str, tuple[ApprovalDecision, ...]] = {}
        ignored: dict[str, tuple[str, ...]] = {}
        try:
            keyring = self._keyring()
        except Fault as fault:
            return {}, dict.fromkeys(wanted.approvals, (f"no approval counts: {fault}",))
        # Members' keys cannot approve as admins.
        authority = Authority(roll_of(wanted.project.admins), keyring=keyring)
        self._checks, self._used = 0, set()
        for key in sorted({*wanted.filed, *wanted.approvals, *facts.requests}):
            about = _about(key, wanted, facts, now)
            if about.status is not None and about.status.phase in TERMINAL:
                continue
            found = [self._counted(said, about, facts) for said in self._said(about, authority)]
            if heard := tuple(said for said in found if isinstance(said, ApprovalDecision)):
                decisions[key] = heard
            if sentences := dict.fromkeys(
                said.sentence for said in found if isinstance(said, IgnoredDecision)
            ):
                ignored[key] = tuple(sentences)
        self._checked = {made: by for made, by in self._checked.items() if made in self._used}
        return decisions, ignored

    def _said(self, about: _About, authority: Authority) -> Iterator[_Found]:
        for approval in about.wanted.approvals.get(about.key, ()):
            yield from self._filed(approval, about, authority)
        if not _needs_approval(about):
            return
        if self._level in {"signature", "both"}:
            yield from self._merged(about, authority)
        if self._level in {"forge", "both"}:
            yield from self._reviewed(about, authority)

    def _counted(self, said: _Found, about: _About, facts: Facts) -> _Found:
        """A verified approval, unless it approves its author's own request, or was used or withdrawn."""
        if isinstance(said, IgnoredDecision):
            return said
        if not is_live(said.id, about.key, facts):
            return IgnoredDecision(
                f"the decision of {said.by} was already used or withdrawn; a new one is needed"
            )
        if said.verdict == "reject" or about.wanted.project.approval.own_requests:
            return said
        authors = None if about.provenance is None else about.provenance.authors
        if said.how != "forge" and not authors:  # the forge knows its own authors
            return IgnoredDecision(
                f"the author of {about.key} is unknown, so nobody can approve it; its requester must edit it once, "
                "for example its displayName"
            )
        if said.email.lower() in {author.lower() for author in authors or ()}:
            return IgnoredDecision(
                f"{said.by} wrote {about.key}; another admin must approve it, or project.yaml must allow "
                "approval.ownRequests"
            )
        return said

    # -- files -----------------------------------------------------------------------------------------------

    def _filed(self, approval: Approval, about: _About, authority: Authority) -> Iterator[_Found]:
        handle, project = approval.metadata.name, about.wanted.project
        admin = next((person for person in project.admins if person.handle == handle), None)
        if admin is None:
            return  # its file has a problem that says so
        why = _unfit(approval, about.now) or self._forged(approval, admin, about, authority)
        if why is None:
            yield replace(_decision(about.key, approval, admin, about.wanted), how="signed")
        else:
            yield IgnoredDecision(f"the approval of {handle} does not count: {why}")

    def _forged(self, approval: Approval, admin: Person, about: _About, authority: Authority) -> str | None:
        """Why its signature does not prove that this admin made it; None: it does."""
        armoured = approval.spec.signature or ""
        claimed = parse(armoured)
        if claimed is None:
            return "its signature cannot be read; `egs approve` makes a valid one"
        actor = authority.actor(Voucher("signature", key=claimed.key), about.now, NAMESPACE)
        if actor is None or not actor.is_admin or actor.email.lower() != admin.email.lower():
            return f"it is signed with a key that is not registered for {admin.email}"
        message = statement(about.wanted.project_name, approval)
        if self._key_of(NAMESPACE, message, armoured) != claimed.key:
            return "its signature does not match its content; `egs approve` signs it again"
        return None

    # -- merges ----------------------------------------------------------------------------------------------

    def _merged(self, about: _About, authority: Authority) -> Iterator[_Found]:
        """An admin's own signed merge commit approves the content that it merged."""
        found = about.provenance
        if found is None or found.merged_by is None:
            return
        commit = self._content.commit(found.commit)
        if commit is None or len(commit.parents) < 2 or not commit.signature:
            return
        key = self._key_of(GIT, commit.payload, commit.signature)
        actor = None if key is None else authority.actor(Voucher("signature", key=key), about.now, GIT)
        if actor is None or not actor.is_admin or actor.email.lower() != found.merged_by.lower():
            yield IgnoredDecision(f"the merge {found.commit[:12]} is not signed by a currently valid key")
            return
        person = _admin_at(actor.email, about.wanted)
        if person is not None:
            yield from self._of_content(about, person, "merge", f"merge:{found.commit}:{about.key}")

    # -- reviews ---------------------------------------------------------------------------------------------

    def _reviewed(self, about: _About, authority: Authority) -> Iterator[_Found]:
        found, reviews = about.provenance, self._reviews
        blob = None if found is None else self._content.blob(found.commit, about.path)
        if found is None or reviews is None or blob is None:
            return
        question = (found.commit, about.path, blob)
        answer = reviews.of(question, _addresses(about.wanted), about.now)
        if answer is None:
            yield IgnoredDecision(
                "the forge has not reported who approved it; it is queried again within a minute"
            )
            return
        for review, pull in answer:
            actor = authority.actor(Voucher("forge", account=review.by.id), about.now)
            person = None if actor is None or not actor.is_admin else _admin_at(actor.email, about.wanted)
            if person is None:
                yield IgnoredDecision(
                    f"{review.by.login} approved it on the forge but is not an admin of the project"
                )
                continue
            id_ = f"forge:{pull.number}:{review.id}:{about.key}"
            yield from self._of_content(about, person, "forge", id_)

    def _of_content(self, about: _About, person: Person, how: str, id_: str) -> Iterator[ApprovalDecision]:
        """The approval of all that this content asks for, its extension included, by a person who let exactly it in."""
        assert about.provenance is not None
        spec = self._content.request(about.provenance.commit, about.path)
        slice_ = None if spec is None else about.wanted.slices.get(spec.slice)
        if spec is None or slice_ is None:
            return
        decision = ApprovalDecision(
            request=about.key,
            verdict="approve",
            by=person.handle,
            email=person.email,
            digest=spec.digest(free_priority(slice_, about.wanted.project)),
            how="merge" if how == "merge" else "forge",
            id=id_,
        )
        yield decision
        if spec.extend:
            limit = ApprovalLimit(gpus=MOST_GPUS, nodes=spec.nodes, extend=spec.extend)
            yield replace(decision, rule="extension", limit=limit)

    # -- signatures ------------------------------------------------------------------------------------------

    def _key_of(self, namespace: str, message: bytes, signature: str) -> str | None:
        """The key that made it; None also if this cycle's checks are used up."""
        made = (namespace, message, signature)
        self._used.add(made)
        if made not in self._checked:
            if self._checks >= MOST_CHECKS:
                return None
            self._checks += 1
            try:
                self._checked[made] = self._verifier.key_of(namespace, message, signature)
            except Fault as fault:  # checked again in the next cycle
                log.warning("signature not checked reason=%s message=%s", fault.reason, fault)
                return None
        return self._checked[made]


def decision_reader_of(settings: Settings, store: Store, reviews: Reviews | None = None) -> DecisionReader:
    """Built from the operator's settings. UserError `BadTrustFolder` if the keys cannot be read."""
    trust = settings.trust
    if trust.level == "none":
        return DecisionReader("none", store, Keyring, SystemVerifier())
    return DecisionReader(
        trust.level, store, TrustFolder(trust.folder).keyring, SystemVerifier(trust.folder), reviews
    )


def _about(key: str, wanted: Wanted, facts: Facts, now: datetime) -> _About:
    status, filed = facts.requests.get(key), wanted.filed.get(key)
    fresh = None if filed is None else filed.provenance
    return _About(key, wanted, status, fresh or (None if status is None else status.provenance), now)


def _decision(key: str, approval: Approval, admin: Person, wanted: Wanted) -> ApprovalDecision:
    spec = approval.spec
    return ApprovalDecision(
        request=key,
        verdict=spec.decision,
        by=admin.handle,
        email=admin.email,
        digest=spec.spec_digest,
        how="file",
        id=statement_id(wanted.project_name, approval),
        rule=spec.rule,
        limit=spec.limit,
        not_after=spec.not_after,
        reason=spec.reason,
    )


def _unfit(approval: Approval, now: datetime) -> str | None:
    spec = approval.spec
    if spec.signature is None:
        return "it is not signed; `egs approve` signs it"
    if spec.not_after is None:
        return "it has no end; set notAfter"
    if spec.not_after <= now:
        return f"it ended at {format_instant(spec.not_after)}"
    if spec.not_after > now + LONGEST:
        return f"it ends more than {LONGEST.days} days from now"
    if spec.decision == "approve" and spec.limit is None:
        return "it has no limit"
    return None


def _needs_approval(about: _About) -> bool:
    """True if, as far as is known, the request needs an approval: only then the forge is queried."""
    filed, status, project = about.wanted.filed.get(about.key), about.status, about.wanted.project
    spec = None if filed is None else filed.spec
    if spec is None:
        return False
    if spec.extend > project.max_extension:
        return True
    if status is not None:
        return status.phase in WAITING and (status.approval is not None or status.accepted_spec != spec)
    slice_ = about.wanted.slices.get(spec.slice)
    return slice_ is not None and bool(approval_reasons(spec, slice_, project, about.wanted.pools))


def _admin_at(email: str, wanted: Wanted) -> Person | None:
    return next((p for p in wanted.project.admins if p.email.lower() == email.lower()), None)


def _addresses(wanted: Wanted) -> Mapping[int, frozenset[str]]:
    return {p.forge.id: frozenset({p.email}) for p in wanted.project.admins if p.forge is not None}
