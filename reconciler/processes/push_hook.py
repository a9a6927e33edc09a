"""The hook of a plain Git server: refuses what would be refused, or held, after landing.

Decides for each ref of a push, from the objects in quarantine; a push is refused as a whole or not at all:

  * main: no deletion, no rewriting, no new error in a document, and, where signatures are required, nothing
    that the controller would hold: its own gate judges here;
  * egs/status: commits of a controller, each newer than the head;
  * egs/agents/<cluster>/<agent> and egs/clusters/<cluster>: what that agent or applier signed;
  * machines that the server knows by name push their own ref only;
  * nothing else at or below `egs`, where it would block these, nor below refs/egs and refs/replace.

All other branches belong to people.

Imports no planner: a hook must be fast. Held by tests/reconciler/processes/test_push_hook.py and
tests/e2e/test_receive.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from reconciler.documents.in_force import Desired
from reconciler.health.agent_reports import FILE, SIGNATURE, speaks_for
from reconciler.model.evidence import GIT, Admitted
from reconciler.pulls.merged_tree import Merged
from reconciler.pulls.pull_documents import Documents, Known, introduced, keys_of, touches_many
from reconciler.pulls.queue_at_check import over_at
from reconciler.status.parse import UNREADABLE, facts_of, record_from, request_status
from reconciler.status.render import request_path
from reconciler.store.believed_commit import Believes
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import REGULAR_MODE, Store
from reconciler.store.trailers import Stamp, parse_stamp
from reconciler.trust.authority import SERVICE
from reconciler.trust.gate import Gate
from reconciler.trust.machines import Machines, Signed
from reconciler.trust.step_evidence import Sources
from schemas.documents.base import Metadata
from schemas.documents.cluster import Cluster, ClusterSpec
from schemas.errors import Fault
from schemas.reading.reader import READER_VERSION, read_document, rule_of
from schemas.reading.strict_yaml import MAX_BYTES, Refused, load, locate
from schemas.reading.units import LONG_NAME_PATTERN, NAME_PATTERN
from schemas.rules.check import forbidden_edits
from schemas.rules.problems import Problem, quoted
from schemas.rules.view import cluster_path
from schemas.status.gpr_status import Phase
from schemas.status.judgements import HeldChange, TrustRecord
from schemas.status.node_status import AgentReport

MAIN, STATUS = "main", "egs/status"
MOST_TOLD = 20
"""Sentences in the answer to one push, which is read in a terminal."""
MOST_COMMITS = 1000
"""Commits of a machine's branch in one push."""
MOST_ROUNDS = 250
"""Portions in which the gate judges one push."""

NEEDS_ADMIN = "NeedsAdmin"
"""The policy's rule for what waits for an admin."""

_HEADS = "refs/heads/"
_KEPT_FREE = re.compile(r"refs/(heads/egs|(egs|replace)(/.*)?)", re.DOTALL)
"""Reserved: such a branch would block `egs/status`, and the others affect how git reads."""
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = NAME_PATTERN.strip("^$")
_AGENT = re.compile(rf"egs/agents/(?P<cluster>{_NAME})/(?P<agent>{LONG_NAME_PATTERN.strip('^$')})")
_TRUST = re.compile(r"trust\.yaml|trust/[0-9]{3}\.yaml")
_APPLIER = re.compile(rf"egs/clusters/(?P<cluster>{_NAME})")
_PROPOSAL = re.compile(rf"egs/gpr/{_NAME}/{_NAME}/{_NAME}")
"""A door's branches, which people merge."""


@dataclass(frozen=True, slots=True)
class Push:
    """One ref to move; None: it did not exist before, or is deleted."""

    ref: str
    old: str | None
    new: str | None

    @property
    def branch(self) -> str:
        """Its name if it is a branch; else the whole ref."""
        return self.ref.removeprefix(_HEADS)


def pushes(lines: Iterable[str]) -> tuple[Push, ...]:
    """The lines that git gives a pre-receive hook, one per ref. ValueError for anything else."""
    found = []
    for line in lines:
        words = line.rstrip("\n").split(" ", 2)
        if len(words) != 3 or not all(_OID.fullmatch(word) for word in words[:2]):
            raise ValueError(f"{quoted(line)} is not a line of a receive hook")
        found.append(Push(words[2], _oid(words[0]), _oid(words[1])))
    return tuple(found)


def _oid(text: str) -> str | None:
    return text if text.strip("0") else None


def refusal_by_name(push: Push, pusher: str) -> str | None:
    """Why the pusher with this name may not change that ref; None: allowed, as far as names go."""
    if _KEPT_FREE.fullmatch(push.ref):
        return f"{quoted(push.ref)}: this ref is reserved; choose another name"
    own = _own_ref(pusher)
    if own is not None and push.branch != own:
        return f"{quoted(push.ref)}: {quoted(pusher)} may only push {own}"
    if push.new is None and (push.branch == MAIN or push.branch.startswith("egs/")):
        return f"{quoted(push.ref)}: this branch may not be deleted, except by the server's administrator"
    is_service = pusher.startswith(SERVICE) and _PROPOSAL.fullmatch(push.branch) is not None
    if own is None and push.branch.startswith("egs/") and pusher and not is_service:
        return f"{quoted(push.ref)}: only machines write branches below egs/"
    return None


def _own_ref(pusher: str) -> str | None:
    """The only branch of a machine; None for people, and for services, which push for people."""
    kind, colon, name = pusher.partition(":")
    if pusher == "controller":
        return STATUS
    folders = {"agent": "egs/agents", "applier": "egs/clusters"}
    return f"{folders[kind]}/{name}" if colon and kind in folders else None


@dataclass(frozen=True, slots=True)
class Receiver:
    """Decides about pushes to one repository. `pusher` is the server's name for the pusher; empty: unknown."""

    store: Store
    sources: Sources
    machines: Machines
    pusher: str
    now: datetime

    def refusals(self, wanted: Iterable[Push]) -> list[str]:
        """All reasons to refuse this push; empty if it is allowed. UserError and Fault pass through."""
        return [sentence for push in wanted for sentence in self._refusals(push)]

    def _refusals(self, push: Push) -> Iterable[str]:
        by_name = refusal_by_name(push, self.pusher)
        if by_name is not None:
            return [by_name]
        if push.new is None or not push.ref.startswith(_HEADS):
            return []
        if push.branch == MAIN:
            return self._of_main(push.old, push.new)
        if push.branch == STATUS:
            return self._of_machine(push.branch, push.old, push.new, self.machines.controllers())
        agent, applier = _AGENT.fullmatch(push.branch), _APPLIER.fullmatch(push.branch)
        if agent is not None:
            return self._of_agent(push.branch, agent["cluster"], agent["agent"], push.new)
        if applier is not None:
            return self._of_applier(push, applier["cluster"])
        if _PROPOSAL.fullmatch(push.branch):
            return self._of_service(push.branch, push.new)
        if push.branch.startswith("egs/"):
            return [f"{quoted(push.ref)}: branches below egs/ are reserved for known machines"]
        return []

    # -- main ------------------------------------------------------------------------------------------------

    def _of_main(self, old: str | None, new: str) -> list[str]:
        if old is None:
            # The first push: no person is listed yet, so only the documents can be checked.
            return _sentences(_errors(Desired(self.store, DocumentCache(None, READER_VERSION)), new))
        if not self.store.is_ancestor(old, new):
            return [
                f"main: {new[:12]} is not built on {old[:12]}; main must not be rewritten: fetch it, and rebase your "
                "changes on top"
            ]
        changes = {entry.path: entry for entry in self.store.diff(old, new)}
        merge = Merged(old, new, old, 0, changes)
        found = _sentences(self._problems(merge))
        return [*found, *self._held(old, new)] if len(found) < MOST_TOLD else found

    def _problems(self, merge: Merged) -> list[Problem]:
        status = self.store.tips().get(STATUS)
        over: Collection[str] = ()
        if status is not None and touches_many(merge.changes):
            over = over_at(self.store, status)
        phases = {} if status is None else self._phases(status, merge)
        live = {"/".join(key) for key in phases}
        documents = Documents(self.store, merge, Known(since=(), live=live, over=over))
        before, base = documents.desired.problems, documents.desired.repository.copy()
        documents.merge()
        found = introduced(before, documents.desired.problems, merge)
        for edit in forbidden_edits(base, documents.desired.repository, phases):
            oid = merge.changes[edit.file].oid if edit.file in merge.changes else None
            found.add(edit.problem(None if oid is None else locate(self.store.read([oid])[oid])))
        return sorted(problem for problem in found if problem.severity == "error")

    def _phases(self, status: str, merge: Merged) -> dict[tuple[str, str], Phase]:
        """The committed phases of the pushed requests; unreadable records count as none."""
        found = {}
        for key in sorted(keys_of(merge.changes)):
            data = self.store.read_path(status, request_path(key))
            with suppress(*UNREADABLE):
                if data is not None:
                    slice_, _, name = key.partition("/")
                    found[slice_, name] = request_status(data).phase
        return found

    def _held(self, old: str, new: str) -> list[str]:
        """What the controller would hold of it, by the controller's own gate."""
        if self.sources.level == "none":
            return []
        gate = Gate(self.store, DocumentCache(None, READER_VERSION), self.sources)
        judged = self._trust(old)
        # Where no controller has judged yet, main as it is will count as authorised: nothing may wait there.
        record = judged or TrustRecord(metadata=Metadata(name="trust"), main=old)
        before = self._judged(gate, old, record)
        after = self._judged(gate, new, record)
        if after.alarm:
            return [f"main: {after.alarm}"]
        if before.has_more or after.has_more:
            return [_unjudged(old if before.has_more else new)]
        known = set(before.record.held) if before.record is not None else set()
        held = after.record.held if after.record is not None else ()
        there = {entry.path for entry in self.store.diff(None, old)}
        fresh = [
            f"{change.message} ({change.rule}, {change.commit[:12]})"
            for change in held
            if change not in known and not (judged and _waits(change, there))
        ]
        return _cut(fresh)

    def _trust(self, old: str) -> TrustRecord | None:
        """How far the controller judged main; None: it never did, and main as it is counts."""
        status = self.store.tips().get(STATUS)
        if status is None:
            return None
        paths = [e for e in self.store.diff(None, status) if e.oid is not None and _TRUST.fullmatch(e.path)]
        blobs = self.store.read(entry.oid for entry in paths if entry.oid is not None)
        records = {e.path: record_from(e.path, blobs[e.oid or ""]) for e in paths}
        found = facts_of({p: r for p, r in records.items() if r is not None}, self.now, "").trust
        return found if found is not None and self._is_known(found.main, old) else None

    def _is_known(self, judged: str, old: str) -> bool:
        try:
            return self.store.is_ancestor(judged, old)
        except Fault:
            return False

    def _judged(self, gate: Gate, main: str, record: TrustRecord) -> Admitted:
        admitted = gate.admit(main, record, "", self.now)
        for _ in range(MOST_ROUNDS):
            if not admitted.has_more:
                break
            admitted = gate.admit(main, record, "", self.now)
        return admitted

    # -- machines --------------------------------------------------------------------------------------------

    def _of_machine(self, branch: str, old: str | None, new: str, believes: Believes | None) -> list[str]:
        """Every new commit is the machine's own, and the head is newer than the previous one."""
        if believes is None:
            return []
        commits = self.store.log(new, MOST_COMMITS)
        for commit in commits:
            if commit.oid == old:
                break
            if not believes(commit):
                return [f"{branch}: {commit.oid[:12]} is not signed by the owner of this branch"]
        before = None if old is None else parse_stamp(self.store.commit(old).trailers)
        if before is not None and not _is_newer(parse_stamp(commits[0].trailers), before):
            return [f"{branch}: {new[:12]} is not newer than the present head; a branch must not be reset"]
        return []

    def _of_applier(self, push: Push, cluster: str) -> list[str]:
        assert push.new is not None, "deletions were refused above"
        spec = self._cluster(cluster)
        if spec is None:
            return [f"{push.branch}: there is no cluster {cluster}"]
        return self._of_machine(push.branch, push.old, push.new, self.machines.applier(cluster, spec))

    def _of_service(self, branch: str, new: str) -> list[str]:
        """A proposal signed by a service, or main's own commit: so a door withdraws one."""
        main, sources = self.store.tips().get(MAIN), self.sources
        if sources.level == "none" or (main is not None and self.store.is_ancestor(new, main)):
            return []
        commit = self.store.commit(new)
        key = None
        if sources.verifier is not None and commit.signature:
            key = sources.verifier.key_of(GIT, commit.payload, commit.signature)
        principals = () if key is None else sources.keyring().principals(key, GIT, self.now)
        if any(principal.startswith(SERVICE) for principal in principals):
            return []
        return [f"{branch}: {new[:12]} is not signed by a service; people must use other branches"]

    def _of_agent(self, branch: str, cluster: str, agent: str, new: str) -> list[str]:
        spec = self._cluster(cluster)
        if spec is None:
            return [f"{branch}: there is no cluster {cluster}"]
        if not self.machines.asks(cluster, spec):
            return []
        files = self._plain(new, FILE, SIGNATURE)
        data, signature = files.get(FILE, b""), files.get(SIGNATURE, b"").decode("ascii", "replace")
        report = _report(data)
        unsigned = [f"{branch}: {FILE} is not signed by agent {agent} of cluster {cluster}"]
        if report is None:
            return unsigned
        if not self.machines.believes(Signed(cluster, agent, data, signature, report.at), spec):
            return unsigned
        if not speaks_for(report, cluster, agent):
            return [f"{branch}: {FILE} is about another node, cluster or agent than the branch"]
        return []

    def _plain(self, commit: str, *names: str) -> dict[str, bytes]:
        """Those of a commit's files that the controller would read."""
        entries = self.store.diff(None, commit)
        there = {e.path: e.oid for e in entries if e.path in names and e.mode == REGULAR_MODE and e.oid}
        sizes = self.store.sizes(there.values())
        small = {path: oid for path, oid in there.items() if sizes[oid] <= MAX_BYTES}
        contents = self.store.read(small.values())
        return {path: contents[oid] for path, oid in small.items()}

    def _cluster(self, name: str) -> ClusterSpec | None:
        main = self.store.tips().get(MAIN)
        path = cluster_path(name)
        data = None if main is None else self.store.read_path(main, path)
        document = None if data is None else read_document(path, data)
        return document.spec if isinstance(document, Cluster) else None


def _waits(change: HeldChange, there: Collection[str]) -> bool:
    """Everyone may request a slice: on main the file has no effect before an admin approves it.

    `there` are the paths before the push: only known people change existing files.
    """
    rule = rule_of(change.path)
    is_asked = rule is not None and rule[0].kind == "WorkspaceRequest" and change.path not in there
    return change.found is not None and (change.rule == NEEDS_ADMIN or is_asked)


def _unjudged(commit: str) -> str:
    return (
        f"main: too many changes up to {commit[:12]} to judge in one push; push them in smaller parts, each "
        "after the controller has processed the previous one"
    )


def _is_newer(stamp: Stamp | None, before: Stamp) -> bool:
    return stamp is not None and (stamp.term, stamp.seq) > (before.term, before.seq)


def _report(data: bytes) -> AgentReport | None:
    try:
        return AgentReport.model_validate_json(json.dumps(load(data)), extra="ignore")  # of a newer agent
    except (Refused, ValueError):
        return None


def _errors(desired: Desired, commit: str) -> list[Problem]:
    desired.update(commit)
    return [problem for problem in desired.problems if problem.severity == "error"]


def _sentences(problems: Sequence[Problem]) -> list[str]:
    return _cut(
        [f"{quoted(p.file)}:{p.line}: {quoted(p.message)}; {quoted(p.fix)} ({p.rule})" for p in problems]
    )


def _cut(sentences: list[str]) -> list[str]:
    more = len(sentences) - MOST_TOLD
    return [*sentences[:MOST_TOLD], f"and {more} more"] if more > 0 else sentences
