"""How far main counts: every commit is judged once, against the tree that was authorised before it.

The gate follows first parents from the last judged commit; each step is judged by the people before it, so
that an admin's commit and the changes it enables may arrive in one push. A change without the approval of a
person entitled to it is held: the last authorised content stays in force until an entitled person submits the
file again, or main restores it. A main that does not descend from the judged commit does not count, at any
level.

If judging is impossible now (the forge does not answer), main stays at the last judged commit, with an alarm,
and the next call retries.

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
"""Changes held at once; a main with more counts as it was before them."""
MOST_CHANGED = 200_000
"""Files changed by one step."""
NOT_KNOWN_YET = "NotKnownYet"
"""The Fault of a forge that does not know a commit yet; it will a moment later, so this is no alarm."""
RETRY = timedelta(seconds=20)
"""Pause after a failure of the forge or the folder: each query may take long."""
WORK = 500
"""Commits read per call, like files (`PORTION`): the rest waits for the next call, so that a flood of commits
delays no start and no strict end.
"""


def sources_of(settings: Settings, forge: Forge | None = None) -> Sources:
    """Built from the operator's settings. UserError `BadTrustFolder` if the keys cannot be read."""
    trust = settings.trust
    if trust.level == "none":
        return Sources(branch=settings.main_branch)
    keyring, verifier = TrustFolder(trust.folder).keyring, SystemVerifier(trust.folder)
    return Sources(trust.level, keyring, verifier, forge, settings.main_branch)


class Gate:
    """Judges main. One owner; the caller that commits `Admitted.record` persists its state."""

    def __init__(
        self,
        store: Store,
        cache: DocumentCache,
        sources: Sources,
        in_force: InForce = lambda _: None,
        *,
        adopt: bool = False,
    ) -> None:
        """`in_force` gives the document in force for a path; `adopt`: an operator adopts main as it is."""
        self._store = store
        self._verifies = sources.level != "none"
        self._adopt = adopt
        documents = Documents(store, cache)
        self._tree = Authorised(documents, in_force)
        self._assessor = Assessor(store, documents, self._tree, sources)
        self._at: str | None = None  # the last judged commit
        self._has_tree = False  # the tree is that of this commit
        self._held: tuple[HeldChange, ...] = ()  # at that commit, while there is no tree
        self._steps: tuple[str, list[Step]] = ("", [])  # the head of main, and the steps to it, newest first
        self._record: TrustRecord | None = None  # as last returned
        self._committed: TrustRecord | None = None  # as last read from the status branch
        self._intent = ""
        self._frozen: tuple[str, str, str] | None = None  # head of main, judged commit, reason
        # Head of main, its alarm if any, end of the pause.
        self._pause: tuple[str, str, datetime] | None = None
        self._provenance: dict[str, Provenance] = {}
        self.adoption: Adoption | None = None
        """What an operator adopted through this process; None: nothing."""

    def admit(self, main: str, record: TrustRecord | None, intent: str, now: datetime) -> Admitted:
        """Judges the commits of main that are not judged yet.

        `record` and `intent` come from the status branch: how far main was judged, and the commit it covers.
        Costs a signature check and a difference per new commit, and one listing of main per process.
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
                alarm = f"judging main failed: {fault}; the judged commits stay in force; retrying"
            self._pause = (main, alarm, fault.until if isinstance(fault, RateLimited) else now + RETRY)
        self._adopt = False  # adoption applies only to the main found at the start
        return self._given(main, alarm)

    # -- where it stands -------------------------------------------------------------------------------------

    def _resume(self, record: TrustRecord | None, intent: str) -> None:
        """Resumes from the committed record: at the start, and after another controller committed."""
        if record is not None and record not in (self._record, self._committed):
            self._begin(record.main, record.held)
        elif intent and (self._at is None or (self._frozen is not None and intent != self._intent)):
            # In the second case, another controller adopted the commit that it continued from.
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
        """Returns the alarm; empty when an operator adopts main as it is."""
        assert self._at is not None, "main cannot freeze before the first commit is judged"
        if self._adopt:
            held = tuple(self._tree.held.values()) if self._has_tree else self._held
            self.adoption = adopted(self._store, main, self._at, held)
            log.warning("main adopted commit=%s instead_of=%s", main[:12], self._at[:12])
            self._begin(main, self.adoption.held)
            return ""
        self._frozen = (main, self._at, why)
        self._store.keep(self._at)  # it is in force, and main may no longer lead to it
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
                f"main has more than {MOST_HELD} changed files without the approval of an entitled person, and counts "
                f"as it was at {self._record.main[:12]}; revert those changes, or submit the intended ones "
                "in smaller parts"
            )
            return Admitted(self._record.main, self._record, self._provenance, alarm, True, has_more)
        if self._record.main != self._at:
            self._record = self._recorded(tuple(change for _, change in sorted(held.items())))
        return Admitted(self._at, self._record, self._provenance, alarm, is_frozen, has_more)

    # -- going on --------------------------------------------------------------------------------------------

    def _advance(self, main: str, now: datetime) -> None:
        """As many steps towards main as one call allows. Raises Frozen, or a Fault; finished steps stay judged."""
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
                if taken is None:  # the step is not finished yet
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
                f"{oid} changes more than {MOST_CHANGED} files; reset main and split the commit, or {ADOPT}"
            )
        return list(entries)
