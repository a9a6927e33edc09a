"""Compares a cluster's GPR objects with the repository: which files to write, and each object's status. Pure.

An object becomes a file of its slice, with a label that names the object; no other file is changed. Deleting an
object ends its request: the file gets earlyRelease, right in every phase, and is removed when the request is
finished. All state is in the repository and the objects.

The last writer wins: a newer generation of the object replaces the file, and a person's edit of the file stays
until the object changes again. If people delete the file of a running lease, the object's next change, its
release, or a new object of that name restores it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from reconciler.changes.main_documents import MainDocuments
from reconciler.clusters.kubernetes.admission.object_authors import address_of, is_address
from reconciler.deciding.fold import deletions_digest
from reconciler.documents.restored_files import EARLY_RELEASE, readable, says
from reconciler.documents.yaml_edit import new_document, with_field
from reconciler.gpr_objects.object_files import (
    DOOR,
    FILED_BY,
    GENERATION,
    ORIGIN,
    Action,
    Author,
    Edit,
    GprObject,
    ObjectsView,
    Origin,
    StatusPatch,
    branch_of,
    origin_of,
)
from reconciler.gpr_objects.object_status import ObjectState, Refusal, object_status
from schemas.documents.gpr import GPR, GPRSpec, RequestSpec
from schemas.reading.reader import read_document
from schemas.rules.edits import asks_more_or_other
from schemas.rules.findings import Finding
from schemas.rules.problems import Problem
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL, GPRStatus


def orphans(view: ObjectsView) -> Mapping[str, Origin]:
    """Requests, on main or proposed, whose objects in this cluster no longer exist."""
    found = {key: origin for key, origin in _filed(view) if not _is_there(origin, view)}
    for key, data in view.proposals.items():
        origin = None if data is None else _proposed_by(key, data)
        if origin is not None and key not in found and not _is_there(origin, view):
            found[key] = origin
    return found


def _filed(view: ObjectsView) -> Iterator[tuple[str, Origin]]:
    for (slice_, name), gpr in sorted(view.repository.gprs.items()):
        origin = origin_of(gpr)
        if origin is not None and origin.cluster == view.cluster:
            yield f"{slice_}/{name}", origin
    for key, data in sorted(view.lost.items()):
        origin = _proposed_by(key, data)
        if origin is not None and origin.cluster == view.cluster:
            yield key, origin


def _proposed_by(key: str, data: bytes) -> Origin | None:
    document = read_document(gpr_path(*key.split("/")), data)
    return origin_of(document) if isinstance(document, GPR) else None


def _is_there(origin: Origin, view: ObjectsView) -> bool:
    asked = view.objects.get(f"{origin.namespace}/{origin.name}")
    return asked is not None and asked.uid == origin.uid


def held_cancellations(view: ObjectsView) -> str:
    """The digest that an admin confirms when many objects disappeared at once; empty: few did."""
    found = orphans(view)
    ending = [k for k in view.gone if k in found and _file_of(found[k], view) and not _is_over(k, view)]
    project = view.repository.project
    if project is None or len(ending) <= project.spec.limits.deletions_at_once:
        return ""
    digest = deletions_digest(sorted(ending))
    return "" if digest in project.spec.confirmed_deletions else digest


def _is_over(key: str, view: ObjectsView) -> bool:
    slice_, _, name = key.partition("/")
    status, gpr = view.statuses.get(key), view.repository.gprs.get((slice_, name))
    if gpr is not None and gpr.spec.early_release:
        return True
    return status is not None and (status.phase in TERMINAL or status.accepted_spec.early_release)


def _file_of(origin: Origin, view: ObjectsView) -> GPR | None:
    found = view.repository.gprs.get((origin.slice, origin.name))
    return found if found is not None and origin_of(found) == origin else None


def door_actions(view: ObjectsView) -> tuple[Action, ...]:
    """Edits, each valid on top of the previous ones, and statuses of objects that need no edit."""
    actions: list[Action] = []
    trial = MainDocuments(view.repository.copy())
    if not held_cancellations(view):
        actions += _cancellations(view, trial)
    for asked in sorted(view.objects.values(), key=lambda one: (one.created, one.namespace, one.name)):
        action = _answer(asked, view, trial)
        if isinstance(action, StatusPatch) and action.status == asked.status:
            continue
        actions.append(action)
    return tuple(actions)


# -- deleted objects ----------------------------------------------------------------------------------------


def _cancellations(view: ObjectsView, trial: MainDocuments) -> Iterator[Edit]:
    for key, origin in sorted(orphans(view).items()):
        if key not in view.gone or key in view.troubles:
            continue
        gpr = _file_of(origin, view) or readable(gpr_path(*key.split("/")), view.lost.get(key))
        if gpr is None:
            yield Edit(key, "branch", {}, f"Withdraw {key}", DOOR, str(origin))
        elif (edit := _cancellation(key, gpr, origin, view)) is not None:
            if edit.via == "commit":
                trial.tried(edit.changes)
            yield edit


def _cancellation(key: str, gpr: GPR, origin: Origin, view: ObjectsView) -> Edit | None:
    path, status = gpr_path(*key.split("/")), view.statuses.get(key)
    changes: dict[str, bytes | None]
    if status is not None and status.phase in TERMINAL:
        approvals = view.repository.approvals(*key.split("/"))
        gone = [f"approvals/{key}/{approval.metadata.name}.yaml" for approval in approvals]
        changes = dict.fromkeys((path, *gone))
        subject = f"Remove {key}: its object was deleted"
    elif gpr.spec.early_release:
        return None
    else:
        changes = {path: with_field(view.lost.get(key) or view.text(path), EARLY_RELEASE, True)}
        verb = "Release" if status is not None and status.phase in HOLDING else "Cancel"
        subject = f"{verb} {key}: its object was deleted"
    if view.via == "branch" and key in view.proposals and view.proposals[key] == changes[path]:
        return None
    filed_by = gpr.metadata.labels.get(FILED_BY, "")
    behalf = filed_by if is_address(filed_by) else ""
    return Edit(key, view.via, changes, subject, DOOR, str(origin), behalf)


# -- existing objects ---------------------------------------------------------------------------------------


def author_of(asked: GprObject, guarded_since: datetime | None) -> Author:
    """The annotation is trusted if it cannot have been forged, else the author is the client's own claim."""
    if asked.author is not None and guarded_since is not None and guarded_since <= asked.created:
        return Author(asked.author, is_verified=True)
    return Author(asked.author or asked.manager, is_verified=False)


def _answer(asked: GprObject, view: ObjectsView, trial: MainDocuments) -> Action:
    author = author_of(asked, view.guarded_since)
    state = ObjectState(asked.generation, author.name, author.is_verified)
    slice_ = _slice_of(asked, view)
    if isinstance(slice_, Refusal):
        return _told(asked, replace(state, refusal=slice_), None)
    origin = Origin(view.cluster, slice_, asked.namespace, asked.name, asked.uid)
    state = replace(state, key=origin.key)
    refusal = _name_refusal(asked, origin, view, trial)
    if refusal is not None:
        return _told(asked, replace(state, refusal=refusal), None)
    gpr, status = _file_of(origin, view), view.statuses.get(origin.key)
    if gpr is None and asked.status.get("filed") and not _brings_back(asked, status, view):
        broken = not view.repository.absent(gpr_path(slice_, asked.name))
        state = replace(state, is_filed=True, is_removed=not broken)
        return _told(asked, state, status)
    return _filing(asked, origin, replace(state, is_filed=gpr is not None), view, trial)


def _brings_back(asked: GprObject, status: GPRStatus | None, view: ObjectsView) -> bool:
    """True if an object changed after its file was deleted or broken during its lease."""
    if status is None or status.phase not in HOLDING:
        return False
    key, seen = str(asked.status.get("request", "")), asked.status.get("observedGeneration")
    return asked.is_released or asked.generation != seen or key in view.proposals


def _told(asked: GprObject, state: ObjectState, request: GPRStatus | None) -> StatusPatch:
    return StatusPatch(asked, object_status(state, request, asked.status))


def _slice_of(asked: GprObject, view: ObjectsView) -> str | Refusal:
    slice_ = view.namespaces.get(asked.namespace)
    if slice_ is None:
        return Refusal(
            f"namespace {asked.namespace} belongs to no slice; create this in a namespace of your slice",
            "NoSlice",
        )
    found = view.repository.slices.get(slice_)
    spec = None if found is None else found.spec
    if spec is None or view.cluster not in spec.clusters or asked.namespace not in spec.namespaces:
        return Refusal(
            f"slices/{slice_}/slice.yaml does not list namespace {asked.namespace} of cluster {view.cluster}; "
            "have it added there",
            "NoSlice",
        )
    said = asked.spec.get("slice", slice_)
    if said != slice_:
        return Refusal(
            f"spec.slice says {said}, but namespace {asked.namespace} belongs to {slice_}; omit spec.slice, "
            "or create this in a namespace of that slice",
            "OtherSlice",
        )
    return slice_


def _name_refusal(
    asked: GprObject, origin: Origin, view: ObjectsView, trial: MainDocuments
) -> Refusal | None:
    """The refusal if another request has the name, on main or in an earlier edit."""
    slice_, name = origin.slice, origin.name
    path, was_filed = gpr_path(slice_, name), bool(asked.status.get("filed"))
    held = origin.key in view.statuses and view.statuses[origin.key].phase in HOLDING
    if path in trial.repository.refused and not was_filed and not held:
        return Refusal(f"{path} exists but cannot be read; fix or remove it", "NameTaken")
    gpr = trial.repository.gprs.get((slice_, name))
    if gpr is not None:
        return _taken(origin_of(gpr), origin)
    if origin.key in view.statuses and not was_filed and not held:
        phase = view.statuses[origin.key].phase
        return Refusal(
            f"an earlier request {origin.key} is still {phase}; this one is filed once that has ended and "
            "its record is removed",
            "NameInUse",
        )
    return None


def _taken(theirs: Origin | None, ours: Origin) -> Refusal | None:
    if theirs == ours:
        return None
    if theirs is None:
        whose = "by a file that was not made from an object"
    elif (theirs.cluster, theirs.namespace) == (ours.cluster, ours.namespace):
        whose = "by a deleted object of this name, which is removed first"
    else:
        whose = f"by namespace {theirs.namespace} of cluster {theirs.cluster}"
    return Refusal(f"{ours.key} is filed already {whose}; otherwise choose another name", "NameTaken")


def _filing(
    asked: GprObject, origin: Origin, state: ObjectState, view: ObjectsView, trial: MainDocuments
) -> Action:
    """The wanted file, validated, and how it gets to main."""
    key, path = origin.key, gpr_path(origin.slice, origin.name)
    status = view.statuses.get(key)
    current = view.text(path) if state.is_filed else None
    author = Author(state.author, state.is_verified)
    behalf = address_of(author.name, view.cluster) if author.is_verified else ""
    wanted = _wanted(replace(asked, author=behalf or None), origin, current, _file_of(origin, view), status)
    if wanted == current:
        if view.proposals.get(key, current) == current or key in view.troubles:
            return _told(asked, state, status)
        return Edit(key, "branch", {}, f"Withdraw the proposal for {key}", author, str(origin))
    refusal = view.troubles.get(key) or _refused(path, wanted, key, view, trial)
    if refusal is not None:
        return _told(asked, replace(state, refusal=refusal), status)
    subject = f"{'Change' if state.is_filed else 'Create'} {key}"
    if view.via == "commit" and author.is_verified:
        return Edit(key, "commit", {path: wanted}, subject, author, str(origin), behalf)
    branch, digest = branch_of(view.cluster, key), hashlib.sha256(wanted).hexdigest()[:16]
    if view.proposals.get(key) == wanted:
        return _told(asked, replace(state, branch=branch, proposed=digest), status)
    if asked.status.get("proposed") == digest and key not in view.proposals:
        closed = Refusal(
            f"the branch {branch} was deleted without being merged; change the object to propose it again",
            "NotMerged",
        )
        return _told(asked, replace(state, proposed=digest, refusal=closed), status)
    return Edit(key, "branch", {path: wanted}, subject, author, str(origin), behalf)


def _wanted(
    asked: GprObject, origin: Origin, current: bytes | None, gpr: GPR | None, status: GPRStatus | None
) -> bytes:
    """The file's next content; unchanged if neither spec nor release is new. `asked.author` is vouched for, or None."""
    is_over = status is not None and status.phase in TERMINAL
    is_released = asked.is_released and not is_over
    if current is None or gpr is None or gpr.metadata.labels.get(GENERATION) != str(asked.generation):
        released = {"earlyRelease": True} if is_released or (gpr and gpr.spec.early_release) else {}
        labels = {ORIGIN: str(origin), GENERATION: str(asked.generation)}
        labels |= {FILED_BY: asked.author} if asked.author else {}
        spec = _ordered({**asked.spec, "slice": origin.slice, **released})
        return new_document("GPR", asked.name, spec, labels)
    if is_released and not gpr.spec.early_release:
        return with_field(current, EARLY_RELEASE, True)
    return current


def _ordered(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fields in the usual order: the slice first, the others as in docs/reference/kinds/gpr.md."""
    order = ["slice", *(info.alias or name for name, info in GPRSpec.model_fields.items())]
    return dict(
        sorted(spec.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    )


def _refused(path: str, data: bytes, key: str, view: ObjectsView, trial: MainDocuments) -> Refusal | None:
    """The refusal by the rules; without one, the trial documents have the file afterwards."""
    status, said = view.statuses.get(key), says(readable(path, data), trial.templates)
    if status is not None and status.phase in TERMINAL and _runs_again(status.accepted_spec, said):
        message = f"this request is {status.phase} and never runs again; create a new object"
        return _sentence((Finding(path, "ForbiddenEdit", message).problem(None),))
    problems, _ = trial.judged({path: data}, view.statuses)
    return _sentence(problems) if problems else None


def _runs_again(accepted: RequestSpec, said: RequestSpec | None) -> bool:
    return said is not None and not said.early_release and asks_more_or_other(accepted, said)


def _sentence(problems: tuple[Problem, ...]) -> Refusal:
    text = "; ".join(f"{problem.message} ({problem.fix})" for problem in problems)
    return Refusal(text, problems[0].rule)
