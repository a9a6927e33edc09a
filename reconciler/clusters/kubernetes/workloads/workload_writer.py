"""Workloads in a cluster: applied, watched and removed as a ServiceAccount with the rights of the slice's members.

So the cluster itself judges what a workload may do, and the controller needs no right on any of these objects. Every
write first takes the slice's claim, which refuses older stamps. An object that others changed is known by the fields
that we own: the server takes a field from us when others change it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected, refused
from reconciler.clusters.kubernetes.names import (
    MANAGER,
    NAMESPACE_SLICE,
    OBJECT_STAMP,
    OWNER,
    REQUEST_UID,
    WORKLOAD,
    WORKLOAD_ACCOUNT,
)
from reconciler.clusters.kubernetes.nodes.node_marks import write_stamp
from reconciler.clusters.kubernetes.tenancy.object_repair import AGAIN, Quarrels
from reconciler.clusters.kubernetes.tenancy.slice_inventory import Claims
from reconciler.clusters.kubernetes.workloads.endpoint_states import ready_of
from reconciler.clusters.kubernetes.workloads.object_states import state_of
from reconciler.clusters.kubernetes.workloads.workload_records import (
    AppliedObject,
    WorkloadRecord,
    WorkloadRecords,
)
from reconciler.model.cluster_port import Answer, Busy, Done, Refused, Stamp
from reconciler.model.workload_port import (
    ENDPOINT_LABEL,
    LEAST_REPLICAS,
    TO_APPLY,
    ObjectView,
    PlacedWorkload,
    WorkloadObject,
    WorkloadTerms,
)
from schemas.documents.workload import RENDERED_KINDS
from schemas.status.workload_status import ObjectState

LOOK = timedelta(seconds=10)
"""How old a listing of objects may be: no watch could be held as each slice's account."""
KEPT = "PersistentVolumeClaim"
"""Objects with data are never deleted."""
HANDED_OVER = f"{MANAGER}-handed-over"
"""Field manager that keeps a number of replicas until a scaler writes its own, or for good where there is none."""
_TEXT = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects of workloads of one kind in one namespace, by name; or why they cannot be listed."""

    at: datetime
    items: Mapping[str, Json]
    trouble: str = ""


class Workloads:
    """One project's workloads in one cluster. Calls must come from one thread at a time."""

    def __init__(
        self, api: Api, namespace: str, project: str, claims: Claims, wake: Callable[[], None]
    ) -> None:
        self._api, self._project, self._claims = api, project, claims
        self._records = WorkloadRecords(api, namespace, project, wake)
        self.informer = self._records.informer
        self._listings: dict[tuple[str, str, str], Listing] = {}
        self._quarrels = Quarrels()

    # --- what is ---

    def placed(self, now: datetime) -> Mapping[str, PlacedWorkload]:
        """Every workload with a record, and the state of its objects; lists each kind at most every `LOOK`."""
        self.informer.wait_synced()
        records = self._records.all()
        found = {
            key: PlacedWorkload(
                key,
                record.namespace,
                record.run,
                record.digest,
                tuple(self._view(record, each, now) for each in record.objects),
            )
            for key, record in records.items()
        }
        used = {(r.namespace, each.api, each.kind) for r in records.values() for each in r.objects}
        self._listings = {place: listing for place, listing in self._listings.items() if place in used}
        return found

    def _view(self, record: WorkloadRecord, each: AppliedObject, now: datetime) -> ObjectView:
        if each.reason:
            return ObjectView(each.kind, each.name, ObjectState.REFUSED, each.reason, each.message)
        listing = self._listing(record.namespace, each.api, each.kind, now)
        if listing.trouble:
            return ObjectView(each.kind, each.name, ObjectState.PENDING, "NotRead", listing.trouble)
        item = listing.items.get(each.name)
        if item is None or not self._is_of(item, record.key):
            return ObjectView(each.kind, each.name, ObjectState.MISSING)
        told = state_of(each.kind, item)
        if told[0] not in {ObjectState.SUCCEEDED, ObjectState.FAILED} and _fields(item) != each.fields:
            text = f"changed by {_other(item)}; it is applied again"
            return ObjectView(each.kind, each.name, ObjectState.CHANGED, "ObjectChanged", text)
        return ObjectView(each.kind, each.name, *told[:2], told[2][:_TEXT], ready_of(each.kind, item))

    def _listing(self, namespace: str, api: str, kind: str, now: datetime) -> Listing:
        place = (namespace, api, kind)
        known = self._listings.get(place)
        if known is None or not known.at <= now < known.at + LOOK:
            known = self._listings[place] = self._listed(place, now)
        return known

    def _listed(self, place: tuple[str, str, str], now: datetime) -> Listing:
        namespace, api, kind = place
        try:
            items = self._as_slice(namespace).items(_path(api, kind, namespace), labelSelector=WORKLOAD)
            return Listing(now, {str(item["metadata"]["name"]): item for item in items})
        except Rejected as no:
            if no.status == 404:  # the namespace or the kind is gone
                return Listing(now, {})
            return Listing(now, {}, str(no)[:_TEXT])  # of one kind, which may be another project's

    def _is_of(self, item: Json, key: str) -> bool:
        own = item["metadata"].get("labels") or {}
        slice_, _, name = key.partition("/")
        return (own.get(NAMESPACE_SLICE), own.get(WORKLOAD), own.get(OWNER)) == (slice_, name, self._project)

    # --- what shall be ---

    def run(self, terms: WorkloadTerms, stamp: Stamp, now: datetime) -> Answer:
        """Applies each object that differs, then removes what is no longer wanted: no route leads to what is gone."""
        self.informer.wait_synced()
        if (late := self._fenced(terms.slice, stamp)) is not None:
            return late
        record = self._records.get(terms.key)
        if record is not None and (record.run, record.namespace) != (terms.run, terms.namespace):
            return Busy(now + AGAIN, f"the objects of the last run of {terms.key} are being removed")
        try:
            return self._made_so(terms, record, stamp, now)
        except Rejected as no:
            if no.status != 409:
                raise
            return Busy(now + AGAIN, f"the record of workload {terms.key} was changed concurrently")

    def _made_so(
        self, terms: WorkloadTerms, before: WorkloadRecord | None, stamp: Stamp, now: datetime
    ) -> Answer:
        old = {} if before is None else {each.id: each for each in before.objects}
        new = {each.id: old.get(each.id) or _begun(each) for each in terms.objects}
        record = before or WorkloadRecord(terms.key, terms.namespace, terms.run, "")
        record = self._kept(replace(record, objects=(*{**old, **new}.values(),)), before)
        views = (
            {} if before is None else {each.id: self._view(before, each, now).state for each in old.values()}
        )
        same = before is not None and before.digest == terms.digest
        for each in terms.objects:
            fine = same and views.get(each.id, ObjectState.MISSING) not in TO_APPLY
            if not fine and each.id not in terms.ended:
                new[each.id] = self._applied(terms, each, new[each.id], stamp, now)
        troubles = [
            self._dropped(terms.key, terms.namespace, each) for name, each in old.items() if name not in new
        ]
        # An object that could not be removed stays on record.
        left = [old[trouble[0]] for trouble in troubles if trouble is not None]
        wanted = replace(record, digest=terms.digest, objects=(*new.values(), *left))
        self._kept(wanted, record)
        self._listings = {p: known for p, known in self._listings.items() if p[0] != terms.namespace}
        told = [trouble[1] for trouble in troubles if trouble is not None]
        told += [Refused(each.reason, each.message) for each in new.values() if each.reason]
        return told[0] if told else Done()

    def _kept(self, record: WorkloadRecord, before: WorkloadRecord | None) -> WorkloadRecord:
        return record if record == before else self._records.write(record)

    def _applied(
        self, terms: WorkloadTerms, each: WorkloadObject, known: AppliedObject, stamp: Stamp, now: datetime
    ) -> AppliedObject:
        """The object as it stands on record after it was applied, or refused."""
        body = self._body(terms, each, stamp)
        api = body["apiVersion"]
        path = _path(api, each.kind, terms.namespace, each.name)
        if self._quarrels.rests_until(path, each.body, now) is not None:
            return known
        self._quarrels.repaired(path, each.body, now)
        caller, blank = self._as_slice(terms.namespace), AppliedObject(api, each.kind, each.name)
        try:
            found = caller.find(path)
            if found is not None and not self._is_of(found, terms.key):
                text = f"{each.id} in namespace {terms.namespace} is not of workload {terms.key}; rename one of the two"
                return replace(blank, reason="ObjectTaken", message=text)
            self._counted(caller, path, found, body)
            return replace(blank, fields=_fields(caller.apply(path, body)))
        except Rejected as no:
            return _refusal(blank, terms, no)

    def _counted(self, caller: Api, path: str, found: Json | None, body: Json) -> None:
        """A number of replicas that is left to a scaler does not fall, and is the least one until a scaler is there."""
        count = handed_over(found, body)
        if count is None:
            return
        number = {"apiVersion": body["apiVersion"], "kind": body["kind"], "spec": {"replicas": count}}
        if found is None:  # made with that number, else it would begin with 1
            caller.apply(path, {**body, "spec": {**body["spec"], "replicas": count}})
        caller.apply(path, {**number, "metadata": {"name": body["metadata"]["name"]}}, manager=HANDED_OVER)

    def _body(self, terms: WorkloadTerms, each: WorkloadObject, stamp: Stamp) -> Json:
        body: Json = json.loads(each.body)
        meta = body["metadata"]
        own = {NAMESPACE_SLICE: terms.slice, WORKLOAD: terms.name, OWNER: self._project}
        notes = {OBJECT_STAMP: write_stamp(stamp), REQUEST_UID: terms.run.uid}
        meta = {
            **meta,
            "namespace": terms.namespace,
            "labels": {**(meta.get("labels") or {}), **own},
            "annotations": {**(meta.get("annotations") or {}), **notes},
        }
        return {**body, "metadata": meta}

    # --- what shall be no more ---

    def end(self, key: str, stamp: Stamp, now: datetime) -> Answer:
        """Removes its objects, then its record."""
        self.informer.wait_synced()
        if (late := self._fenced(key.partition("/")[0], stamp)) is not None:
            return late
        record = self._records.get(key)
        if record is None:
            return Done()
        troubles = [self._dropped(key, record.namespace, each) for each in reversed(record.objects)]
        told = [trouble[1] for trouble in troubles if trouble is not None]
        if told:
            return told[0]
        try:
            self._records.delete(record)
        except Rejected as no:
            if no.status != 409:
                raise
            return Busy(now + AGAIN, f"the record of workload {key} was changed concurrently")
        return Done()

    def _dropped(self, key: str, namespace: str, each: AppliedObject) -> tuple[str, Refused] | None:
        """Deletes the object if it is still the workload's; why it could not be, with its Kind/name."""
        if each.kind == KEPT:
            return None
        path, caller = _path(each.api, each.kind, namespace, each.name), self._as_slice(namespace)
        try:
            found = caller.find(path)
            if found is not None and self._is_of(found, key):
                caller.delete(path, uid=found["metadata"]["uid"])
        except Rejected as no:
            has_left = namespace not in self._claims.get(key.partition("/")[0]).made
            if no.status in {404, 409} or (no.status == 403 and has_left):
                return None  # gone, or the namespace has left the slice: users' objects in it stay
            return each.id, refused(no)
        return None

    def _fenced(self, slice_: str, stamp: Stamp) -> Refused | None:
        claim = self._claims.take(slice_, stamp, lambda claim: claim)
        return claim if isinstance(claim, Refused) else None

    def _as_slice(self, namespace: str) -> Api:
        return self._api.acting_as(namespace, WORKLOAD_ACCOUNT)


def _begun(each: WorkloadObject) -> AppliedObject:
    """On record before it is applied; `fields` that match nothing, so that it is removed after a crash."""
    return AppliedObject(str(json.loads(each.body)["apiVersion"]), each.kind, each.name, fields="-")


def _path(api: str, kind: str, namespace: str, name: str = "") -> str:
    group = f"/apis/{api}" if "/" in api else f"/api/{api}"
    return f"{group}/namespaces/{namespace}/{RENDERED_KINDS[kind].plural}" + (f"/{name}" if name else "")


def _fields(item: Json) -> str:
    """The digest of the fields that we own."""
    own = [
        entry.get("fieldsV1")
        for entry in item["metadata"].get("managedFields") or ()
        if entry.get("manager") == MANAGER and entry.get("operation") == "Apply"
    ]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]


def handed_over(found: Json | None, body: Json) -> int | None:
    """The number of replicas to write before `body` leaves it to a scaler; None: it stays as it is.

    Ours, left out, would fall to 1 for a moment; a lower one than the least is one that no scaler wrote.
    """
    least = body["metadata"]["annotations"].get(LEAST_REPLICAS)
    if least is None or ENDPOINT_LABEL not in body["metadata"]["labels"]:
        return None
    if found is None:
        return int(least)
    entries = found["metadata"].get("managedFields") or ()
    own = (e.get("fieldsV1") or {} for e in entries if e.get("manager") == MANAGER)
    is_ours = any("f:replicas" in (fields.get("f:spec") or {}) for fields in own)
    have = int(found["spec"].get("replicas", 1))
    return max(have, int(least)) if is_ours or have < int(least) else None


def _other(item: Json) -> str:
    """The last other writer of the object itself."""
    entries = [
        entry
        for entry in item["metadata"].get("managedFields") or ()
        if entry.get("manager") != MANAGER and not entry.get("subresource")
    ]
    newest = max(entries, key=lambda entry: str(entry.get("time") or ""), default=None)
    return "others" if newest is None else str(newest["manager"])


def _refusal(blank: AppliedObject, terms: WorkloadTerms, no: Rejected) -> AppliedObject:
    """The refusal of one object, as a sentence; raises `no` if the whole server has a problem."""
    answer, text = refused(no), str(no)
    if no.status == 403 and "impersonate" not in text:
        reason, said = "RightsMissing", f"the members of slice {terms.slice} may not do this: {text}"
    elif no.status == 404 and "namespaces" not in str(no.body.get("message", "")):
        reason, said = (
            "KindNotServed",
            f"the cluster does not serve {blank.kind} ({blank.api}); its admin installs it",
        )
    elif no.status == 422 and (fields := _immutable(no.body)):
        reason = "ObjectImmutable"
        said = (
            f"{fields} of {blank.id} cannot be changed while it exists; give it another name in the document"
        )
    else:
        reason, said = answer.reason, text
    return replace(blank, reason=reason, message=said[:_TEXT])


def _immutable(status: Json) -> str:
    """The fields that the server refuses to change; empty: it refused for another cause."""
    causes = (status.get("details") or {}).get("causes") or ()
    fields = {str(c.get("field")) for c in causes if "immutable" in str(c.get("message"))}
    return ", ".join(sorted(fields))
