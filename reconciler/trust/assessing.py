"""One step of main: which of its changes count, by everything that can be shown for each of them.

Evidence is gathered here and judged in `reconciler.trust.judging`. All changes of a step are judged by the people
before it; only then does the tree move on.

Held by tests/trust/test_policy_matrix.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from reconciler.forges.evidence import forge_vouchers
from reconciler.forges.port import Forge
from reconciler.store.port import Entry, Store
from reconciler.trust.authorised import Authorised, Documents
from reconciler.trust.authority import Authority
from reconciler.trust.judging import ASKED, Evidence, How, Verdict, Who, judge, shown
from reconciler.trust.keyring import Keyring
from reconciler.trust.model import Level, Verifier, Voucher
from reconciler.trust.policy import Change, What, is_governed
from reconciler.trust.vouching import Behind, File, Signers, Step, file_of
from schemas.approval import NAMESPACE, Approval, statement
from schemas.base import Document
from schemas.reading import rule_of
from schemas.status import Provenance

_EMPTY = Keyring()


@dataclass(frozen=True, slots=True)
class Sources:
    """What a judgement asks; whatever is absent shows nobody."""

    level: Level = "none"
    keyring: Callable[[], Keyring] = lambda: _EMPTY
    """Raises Fault when the operator's folder cannot be read: then nobody is judged."""
    verifier: Verifier | None = None
    forge: Forge | None = None
    branch: str = "main"


@dataclass(frozen=True, slots=True)
class Assessed:
    """What became of one step."""

    verdicts: Mapping[str, Verdict]  # of the files that changed against what counted, by path
    provenance: Mapping[str, Provenance]  # of requests' files that count now, by path
    work: int  # commits that were read


class Assessor:
    """Judges steps against one authorised tree. One owner."""

    def __init__(self, store: Store, documents: Documents, tree: Authorised, sources: Sources) -> None:
        self._store, self._documents, self._tree, self._sources = store, documents, tree, sources
        self._signers = None if sources.verifier is None else Signers(sources.verifier)

    def take(self, step: Step, entries: Iterable[Entry], now: datetime) -> Assessed:
        """Move the tree on by one step; `entries` are what it changes. On a Fault the tree is as before."""
        keyring = self._sources.keyring()
        found = {e.path: file_of(e.oid, e.mode) for e in entries if is_governed(e.path)}
        changed = {path: file for path, file in found.items() if file != self._tree.file(path)}
        authority = self._tree.authority(keyring)
        who = cache(lambda voucher: authority.actor(voucher, now))
        behind = self._behind(step, keyring, now)
        changes = self._changes(changed, authority, now)
        verdicts = {
            path: judge(changes[path], self._evidence(path, file, step, behind), who)
            for path, file in sorted(changed.items())
        }
        provenance = {
            path: self._provenance(step, path, file, (behind, who, verdicts[path]))
            for path, file in changed.items()
            if file is not None and verdicts[path].denial is None and _is_request(path)
        }
        self._move_on(step, found, verdicts, now)
        return Assessed(verdicts, provenance, 1 + behind.looked_at)

    def _move_on(
        self, step: Step, found: Mapping[str, File | None], verdicts: Mapping[str, Verdict], now: datetime
    ) -> None:
        """What nobody had to be asked about is as it counted before: that ends a hold."""
        held = {path for path, verdict in verdicts.items() if verdict.denial is not None}
        self._tree.accept({path: file for path, file in found.items() if path not in held})
        for path in sorted(held):
            denial = verdicts[path].denial
            assert denial is not None, "held are those that were denied"
            self._tree.hold(denial, found[path], step.commit.oid, now)

    # -- what is asked ---------------------------------------------------------------------------------------

    def _changes(
        self, changed: Mapping[str, File | None], authority: Authority, now: datetime
    ) -> dict[str, Change]:
        old = self._documents.read({path: self._tree.file(path) for path in changed})
        new = self._documents.read(changed)
        return {
            path: Change(
                path,
                _what(self._tree.file(path), file),
                old.get(path),
                new.get(path),
                self._signed_by(new.get(path), authority, now),
            )
            for path, file in changed.items()
        }

    def _signed_by(self, document: Document | None, authority: Authority, now: datetime) -> str:
        """Handle of the admin whose signature is inside of an approval and checks."""
        verifier = self._sources.verifier
        if verifier is None or not isinstance(document, Approval) or document.spec.signature is None:
            return ""
        message = statement(self._tree.project_name(), document)
        key = verifier.key_of(NAMESPACE, message, document.spec.signature)
        actor = None if key is None else authority.actor(Voucher("signature", key=key), now, NAMESPACE)
        return "" if actor is None else actor.handle

    # -- what is shown ---------------------------------------------------------------------------------------

    def _behind(self, step: Step, keyring: Keyring, now: datetime) -> Behind:
        signers = self._signers
        return Behind(
            self._store,
            step,
            self._sources.branch,
            lambda commit: () if signers is None else signers.vouchers(commit, keyring, now),
        )

    def _evidence(self, path: str, file: File | None, step: Step, behind: Behind) -> Evidence:
        asked: Mapping[How, Callable[[], tuple[Voucher, ...]]] = {
            "signature": lambda: behind.all(path, file),
            "forge": lambda: self._forge(path, file, step),
        }
        return {how: asked[how]() for how in ASKED[self._sources.level]}

    def _forge(self, path: str, file: File | None, step: Step) -> tuple[Voucher, ...]:
        forge = self._sources.forge
        if forge is None:
            return ()
        oid = None if file is None else file.oid
        return forge_vouchers(forge, step.commit.oid, path, oid, self._sources.branch)

    def _openers(self, step: Step) -> tuple[Voucher, ...]:
        """Authors of the pull requests that brought it, as the forge knows them."""
        forge = self._sources.forge
        if forge is None or "forge" not in ASKED[self._sources.level]:
            return ()
        pulls = forge.pulls_of(step.commit.oid)
        return tuple(
            Voucher("forge", account=p.author.id) for p in pulls if p.state == "merged" and p.author.id
        )

    # -- who wrote it ----------------------------------------------------------------------------------------

    def _provenance(
        self,
        step: Step,
        path: str,
        file: File | None,
        known: tuple[Behind, Who, Verdict],
    ) -> Provenance:
        """Who stands behind a request's content; who merged it only when somebody else is known to have written it.

        An admin whose merge speaks for content that nobody known wrote counts as its author: nobody approves their
        own request by leaving it unsigned.
        """
        behind, who, verdict = known
        writers = shown((*behind.authors(path, file), *self._openers(step)), who)
        mergers = shown(behind.merger(path, file), who)
        is_brought = behind.is_from_side(path, file)
        merged_by = next((actor.email for actor in mergers if actor.is_admin and is_brought), None)
        authors = writers or mergers or verdict.actors
        return Provenance(
            commit=step.commit.oid, authors=tuple(sorted({a.email for a in authors})), merged_by=merged_by
        )


def _what(old: File | None, new: File | None) -> What:
    if old is None:
        return "create"
    return "delete" if new is None else "change"


def _is_request(path: str) -> bool:
    found = rule_of(path)
    return found is not None and found[0].kind == "GPR"
