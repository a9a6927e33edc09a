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
from reconciler.trust.model import Denial, Level, Verifier, Voucher
from reconciler.trust.policy import Change, What, is_governed
from reconciler.trust.vouching import Behind, File, Signers, Step, file_of
from schemas.approval import NAMESPACE, Approval, statement
from schemas.base import Document
from schemas.reading import rule_of
from schemas.status import Provenance

_EMPTY = Keyring()
MOST_INSIDE = 100
"""Signatures inside of approvals that are checked for one step; files beyond them are held and may be brought again."""


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


@dataclass(slots=True)
class _Known:
    """All that is asked about one step."""

    step: Step
    behind: Behind
    who: Who
    authority: Authority
    now: datetime
    inside: int = 0  # signatures inside of files that were checked

    def spend(self) -> int:
        """One more of them."""
        self.inside += 1
        return self.inside


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
        behind = self._behind(step, keyring, now)
        known = _Known(step, behind, cache(lambda v: authority.actor(v, now)), authority, now)
        changes = self._changes(changed, known)
        verdicts = {
            path: judge(changes[path], self._evidence(path, file, known), known.who)
            for path, file in sorted(changed.items())
        }
        provenance = {
            path: self._provenance(path, file, known, verdicts[path])
            for path, file in changed.items()
            if file is not None and verdicts[path].denial is None and _is_request(path)
        }
        passed_over = self._passed_over(found, known)
        self._move_on(step, found, verdicts, now)
        for path, file in passed_over.items():
            kept = self._raw(path)
            self._tree.accept({path: file})
            self._tree.hold(_dropped(path), kept, step.commit.oid, now)
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

    def _raw(self, path: str) -> File | None:
        """What main has at a path that the step did not change, as far as it matters: its id."""
        held = self._tree.held.get(path)
        if held is None:
            return self._tree.file(path)
        return None if held.found is None else File(held.found)

    def _passed_over(self, found: Mapping[str, File | None], known: _Known) -> dict[str, File | None]:
        """Changes by people with the right to them that the step's sides have, and that it left out by itself.

        Main may have had them: whoever pushes chooses which side is the first parent, and could undo in passing what
        somebody entitled had just pushed. They count, unless whoever merged had the right to leave them out.
        """
        if self._sources.level not in ("signature", "both"):
            return {}
        result: dict[str, File | None] = {}
        for path in sorted(known.behind.side_paths() - found.keys()):
            kept = self._raw(path)
            merger: Evidence = {"signature": known.behind.merger(path, kept)}
            if judge(Change(path, "change"), merger, known.who).denial is None:
                continue
            contents = known.behind.passed_over(path, None if kept is None else kept.oid)
            for file, vouchers in contents.items():
                change = self._changes({path: file}, known)[path]
                is_theirs = judge(change, {"signature": vouchers}, known.who).denial is None
                if is_theirs and file != self._tree.file(path):
                    result[path] = file
        return result

    # -- what is asked ---------------------------------------------------------------------------------------

    def _changes(self, changed: Mapping[str, File | None], known: _Known) -> dict[str, Change]:
        old = self._documents.read({path: self._tree.file(path) for path in changed})
        new = self._documents.read(changed)
        return {
            path: Change(
                path,
                _what(self._tree.file(path), file),
                old.get(path),
                new.get(path),
                self._signed_by(new.get(path), known),
            )
            for path, file in changed.items()
        }

    def _signed_by(self, document: Document | None, known: _Known) -> str:
        """Handle of the admin whose signature is inside of an approval and checks."""
        verifier = self._sources.verifier
        if verifier is None or not isinstance(document, Approval) or document.spec.signature is None:
            return ""
        if known.spend() > MOST_INSIDE:
            return ""
        message = statement(self._tree.project_name(), document)
        key = verifier.key_of(NAMESPACE, message, document.spec.signature)
        if key is None:
            return ""
        actor = known.authority.actor(Voucher("signature", key=key), known.now, NAMESPACE)
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

    def _evidence(self, path: str, file: File | None, known: _Known) -> Evidence:
        asked: Mapping[How, Callable[[], tuple[Voucher, ...]]] = {
            "signature": lambda: known.behind.all(path, file),
            "forge": lambda: self._forge(path, file, known.step),
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

    def _provenance(self, path: str, file: File | None, known: _Known, verdict: Verdict) -> Provenance:
        """Who stands behind a request's content; who merged it only when somebody else is known to have written it.

        An admin whose merge speaks for content that nobody known wrote counts as its author: nobody approves their
        own request by leaving it unsigned.
        """
        behind, step = known.behind, known.step
        writers = shown((*behind.authors(path, file), *self._openers(step)), known.who)
        mergers = shown(behind.merger(path, file), known.who)
        is_brought = behind.is_from_side(path, file)
        merged_by = next((actor.email for actor in mergers if actor.is_admin and is_brought), None)
        authors = writers or mergers or verdict.actors
        return Provenance(
            commit=step.commit.oid, authors=tuple(sorted({a.email for a in authors})), merged_by=merged_by
        )


def _dropped(path: str) -> Denial:
    text = (
        f"{path}: a merge left out a change by somebody with the right to it, and that change counts; whoever wants it "
        "otherwise commits so, with a right to change the file"
    )
    return Denial(path, "LeftOutByMerge", text)


def _what(old: File | None, new: File | None) -> What:
    if old is None:
        return "create"
    return "delete" if new is None else "change"


def _is_request(path: str) -> bool:
    found = rule_of(path)
    return found is not None and found[0].kind == "GPR"
