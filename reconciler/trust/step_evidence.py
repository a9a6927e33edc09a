"""One step of main: which of its changes count, by all available evidence.

Evidence is gathered here and judged in `reconciler.trust.verdict`. All changes of a step are judged by the
people before it; only then does the tree advance.

Held by tests/reconciler/trust/test_policy_matrix.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial

from reconciler.forges.forge_port import Forge
from reconciler.forges.review_evidence import forge_vouchers
from reconciler.model.evidence import Actor, Denial, Level, Verifier, Voucher
from reconciler.store.store_port import Entry, Store
from reconciler.trust.authorised_tree import Authorised, Documents
from reconciler.trust.authority import Authority
from reconciler.trust.keyring import Keyring
from reconciler.trust.policy import Change, What, is_governed
from reconciler.trust.verdict import ASKED, Evidence, How, Verdict, Who, judge, shown
from reconciler.trust.vouchers import Behind, File, Signers, Step, file_of
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.documents.base import Document
from schemas.reading.reader import rule_of
from schemas.status.gpr_status import Provenance

_EMPTY = Keyring()
PORTION = 1000
"""Files judged in one call: about a second. The rest waits for the next call, so nothing is blocked."""
MOST_INSIDE = 100
"""Signatures in approval files checked per step; further files are held and can be submitted again."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of evidence; a missing one identifies no one."""

    level: Level = "none"
    keyring: Callable[[], Keyring] = lambda: _EMPTY
    """Raises Fault if the operator's folder is unreadable: then no change is judged."""
    verifier: Verifier | None = None
    forge: Forge | None = None
    branch: str = "main"


@dataclass(frozen=True, slots=True)
class Assessed:
    """The result of one step."""

    verdicts: Mapping[str, Verdict]  # of the files that differ from what counted, by path
    provenance: Mapping[str, Provenance]  # of requests' files that count now, by path
    work: int  # number of reads of one object or difference
    files: int  # number of files changed


@dataclass(slots=True)
class _Open:
    """A step judged in portions; the tree stays as it is until all are done."""

    known: _Known
    found: Mapping[str, File | None]  # its changes of governed files
    left: list[str]  # paths that differ from what counts and are not judged yet
    verdicts: dict[str, Verdict]
    provenance: dict[str, Provenance]


@dataclass(slots=True)
class _Known:
    """Everything needed to judge one step."""

    step: Step
    behind: Behind
    who: Callable[[Voucher, str], Actor | None]  # the entries of that slice take precedence
    authority: Authority
    now: datetime
    inside: int = 0  # number of signatures in files checked so far

    def who_in(self, path: str) -> Who:
        """Who evidence about this path identifies."""
        return lambda voucher: self.who(voucher, _slice_of(path))

    def author(self, path: str, voucher: Voucher) -> str | None:
        """The address of a request's author."""
        return self.authority.address(voucher, self.now, _slice_of(path))


class Assessor:
    """Judges steps against one authorised tree. One owner."""

    def __init__(self, store: Store, documents: Documents, tree: Authorised, sources: Sources) -> None:
        self._store, self._documents, self._tree, self._sources = store, documents, tree, sources
        self._signers = None if sources.verifier is None else Signers(sources.verifier)
        self._open: _Open | None = None

    def take(self, step: Step, entries: Callable[[], Iterable[Entry]], now: datetime) -> Assessed | None:
        """Advances the tree by one step; `entries` are the step's changes.

        A step of more than `PORTION` files takes several calls. The tree is unchanged after a Fault, and after
        None, which means unfinished.
        """
        open_ = self._open
        if open_ is None or open_.known.step.commit.oid != step.commit.oid:
            open_ = self._begun(step, entries(), now)
        self._open = None  # after a Fault the step begins again
        portion, open_.left = open_.left[:PORTION], open_.left[PORTION:]
        self._judge({path: open_.found[path] for path in portion}, open_)
        if open_.left:
            self._open = open_
            return None
        known, found = open_.known, open_.found
        left_out = self._left_out(found, known)
        self._move_on(step, found, open_.verdicts, known.now)
        for path, (rejection, on_main) in left_out.items():
            self._tree.accept({path: rejection})
            self._tree.hold(_kept(path), on_main, step.commit.oid, known.now)
        return Assessed(open_.verdicts, open_.provenance, 1 + known.behind.work, len(found))

    def forget(self) -> None:
        """The tree changed since the step was begun."""
        self._open = None

    def _begun(self, step: Step, entries: Iterable[Entry], now: datetime) -> _Open:
        keyring = self._sources.keyring()
        found = {e.path: file_of(e.oid, e.mode) for e in entries if is_governed(e.path)}
        changed = [path for path, file in found.items() if file != self._tree.file(path)]
        authority = self._tree.authority(keyring)
        behind = self._behind(step, keyring, now)
        known = _Known(step, behind, cache(lambda v, s: authority.actor(v, now, slice_=s)), authority, now)
        return _Open(known, found, changed, {}, {})

    def _judge(self, changed: Mapping[str, File | None], open_: _Open) -> None:
        """All changes of a step are judged by the people before it."""
        known = open_.known
        changes = self._changes(changed, known)
        open_.verdicts |= {
            path: judge(changes[path], self._evidence(path, file, known), known.who_in(path))
            for path, file in sorted(changed.items())
        }
        open_.provenance |= {
            path: self._provenance(path, file, known, open_.verdicts[path])
            for path, file in changed.items()
            if file is not None and open_.verdicts[path].denial is None and _kind_of(path) == "GPR"
        }

    def _move_on(
        self, step: Step, found: Mapping[str, File | None], verdicts: Mapping[str, Verdict], now: datetime
    ) -> None:
        """A file without a verdict is as it counted before: that ends a hold."""
        held = {path for path, verdict in verdicts.items() if verdict.denial is not None}
        self._tree.accept({path: file for path, file in found.items() if path not in held})
        for path in sorted(held):
            denial = verdicts[path].denial
            assert denial is not None, "only denied changes are held"
            self._tree.hold(denial, found[path], step.commit.oid, now)

    def _left_out(
        self, found: Mapping[str, File | None], known: _Known
    ) -> dict[str, tuple[File, File | None]]:
        """Rejections by admins that the step's sides have but its result lacks, each with main's content.

        Main may have had them: the person who pushes chooses what a merge takes, and could silently undo an
        admin's rejection. A rejection still counts unless an entitled admin replaced it or made this merge.
        """
        if self._sources.level not in ("signature", "both"):
            return {}
        result: dict[str, tuple[File, File | None]] = {}
        for path in sorted(p for p in known.behind.side_paths() if _kind_of(p) == "Approval"):
            held = self._tree.held.get(path)
            raw = self._tree.file(path) if held is None else file_of(held.found, held.mode)
            on_main, may = found.get(path, raw), partial(_may_replace, path, known)
            if may(on_main, known.behind.merger(path, on_main)):
                continue
            for file in known.behind.unreplaced(path, may):
                if file not in (on_main, self._tree.file(path)) and self._rejects(path, file):
                    result[path] = (file, on_main)
        return result

    def _rejects(self, path: str, file: File) -> bool:
        document = self._documents.read({path: file}).get(path)
        return isinstance(document, Approval) and document.spec.decision == "reject"

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
        """Handle of the admin whose valid signature is in an approval."""
        verifier = self._sources.verifier
        if verifier is None or not isinstance(document, Approval) or document.spec.signature is None:
            return ""
        known.inside += 1
        if known.inside > MOST_INSIDE:
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
        """The authors of a request's content; the merger too, if that is another person.

        The signer of a side commit that changed the file is an author, even if the change was overwritten
        since. If such a commit identifies no one, the merger counts as an author: leaving a commit unsigned
        must not allow approving one's own request.
        """
        behind, step = known.behind, known.step
        mergers = shown(behind.merger(path, file), known.who_in(path))
        is_brought = behind.is_from_side(path, file)
        merged_by = next((actor.email for actor in mergers if actor.is_admin and is_brought), None)
        authors, is_complete = self._writers(path, known)
        if not authors or not is_complete:
            authors = authors | {actor.email for actor in mergers}
        authors = authors or {actor.email for actor in verdict.actors}
        return Provenance(commit=step.commit.oid, authors=tuple(sorted(authors)), merged_by=merged_by)

    def _writers(self, path: str, known: _Known) -> tuple[set[str], bool]:
        """Addresses of the authors of its parts, and whether every part has an identified author."""
        by_part = [[known.author(path, v) for v in part] for part in known.behind.writers(path)]
        openers = (known.author(path, v) for v in self._openers(known.step))
        found = {email for emails in (*by_part, openers) for email in emails if email is not None}
        return found, all(any(part) for part in by_part)


def _may_replace(path: str, known: _Known, file: File | None, vouchers: tuple[Voucher, ...]) -> bool:
    """True if these may replace any existing decision with this file."""
    change = Change(path, "delete" if file is None else "change")
    return judge(change, {"signature": vouchers}, known.who_in(path)).denial is None


def _kept(path: str) -> Denial:
    text = (
        f"{path}: a merge dropped an admin's rejection, which still counts; to change it, that admin "
        "must replace it with their own commit"
    )
    return Denial(path, "LeftOutByMerge", text)


def _what(old: File | None, new: File | None) -> What:
    if old is None:
        return "create"
    return "delete" if new is None else "change"


def _kind_of(path: str) -> str:
    found = rule_of(path)
    return "" if found is None else found[0].kind


def _slice_of(path: str) -> str:
    """The slice that a file belongs to; empty: none."""
    found = rule_of(path)
    return "" if found is None else found[1].get("slice", "")
