"""What became of every request for a slice, and its requester's next step. Pure.

A request that counts is a slice (docs/decisions/011); nothing is created here.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Wanted, Workspace
from schemas.documents.workspace import WorkspaceRequestSpec
from schemas.reading.reader import rule_of
from schemas.rules.view import slice_path, workspace_path
from schemas.status.gpr_status import WorkspacePhase, WorkspaceRecord
from schemas.status.judgements import HeldChange, TrustRecord

TOLD = {
    WorkspacePhase.PENDING_APPROVAL: EventReason.WORKSPACE_ASKED,
    WorkspacePhase.READY: EventReason.WORKSPACE_READY,
    WorkspacePhase.INVALID: EventReason.WORKSPACE_INVALID,
}
"""Phases that are reported to the requester."""


def workspace_turn(
    facts: Facts, wanted: Wanted, now: datetime
) -> tuple[dict[str, WorkspaceRecord], tuple[Event, ...]]:
    """The record of every request for a slice, and its events; `facts.trust` says which of them are held."""
    held = held_requests(facts.trust)
    records: dict[str, WorkspaceRecord] = {}
    told: list[Event] = []
    for name in sorted({*wanted.workspaces, *held}):
        old = facts.workspaces.get(name)
        phase, message = _standing(name, wanted, held.get(name))
        since = old.since if old is not None and old.phase is phase else now
        records[name] = WorkspaceRecord.model_validate(
            {"metadata": {"name": name}, "phase": phase, "message": message, "since": since}
        )
        if phase in TOLD and (old is None or old.phase is not phase):
            told.append(Event(now, TOLD[phase], message, slice=name))
    return records, tuple(told)


def held_requests(trust: TrustRecord | None) -> dict[str, HeldChange]:
    """Changes of slice requests that are held, by name."""
    found = {}
    for change in trust.held if trust is not None else ():
        rule = rule_of(change.path)
        if rule is not None and rule[0].kind == "WorkspaceRequest":
            found[rule[1]["name"]] = change
    return found


def _standing(name: str, wanted: Wanted, held: HeldChange | None) -> tuple[WorkspacePhase, str]:
    asked = wanted.workspaces.get(name, Workspace(None))
    if name in wanted.slices and asked.has_own_file:
        text = f"{slice_path(name)} counts; {workspace_path(name)} has no effect any more and may be removed"
        return WorkspacePhase.SUPERSEDED, text
    if held is not None and held.authorised is None:
        return WorkspacePhase.PENDING_APPROVAL, _pending(name, wanted)
    if asked.spec is None:
        return WorkspacePhase.INVALID, asked.problem
    return WorkspacePhase.READY, _ready(name, asked.spec) + _left_out(asked, held)


def _pending(name: str, wanted: Wanted) -> str:
    admins = ", ".join(person.email for person in wanted.project.admins)
    return (
        f"slice {name} waits for an admin ({admins}): the admin merges the request with a commit of their own or, "
        f"once it is on main, runs `egs resubmit {workspace_path(name)}`"
    )


def _ready(name: str, spec: WorkspaceRequestSpec) -> str:
    return (
        f"slice {name} is ready, in namespace {', '.join(spec.namespaces)} of {', '.join(spec.clusters)}; "
        f"{spec.requester.email} owns it and can run `egs gpr create {name}/NAME` for nodes and "
        f"`egs kubeconfig {name} --cluster {spec.clusters[0]}` for access"
    )


def _left_out(asked: Workspace, held: HeldChange | None) -> str:
    """The part of the current file that does not count, besides what is in force."""
    if held is not None:
        return f"; a later change of it does not count: {held.message}"
    return f"; its file as it reads now does not count: {asked.problem}" if asked.problem else ""
