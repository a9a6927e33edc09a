"""`egs approve` and `egs reject`: an admin's word about one request exactly as it reads now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from reconciler.commands.errors import NotAllowed, NotFound
from reconciler.commands.output import counted
from reconciler.commands.publishing import Change, report, submit
from reconciler.commands.quoting import slice_of
from reconciler.commands.source import Source, opened
from reconciler.commands.state import State, as_filed, clock, split
from reconciler.commands.typed import time
from reconciler.store.port import Person
from scheduler.fit import candidate_pools
from schemas.gpr import RequestSpec
from schemas.status import HOLDING, TERMINAL
from schemas.units import format_instant
from schemas.yamltext import dump


@dataclass(frozen=True, slots=True)
class Word:
    """What the admin typed."""

    decision: Literal["approve", "reject"]
    reason: str = ""
    limit_gpus: int | None = None
    limit_nodes: int | None = None
    not_after: str | None = None
    handle: str | None = None


def decide(repo: str | None, key: str, word: Word, author: str | None, now: str | None) -> None:
    """Write the approval file, bound to the request's digest as it is on main."""
    slice_, name = split(key)
    end = time("--not-after", word.not_after)

    def build(state: State, base: str) -> Change:
        handle = _admin(state, word.handle, who)
        spec = _judged(source, state, base, key)
        if word.decision == "approve":
            _check_needed(state, key)
        content = {
            "apiVersion": "egs.dev/v1alpha1",
            "kind": "Approval",
            "metadata": {"name": handle},
            "spec": _spec(state, key, spec, word, end),
        }
        path = f"approvals/{slice_}/{name}/{handle}.yaml"
        return Change({path: dump(content).encode()}, f"{word.decision.capitalize()} {key}")

    with opened(repo) as source:
        who = None if source.is_folder and word.handle else source.author(author)
        report(submit(source, clock(now, source), who, build))


def _admin(state: State, handle: str | None, who: Person | None) -> str:
    """Under whose name the word is filed: as given, else the admin whose address git has."""
    admins = state.wanted.project.admins
    if handle is None and who is not None:
        mail = who.email.lower()
        handle = next((admin.handle for admin in admins if admin.email.lower() == mail), None)
        if handle is None:
            raise NotAllowed(
                f"{who.email} is no admin of the project; admins are {_names(state)}", "NotAnAdmin"
            )
    if handle not in {admin.handle for admin in admins}:
        raise NotAllowed(f"{handle} is no admin of the project; admins are {_names(state)}", "NotAnAdmin")
    return str(handle)


def _names(state: State) -> str:
    return ", ".join(admin.handle for admin in state.wanted.project.admins)


def _judged(source: Source, state: State, base: str, key: str) -> RequestSpec:
    """The request as it reads on main, if there is anything left to decide about it."""
    status = state.facts.requests.get(key)
    if status is not None and status.phase in HOLDING:
        raise NotAllowed(f"{key} is {status.phase} and keeps its terms; `egs gpr release {key}` ends it")
    if status is not None and status.phase in TERMINAL:
        raise NotAllowed(f"{key} is {status.phase} and never runs again; there is nothing to decide")
    spec = as_filed(source, base, key)
    if spec is None:
        filed = state.wanted.filed.get(key)
        if filed is not None:
            raise NotAllowed(f"the file of {key} cannot be read: {filed.problem}")
        raise NotFound("request", key, state.wanted.filed)
    return spec


def _check_needed(state: State, key: str) -> None:
    """An approval that nothing waits for would only puzzle its readers; one that is given may be renewed."""
    status = state.facts.requests.get(key)
    if status is None:
        raise NotAllowed(
            f"the file of {key} is refused, and no approval helps: {state.wanted.filed[key].problem}"
        )
    if status.approval is None:
        raise NotAllowed(f"{key} needs no approval as it reads now; nothing is written")


def _spec(state: State, key: str, spec: RequestSpec, word: Word, end: datetime | None) -> dict[str, Any]:
    slice_, name = split(key)
    digest = spec.digest(slice_of(state, slice_).limits.max_priority)
    content: dict[str, Any] = {
        "slice": slice_,
        "gpr": name,
        "decision": word.decision,
        "specDigest": digest,
        "limit": _limit(state, spec, word) if word.decision == "approve" else None,
        "notAfter": None if end is None else format_instant(end),
        "reason": word.reason or None,
    }
    return {field: value for field, value in content.items() if value is not None}


def _limit(state: State, spec: RequestSpec, word: Word) -> dict[str, int]:
    """As typed; by default what the request would hold in the largest-noded pool that it may use."""
    slice_ = slice_of(state, spec.slice)
    pools = state.wanted.pools
    held = [spec.nodes * pools[key].gpus_per_node for key in candidate_pools(spec, slice_, pools)]
    limit = {
        "gpus": word.limit_gpus or max(held, default=spec.nodes * spec.gpus_per_node),
        "nodes": word.limit_nodes or spec.nodes,
    }
    if limit["nodes"] < spec.nodes or (held and limit["gpus"] < min(held)):
        needs = f"{counted(spec.nodes, 'node')} with {counted(min(held, default=0), 'GPU')}"
        raise NotAllowed(
            f"the limit is less than the request needs: {needs}; raise it, or reject the request"
        )
    return limit
