"""`egs approve` and `egs reject`: an admin's decision on one request, exactly as it is now.

The file is signed with the admin's own key if there is one, without a network. The signed statement counts,
however it reaches main.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from egs.commands.backend import Decision
from egs.commands.output import counted, note
from reconciler.approvals.who_approved import LONGEST
from reconciler.changes.change import Change
from reconciler.changes.publish import report, submit
from reconciler.documents.yaml_edit import new_document
from reconciler.queries.arguments import lasting, time
from reconciler.queries.quotes import slice_of
from reconciler.queries.state import State, as_filed, clock, split
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.folder import Folder
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from reconciler.store.store_port import Person
from reconciler.trust.personal_signatures import PersonKey, configured_key, sign_as_person
from reconciler.trust.sshsig import canonical_key, parse
from scheduler.choices.fit import MOST_GPUS, candidate_pools, largest_hold
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.documents.gpr import RequestSpec
from schemas.errors import Fault
from schemas.reading.reader import read_document
from schemas.reading.units import format_duration, format_instant
from schemas.rules.fit import free_priority
from schemas.status.gpr_status import HOLDING, TERMINAL, Phase

COUNTS_FOR = timedelta(days=30)
"""Lifetime of an approval without --not-after."""


def decide(repo: str | None, key: str, options: Decision, author: str | None, now: str | None) -> None:
    """Writes the approval file, bound to the request's digest on main, and signed if there is a key."""
    slice_, name = split(key)
    given = time("--not-after", options.not_after)
    if options.limit_extend is not None:
        lasting("--limit-extend", options.limit_extend)
    if options.limit_extend is not None and options.rule != "extension":
        raise WrongUse("--limit-extend limits an extension; use it with --rule extension")

    with opened(repo) as source:
        signer = _Signer(
            options.key or configured_key(Path(repo) if source.is_folder and repo else Path.cwd())
        )
        who = None if source.is_folder and options.handle else source.author(author)
        _go_on_without_origin(source)
        at = clock(now, source)
        end = given or at + COUNTS_FOR
        if end <= at:
            raise WrongUse(
                f"--not-after {options.not_after} is in the past: it is {format_instant(at)}; choose a later time"
            )

        if signer.key is not None and end > at + LONGEST:
            raise WrongUse(
                f"--not-after {options.not_after}: a signed approval is valid for {LONGEST.days} days at most"
            )

        def build(state: State, base: str) -> Change:
            handle = _admin(state, options.handle, who)
            spec = _judged(source, state, base, (key, options))
            if options.decision == "approve":
                check_needed(state, key, spec, options)
            path = f"approvals/{slice_}/{name}/{handle}.yaml"
            text = signer.signed(path, handle, approval_spec(state, key, spec, options, end), state)
            return Change({path: text}, f"{options.decision.capitalize()} {key}")

        done = submit(source, at, who, build)
        report(done)
        note_of = signer.doubt(_admin(done.before, options.handle, who), done.before)
        if note_of:
            note(note_of)


def _go_on_without_origin(source: Source) -> None:
    """An admin can approve without a network: the approval is bound to the local files."""
    if not isinstance(source, Folder):
        return
    try:
        source.status()
    except Fault as fault:
        note(f"using the local files only: {fault}")
        source.go_offline()


class _Signer:
    """Signs the approval; the same content is signed only once, because each signature may ask for a passphrase."""

    def __init__(self, key: PersonKey | None) -> None:
        self.key = key
        self._made: tuple[bytes, str] | None = None

    def signed(self, path: str, handle: str, spec: dict[str, Any], state: State) -> bytes:
        text = new_document("Approval", handle, spec)
        approval = read_document(path, text)
        if self.key is None or not isinstance(approval, Approval):
            return text  # an unreadable file is refused with its reasons when it is submitted
        message = statement(state.wanted.project_name, approval)
        if self._made is None or self._made[0] != message:
            self._made = (message, sign_as_person(self.key, NAMESPACE, message))
        return new_document("Approval", handle, {**spec, "signature": self._made[1]})

    def doubt(self, handle: str, state: State) -> str:
        """Why the approval may not count, as far as the manifests show; empty if it should count."""
        if self._made is None:
            return "the approval is not signed and counts only where changes are not verified; sign it with --key FILE"
        made = parse(self._made[1])
        lines = next(admin.keys for admin in state.wanted.project.admins if admin.handle == handle)
        if made is None or made.key in {canonical_key(line) for line in lines}:
            return ""
        return (
            f"project.yaml does not list this key for {handle}; the approval counts only if the operator's "
            "allowed_signers lists it"
        )


def _admin(state: State, handle: str | None, who: Person | None) -> str:
    """The handle for the approval: as given, else the admin with Git's user.email."""
    admins = state.wanted.project.admins
    if handle is None and who is not None:
        mail = who.email.lower()
        handle = next((admin.handle for admin in admins if admin.email.lower() == mail), None)
    names = [admin.handle for admin in admins]
    if handle not in names:
        shown = who.email if handle is None and who is not None else handle
        raise NotAllowed(
            f"{shown} is not an admin of the project; the admins are {', '.join(names)}", "NotAnAdmin"
        )
    return str(handle)


def _judged(source: Source, state: State, base: str, about: tuple[str, Decision]) -> RequestSpec:
    """The request as on main; raises NotAllowed if there is nothing to decide."""
    key, options = about
    status = state.facts.requests.get(key)
    runs = status is not None and status.phase in HOLDING
    if status is not None and status.phase in TERMINAL:
        raise NotAllowed(f"{key} is {status.phase} and never runs again; there is nothing to decide")
    if status is not None and runs and (options.rule != "extension" or status.phase is Phase.RELEASING):
        raise NotAllowed(f"{key} is {status.phase} and keeps its terms; `egs gpr release {key}` ends it")
    filed = state.wanted.filed.get(key)
    # If a change is held, the content that counts is decided on.
    spec = filed.spec if filed is not None and filed.held is not None else as_filed(source, base, key)
    if spec is None:
        if filed is not None:
            raise NotAllowed(f"the file of {key} is invalid: {filed.problem}")
        raise NotFound("request", key, state.wanted.filed)
    if status is not None and runs:  # a running lease keeps its terms, whatever its file says
        return status.accepted_spec.edited(extend=spec.extend)
    return spec


def check_needed(state: State, key: str, spec: RequestSpec, options: Decision) -> None:
    """An approval that the request does not need is refused; an existing one may be renewed."""
    status, free = state.facts.requests.get(key), state.wanted.project.max_extension
    if status is None:
        raise NotAllowed(
            f"the file of {key} is refused, which no approval changes: {state.wanted.filed[key].problem}"
        )
    if options.rule == "extension":
        if spec.extend <= free:
            raise NotAllowed(
                f"{key} asks for {format_duration(spec.extend)} of extension, and up to {format_duration(free)} "
                "needs no approval; nothing is written"
            )
    elif status.approval is None:
        raise NotAllowed(f"{key} needs no approval as it reads now; nothing is written")


def approval_spec(
    state: State, key: str, spec: RequestSpec, options: Decision, end: datetime
) -> dict[str, Any]:
    """The approval's spec: bound to the request's present content, with its limits."""
    slice_, name = split(key)
    content: dict[str, Any] = {
        "slice": slice_,
        "gpr": name,
        "decision": options.decision,
        "rule": None if options.rule == "request" else options.rule,
        "specDigest": bound(state, spec),
        "limit": _limit(state, spec, options) if options.decision == "approve" else None,
        "notAfter": format_instant(end),
        "reason": options.reason or None,
    }
    return {field: value for field, value in content.items() if value is not None}


def bound(state: State, spec: RequestSpec) -> str:
    """The digest that an approval of this request is bound to."""
    return spec.digest(free_priority(slice_of(state, spec.slice), state.wanted.project))


def _limit(state: State, spec: RequestSpec, options: Decision) -> dict[str, Any]:
    """As typed; by default what the request would hold in the usable pool with the largest nodes."""
    slice_, pools = slice_of(state, spec.slice), state.wanted.pools
    held = [spec.nodes * pools[key].gpus_per_node for key in candidate_pools(spec, slice_, pools)]
    most = largest_hold(spec, slice_, pools)
    limit: dict[str, Any] = {
        "gpus": min(options.limit_gpus or most.gpus, MOST_GPUS),
        "nodes": options.limit_nodes or most.nodes,
    }
    if limit["nodes"] < spec.nodes or (held and limit["gpus"] < min(held)):
        needs = f"{counted(spec.nodes, 'node')} with {counted(min(held, default=0), 'GPU')}"
        raise NotAllowed(
            f"the limit is below what the request needs: {needs}; raise it, or reject the request"
        )
    if options.rule == "extension":
        limit["extend"] = options.limit_extend or format_duration(spec.extend)
    return limit
