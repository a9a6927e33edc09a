"""How far main counts: every commit of it is judged once, against the tree that was authorised before it.

The line of first parents is followed from the commit judged last; each step is judged by the people before it, so that
an admin's commit and what rests on it may come in one push. What nobody with the right to it stands behind is held:
the content that was authorised last stays in force until somebody entitled brings the file in again, or main has it as
it was. A main that does not descend from what was judged counts for nothing, at every level.

What cannot be judged now (a forge that does not answer) leaves main where it was judged last, with an alarm; it is
tried again at the next call.

Held by tests/reconciler/trust/test_gate.py, test_policy_matrix.py and test_attack.py.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial

from reconciler.forges.forge_port import Forge, RateLimited
from reconciler.model.evidence import Admitted
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Entry, Store
from reconciler.trust.adopted_main import Adoption, adopted
from reconciler.trust.authorised_tree import Authorised, Documents, InForce
from reconciler.trust.keyring import TrustFolder
from reconciler.trust.main_steps import ADOPT, Frozen, steps_to
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.step_evidence import PORTION, Assessor, Sources
from reconciler.trust.vouchers import Step
from schemas.documents.base import Metadata
from schemas.errors import Fault
from schemas.status.gpr_status import Provenance
from schemas.status.judgements import HeldChange, TrustRecord

log = logging.getLogger(__name__)

MOST_HELD = 20_000
"""Changes that are held at once; main with more counts as it was before them."""
MOST_CHANGED = 200_000
"""Files that one step may change."""
NOT_KNOWN_YET = "NotKnownYet"
"""The Fault of a forge that has not heard of a commit; it learns of it a moment later, so this is no alarm."""
RETRY = timedelta(seconds=20)
"""How long a forge or a folder that failed is left alone: each question to it may take its time."""
WORK = 500
"""Commits that are read in one call, and so for files (`PORTION`): what more there is waits for the next call, so that
a flood delays no start and no strict end."""


def sources_of(settings: Settings, forge: Forge | None = None) -> Sources:
    """As the operator's settings have it. UserError `BadTrustFolder` when the keys cannot be read."""
    trust = settings.trust
    if trust.level == "none":
        return Sources(branch=settings.main_branch)
    keyring, verifier = TrustFolder(trust.folder).keyring, SystemVerifier(trust.folder)
    return Sources(trust.level, keyring, verifier, forge, settings.main_branch)


class Gate:
    """Judges main. One owner; what it knows is kept by whoever commits `Admitted.record`."""

    def __init__(
        self,
        store: Store,
        cache: DocumentCache,
        sources: Sources,
        in_force: InForce = lambda _: None,
        *,
        adopt: bool = False,
    ) -> None:
        """`in_force` gives the document of a path that counts; `adopt`: an operator takes main as it is."""
        self._store = store
        self._verifies = sources.level != "none"
        self._adopt = adopt
        documents = Documents(store, cache)
        self._tree = Authorised(documents, in_force)
        self._assessor = Assessor(store, documents, self._tree, sources)
        self._at: str | None = None  # the commit that was judged last
        self._has_tree = False  # the tree is of that commit
        self._held: tuple[HeldChange, ...] = ()  # at that commit, while there is no tree
        self._steps: tuple[str, list[Step]] = ("", [])  # to which main, newest first
        self._record: TrustRecord | None = None  # as given out last
        self._committed: TrustRecord | None = None  # as the status branch had it last
        self._intent = ""
        self._frozen: tuple[str, str, str] | None = None  # main, what was judged, and why
        self._pause: tuple[str, str, datetime] | None = None  # main, the alarm of it if any, and until when
        self._provenance: dict[str, Provenance] = {}
        self.adoption: Adoption | None = None
        """What an operator took by this process; None: nothing."""

    def admit(self, main: str, record: TrustRecord | None, intent: str, now: datetime) -> Admitted:
        """Judge what main has more than was judged.

        `record` and `intent` are what the status branch says: how far main was judged, and the commit it answers.
        Costs a signature and a difference for each new commit, and a listing of main once a process life.
        """
        self._resume(record, intent)
        if self._at is None:
            self._begin(main, ())
        alarm = ""
        if self._pause is not None and self._pause[0] == main and now < self._pause[2]:
            return self._given(main, self._pause[1])
        try:
            self._pause = None
            self._advance(main, now)
        except Frozen as frozen:
            alarm = self._freeze(main, str(frozen))
        except Fault as fault:
            if fault.reason != NOT_KNOWN_YET:
                alarm = f"main is not judged: {fault}; what was judged stays in force, and it is tried again"
            self._pause = (main, alarm, fault.until if isinstance(fault, RateLimited) else now + RETRY)
        self._adopt = False  # it was said of the main that was there at the start
        return self._given(main, alarm)

    # -- where it stands -------------------------------------------------------------------------------------

    def _resume(self, record: TrustRecord | None, intent: str) -> None:
        """Go on from what is committed: at the begin of a process life, and when somebody else committed since."""
        if record is not None and record not in (self._record, self._committed):
            self._begin(record.main, record.held)
        elif intent and (self._at is None or (self._frozen is not None and intent != self._intent)):
            # The latter: another controller went on, so somebody adopted what it went on from.
            self._begin(intent, ())
        self._committed, self._intent = record, intent

    def _begin(self, commit: str, held: tuple[HeldChange, ...]) -> None:
        self._at, self._held, self._has_tree = commit, held, False
        self._record = self._recorded(held) if self._verifies else None
        self._frozen, self._pause, self._steps, self._provenance = None, None, ("", []), {}

    def _recorded(self, held: tuple[HeldChange, ...]) -> TrustRecord:
        assert self._at is not None, "it began"
        return TrustRecord(metadata=Metadata(name="trust"), main=self._at, held=held)

    def _freeze(self, main: str, why: str) -> str:
        """The alarm; empty when an operator takes main as it is."""
        assert self._at is not None, "nothing freezes before it began"
        if self._adopt:
            held = tuple(self._tree.held.values()) if self._has_tree else self._held
            self.adoption = adopted(self._store, main, self._at, held)
            log.warning("main adopted commit=%s instead_of=%s", main[:12], self._at[:12])
            self._begin(main, self.adoption.held)
            return ""
        self._frozen = (main, self._at, why)
        self._store.keep(self._at)  # it is in force, and main may not lead to it any more
        return why

    def _given(self, main: str, alarm: str) -> Admitted:
        assert self._at is not None, "it began"
        is_paused = self._pause is not None
        has_more = not alarm and not is_paused and self._at != main
        is_frozen = bool(alarm) and not is_paused
        if self._record is None:
            return Admitted(self._at, None, {}, alarm, is_frozen)
        held = self._tree.held if self._has_tree else {}
        if len(held) > MOST_HELD:
            alarm = alarm or (
                f"main changes more than {MOST_HELD} files that nobody with the right to it stands behind, and counts "
                f"as it was at {self._record.main[:12]}; revert those changes, or bring in portions what shall count"
            )
            return Admitted(self._record.main, self._record, self._provenance, alarm, True, has_more)
        if self._record.main != self._at:
            self._record = self._recorded(tuple(change for _, change in sorted(held.items())))
        return Admitted(self._at, self._record, self._provenance, alarm, is_frozen, has_more)

    # -- going on --------------------------------------------------------------------------------------------

    def _advance(self, main: str, now: datetime) -> None:
        """As many steps towards main as one call may take. Raises Frozen, or a Fault; what was judged stays so."""
        assert self._at is not None, "it began"
        if main == self._at:
            return
        if self._frozen is not None and self._frozen[:2] == (main, self._at):
            raise Frozen(self._frozen[2])
        if self._steps[0] != main:
            self._steps = (main, steps_to(self._store, self._at, main)[::-1])
        if not self._verifies:
            self._at, self._steps = main, ("", [])
            return
        self._take_steps(now)

    def _take_steps(self, now: datetime) -> None:
        assert self._at is not None, "it began"
        if not self._has_tree:
            self._tree.begin(self._store.diff(None, self._at), self._held)
            self._has_tree = True
            self._assessor.forget()
        work, files, steps = 0, 0, self._steps[1]
        provenance = dict(self._provenance)
        try:
            while steps and work < WORK and files < PORTION:
                taken = self._assessor.take(steps[-1], partial(self._changed, steps[-1]), now)
                if taken is None:  # there is more of it
                    break
                self._at = steps.pop().commit.oid
                provenance.update(taken.provenance)
                work, files = work + taken.work, files + taken.files
        finally:
            self._provenance = provenance

    def _changed(self, step: Step) -> list[Entry]:
        entries = self._store.diff(step.base, step.commit.oid)
        if len(entries) > MOST_CHANGED:
            oid = step.commit.oid[:12]
            raise Frozen(
                f"{oid} changes more than {MOST_CHANGED} files; push main back and split it, or {ADOPT}"
            )
        return list(entries)
