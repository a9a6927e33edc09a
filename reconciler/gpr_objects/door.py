"""`egs-reconciler door`: turns GPR objects of a cluster into commits, and writes their requests' status back.

Thin: `reconciler.gpr_objects.object_changes` decides. A pass reads main, the status branch and the objects,
pushes the changes at once (a commit per object, each by its author), reads again, and only then writes the
objects' statuses. Main records what was done, so a pass may be interrupted anywhere and repeated.

The door writes main, or branches below `egs/gpr/` for people to merge; never the status branch. Several doors
of one cluster are safe: every push is a compare-and-swap. With a key it signs its commits as a service: the
trailer `On-Behalf-Of` names the person, for people that admission vouches for; the judge of main decides.

Held by tests/reconciler/clusters/kubernetes/test_door.py.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Event
from typing import Any

from reconciler.changes.push import TRIES, overrun, push, refused_push, unanswered
from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.admission.object_authors import (
    BINDING_PATH,
    POLICY_PATH,
    WEBHOOK_PATH,
    address_of,
    guarded_since,
)
from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE
from reconciler.documents.in_force import Desired
from reconciler.documents.restored_files import as_it_counts, last_read
from reconciler.gpr_objects.object_changes import door_actions, held_cancellations, orphans
from reconciler.gpr_objects.object_files import (
    Author,
    Edit,
    GprObject,
    ObjectsView,
    Origin,
    StatusPatch,
    Via,
    asked_from,
    branch_of,
)
from reconciler.gpr_objects.object_status import Refusal
from reconciler.model import backoff
from reconciler.model.statuses import live
from reconciler.settings import Settings
from reconciler.sources.source import has_no
from reconciler.status.branch import StatusBranch
from reconciler.store.believed_commit import Believes
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Outcome, Person, Store
from reconciler.store.trailers import person_name, with_trailers
from reconciler.trust.machines import machines_of, own_key, signing
from reconciler.trust.vouchers import speaking_for
from schemas.errors import EgsError, Fault, UserError
from schemas.export.crds import GROUP, PLURAL, VERSION
from schemas.reading.reader import READER_VERSION, rule_of
from schemas.rules.view import cluster_path, gpr_path
from schemas.status.gpr_status import HOLDING, GPRStatus

log = logging.getLogger(__name__)

GPRS = f"/apis/{GROUP}/{VERSION}"
SYNC_S = 60.0
"""Timeout of the first listing of objects."""
_TO_ALLOW = "allow the door to push there, or start it with --via branch"
MACHINE = Person("EGS door", "door@egs.dev")


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """Settings of one door; docs/reference/settings.md explains each."""

    cluster: str
    """Name of the cluster's document; the cluster's objects are read."""

    via: Via = "branch"
    """`commit`: to main, if admission vouches for the author; `branch`: a branch for people to merge."""

    pause: timedelta = timedelta(seconds=5)
    """Between two passes; objects created together go into one push."""


@dataclass(frozen=True, slots=True)
class Passed:
    edits: int = 0
    patches: int = 0
    held: str = ""  # digest of cancellations that need an admin's confirmation


class RequestDoor:
    """One cluster's objects and one repository. One owner; call `start` before the first `step`."""

    def __init__(
        self,
        api: Api,
        store: Store,
        cache: DocumentCache,
        settings: Settings,
        door: DoorSettings,
        *,
        believes: Believes | None = None,
    ) -> None:
        """`believes` recognises controllers' commits on the status branch; None: every commit counts."""
        self._api, self._store, self._settings, self._door = api, store, settings, door
        self._desired = Desired(store, cache)
        self._status = StatusBranch(store, settings, "door", believes)
        self.woken = Event()
        path = f"{GPRS}/{PLURAL}"
        self._objects: Informer[GprObject] = Informer(api, path, asked_from, wake=self.woken.set)
        self._namespaces: Informer[str] = Informer(
            api, "/api/v1/namespaces", _slice_label, NAMESPACE_SLICE, self.woken.set
        )
        self._quiet: _Seen | None = None  # inputs of the last pass that had nothing to do
        self._told = ""

    def start(self) -> None:
        self._objects.start()
        self._namespaces.start()

    def stop(self) -> None:
        self._objects.stop()
        self._namespaces.stop()

    def step(self, now: datetime) -> Passed:
        """One pass. Raises Fault if repository or cluster do not answer; what was done until then stays done."""
        self._wait_synced()
        edits, troubles = 0, dict[str, Refusal]()
        for _ in range(TRIES):
            seen = self._seen()
            if seen == self._quiet and not edits:
                return Passed()
            view = self._view(seen, now, troubles)
            held = self._tell_held(view)
            actions = door_actions(view)
            todo = [action for action in actions if isinstance(action, Edit)]
            if not todo:
                patches = [action for action in actions if isinstance(action, StatusPatch)]
                done = [self._patched(patch) for patch in patches]
                if not patches and not troubles:
                    self._quiet = seen
                return Passed(edits, sum(done), held)
            landed, refused = self._carry_out(todo, seen.tips, now)
            edits, troubles = edits + landed, troubles | refused
        raise Fault(overrun(TRIES, "retrying"), "Conflict")

    def _wait_synced(self) -> None:
        try:
            self._objects.wait_synced(SYNC_S)
        except Rejected as no:
            if no.status != 404:
                raise
            text = f"cluster {self._door.cluster} lacks the custom resource {PLURAL}.{GROUP}; apply deploy/crds to it"
            raise Fault(text, "ResourceMissing") from no
        self._namespaces.wait_synced(SYNC_S)

    # -- looking ---------------------------------------------------------------------------------------------

    def _seen(self) -> _Seen:
        main, status = self._settings.main_branch, self._settings.status_branch
        tips = self._store.fetch([main, status, branch_of(self._door.cluster, "*/*")])
        if main not in tips:
            raise Fault(has_no(main), "NoProject")
        guards = (self._api.find(path) for path in (POLICY_PATH, BINDING_PATH, WEBHOOK_PATH))
        return _Seen(dict(tips), self._objects.items(), self._namespaces.items(), guarded_since(*guards))

    def _view(self, seen: _Seen, now: datetime, troubles: Mapping[str, Refusal]) -> ObjectsView:
        main = seen.tips[self._settings.main_branch]
        self._desired.update(main)
        if self._desired.repository.absent(cluster_path(self._door.cluster)):
            text = f"main has no {cluster_path(self._door.cluster)}; correct --cluster, or add the document"
            raise UserError(text, "UnknownCluster")
        statuses = self._status.read(now).facts.requests
        view = ObjectsView(
            cluster=self._door.cluster,
            via=self._door.via,
            objects=seen.objects,
            namespaces=seen.namespaces,
            repository=self._desired.repository,
            text=lambda path: self._store.read_path(main, path) or b"",
            statuses=statuses,
            lost=self._lost(main, statuses),
            proposals=self._proposals(seen.tips, main),
            guarded_since=seen.guarded_since,
            troubles=troubles,
        )
        # The object cache may be stale after a broken watch: it is not enough to cancel a request.
        gone = {key for key, origin in orphans(view).items() if self._is_gone(origin)}
        return replace(view, gone=frozenset(gone))

    def _lost(self, main: str, statuses: Mapping[str, GPRStatus]) -> Mapping[str, bytes]:
        there, found = self._desired.repository, dict[str, bytes]()
        templates = {name: template.spec for name, template in there.templates.items()}
        for key, status in sorted(live(statuses).items()):
            path = gpr_path(*key.split("/"))
            if status.phase in HOLDING and there.absent(path):
                last = last_read(self._store, main, path)
                found[key] = as_it_counts(key, last, status.accepted_spec, templates)
        return found

    def _proposals(self, tips: Mapping[str, str], main: str) -> Mapping[str, bytes | None]:
        prefix, found = branch_of(self._door.cluster, ""), {}
        for branch, tip in sorted(tips.items()):
            key = branch.removeprefix(prefix)
            path = gpr_path(*key.split("/")) if branch.startswith(prefix) and key.count("/") == 1 else ""
            if rule_of(path) is not None and not self._store.is_ancestor(tip, main):
                found[key] = self._store.read_path(tip, path)
        return found

    def _is_gone(self, origin: Origin) -> bool:
        # If the custom resource itself is gone this raises: that is not a deletion of its objects.
        self._api.get(f"{GPRS}/{PLURAL}", limit=1)
        there = self._api.find(f"{GPRS}/namespaces/{origin.namespace}/{PLURAL}/{origin.name}")
        return there is None or there["metadata"]["uid"] != origin.uid or asked_from(there) is None

    def _tell_held(self, view: ObjectsView) -> str:
        held = held_cancellations(view)
        if held and held != self._told:
            log.warning(
                "cancellations held cluster=%s objects=%d; restore the objects, or have an admin confirm "
                "confirmedDeletions: [%s] in project.yaml",
                self._door.cluster, len(view.gone), held,
            )  # fmt: skip
        self._told = held
        return held

    # -- doing -----------------------------------------------------------------------------------------------

    def _carry_out(
        self, edits: Sequence[Edit], tips: Mapping[str, str], now: datetime
    ) -> tuple[int, dict[str, Refusal]]:
        """The number that landed, and why others never will; lost races are neither."""
        commits = [edit for edit in edits if edit.via == "commit"]
        proposed = [
            (branch_of(self._door.cluster, edit.key), [edit]) for edit in edits if edit.via == "branch"
        ]
        landed, refused = 0, dict[str, Refusal]()
        for branch, group in ([(self._settings.main_branch, commits)] if commits else []) + proposed:
            outcome = self._push(branch, group, tips, now)
            landed += len(group) if outcome is Outcome.COMMITTED else 0
            if outcome is Outcome.REFUSED:
                refused |= {
                    edit.key: Refusal(refused_push(branch, _TO_ALLOW), "PushFailed") for edit in group
                }
        return landed, refused

    def _push(self, branch: str, edits: Sequence[Edit], tips: Mapping[str, str], now: datetime) -> Outcome:
        """One commit per edit on main; an edit without changes resets its branch to main."""
        drafts = [self._draft(edit, now) for edit in edits if edit.changes]
        outcome, _ = push(self._store, branch, drafts, tips[self._settings.main_branch], tips.get(branch))
        if outcome is Outcome.UNKNOWN:
            raise Fault(unanswered("a push", "checking again"), "RemoteUnreachable")
        log.info("requests pushed branch=%s outcome=%s", branch, outcome.value)
        return outcome

    def _draft(self, edit: Edit, now: datetime) -> Draft:
        trailers = [f"Origin: {edit.origin}"]
        if edit.behalf:
            trailers.append(
                speaking_for(person_name(edit.author.name or edit.behalf) or "unknown", edit.behalf)
            )
        who = person_of(edit.author, self._door.cluster)
        return Draft(edit.changes, with_trailers(edit.subject, trailers), who, now)

    def _patched(self, patch: StatusPatch) -> bool:
        """A failure for one object stops no other; an object deleted meanwhile is handled in the next pass."""
        asked = patch.asked
        path = f"{GPRS}/namespaces/{asked.namespace}/{PLURAL}/{asked.name}/status"
        same = {"op": "test", "path": "/metadata/uid", "value": asked.uid}
        try:
            self._objects.learn(
                self._api.patch(path, [same, {"op": "add", "path": "/status", "value": patch.status}])
            )
        except Rejected as no:
            if no.status == 403:
                raise
            log.warning("status not written object=%s/%s message=%s", asked.namespace, asked.name, no)
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Seen:
    """The inputs of a pass; identical inputs mean that nothing can have changed."""

    tips: Mapping[str, str]
    objects: Mapping[str, GprObject]
    namespaces: Mapping[str, str]
    guarded_since: datetime | None


def _slice_label(namespace: Mapping[str, Any]) -> str | None:
    return (namespace["metadata"].get("labels") or {}).get(NAMESPACE_SLICE) or None


def person_of(author: Author, cluster: str) -> Person:
    """The commit's author; the address is a real person's only if admission vouches for it."""
    if not author.name:
        return MACHINE
    name = person_name(author.name) or "unknown"
    if not author.is_verified:
        return Person(f"{name} (unverified)", f"unverified@{cluster}.invalid")
    if address := address_of(author.name, cluster):
        return Person(name, address)
    local = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:64] or "unknown"
    return Person(name, f"{local}@{cluster}.invalid")


def run_door(api: Api, settings: Settings, door: DoorSettings, ended: Event) -> None:
    """Runs passes until `ended`; failures are logged and retried. Uses its own mirror, not the controller's."""
    clock, home = SystemClock(), settings.state / "doors" / door.cluster
    home.mkdir(parents=True, exist_ok=True)
    sign, believes = signing(own_key(settings.trust)), machines_of(settings.trust).controllers()
    store = GitStore(settings.repo, home / "mirror.git", credentials=settings.credentials, sign=sign)
    cache = DocumentCache(home / "documents.sqlite", READER_VERSION)
    requests = RequestDoor(api, store, cache, settings, door, believes=believes)
    try:
        requests.start()
        while not ended.is_set():
            requests.woken.clear()
            _repeat(lambda: requests.step(clock.now()), ended, replace(backoff.DOOR, first=door.pause))
            ended.wait(door.pause.total_seconds())
            _either(requests.woken, ended, (settings.poll - door.pause).total_seconds())
    finally:
        requests.stop()
        store.close()


def _repeat(do: Callable[[], object], ended: Event, pauses: backoff.Backoff) -> None:
    """Retries until done, with growing pauses; the log says who must act."""
    pause: timedelta | None = None
    while not ended.is_set():
        try:
            do()
        except EgsError as error:
            log.warning("door waits reason=%s message=%s", error.reason, error)
            pause = pauses.longer(pause)
            ended.wait(pause.total_seconds())
        else:
            return


def _either(woken: Event, ended: Event, within_s: float) -> None:
    left_s = within_s
    while left_s > 0 and not woken.is_set() and not ended.wait(min(0.5, left_s)):
        left_s -= 0.5
