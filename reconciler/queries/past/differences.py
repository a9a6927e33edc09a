"""What differs between two states: requests, nodes, people and rules, as values with a sentence each. Pure.

Held by tests/portal/test_difference.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel

from reconciler.model.facts import Facts, NodeKey, Wanted
from schemas.documents.slice import SliceSpec
from schemas.reading.units import format_instant
from schemas.status.gpr_status import TERMINAL, GPRStatus, Phase
from schemas.status.node_status import NodeRecord

RequestChange = Literal["filed", "promised", "slipped", "earlier", "started", "ended", "removed"]
MOST_FIELDS = 50
"""Changed fields of one document that are listed."""
READY = "Ready"
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class OfRequest:
    key: str
    change: RequestChange
    was: datetime | str | None
    """Of a promise its start, else the phase."""
    now: datetime | str | None
    causes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        was, now = (_said(at) for at in (self.was, self.now))
        because = f": {' and '.join(self.causes)}" if self.causes else ""
        match self.change:
            case "filed":
                return f"{self.key} was filed"
            case "promised":
                return f"{self.key} was promised to start at {now}"
            case "slipped" | "earlier":
                later = "later" if self.change == "slipped" else "earlier"
                return f"{self.key} starts {later}: {now} instead of {was}{because}"
            case "started":
                return f"{self.key} started at {now}"
            case "ended":
                return f"{self.key} ended as {now}{because}"
        return f"{self.key} was removed"


@dataclass(frozen=True, slots=True)
class OfNode:
    cluster: str
    node: str
    was: str
    now: str
    reason: str | None

    @property
    def text(self) -> str:
        because = f" ({self.reason})" if self.reason else ""
        return f"{self.cluster}/{self.node} is {self.now}{because}, it was {self.was}"


@dataclass(frozen=True, slots=True)
class OfPerson:
    slice: str
    email: str
    was: str
    """`owner`, `member` or `absent`."""
    now: str

    @property
    def text(self) -> str:
        if self.now == ABSENT:
            return f"{self.email} left {self.slice}"
        role = "an owner" if self.now == "owner" else "a member"
        return f"{self.email} is {role} of {self.slice}" + (
            "" if self.was == ABSENT else f", before {self.was}"
        )


@dataclass(frozen=True, slots=True)
class OfDocument:
    """A field of a rule: the project, a cluster, a slice (without its people) or a template."""

    path: str
    field: str
    """Empty: the document itself came or went."""
    was: Any
    now: Any

    @property
    def text(self) -> str:
        if not self.field:
            return f"{self.path} was {'removed' if self.now is None else 'added'}"
        return f"{self.path}: {self.field} is {_short(self.now)}, it was {_short(self.was)}"


@dataclass(frozen=True, slots=True)
class Difference:
    requests: tuple[OfRequest, ...]
    nodes: tuple[OfNode, ...]
    people: tuple[OfPerson, ...]
    documents: tuple[OfDocument, ...]


def difference(before: tuple[Facts, Wanted], after: tuple[Facts, Wanted]) -> Difference:
    """From the first state to the second. O(requests, nodes and documents)."""
    (old, was), (new, now) = before, after
    return Difference(
        tuple(_requests(old.requests, new.requests, old.at)),
        tuple(_nodes(old.nodes, new.nodes)),
        tuple(_people(was.slices, now.slices)),
        tuple(_documents(was, now)),
    )


def _requests(
    old: Mapping[str, GPRStatus], new: Mapping[str, GPRStatus], since: datetime
) -> Iterator[OfRequest]:
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if after is None:
            assert before is not None
            yield OfRequest(key, "removed", str(before.phase), None)
            continue
        if before is not None and before.uid != after.uid:
            before = None
        yield from _of_request(key, before, after, since)


def _of_request(key: str, before: GPRStatus | None, after: GPRStatus, since: datetime) -> Iterator[OfRequest]:
    if before is None:
        yield OfRequest(key, "filed", None, str(after.phase))
    was = None if before is None else before.estimated_start_time
    now, phase = after.estimated_start_time, after.phase
    if was != now and (before is None or before.phase is Phase.QUEUED) and after.start_time is None:
        yield from _promise(key, was, now, after, since)
    if after.start_time is not None and (before is None or before.start_time != after.start_time):
        slipped = was is not None and after.start_time > was
        if slipped:
            yield OfRequest(key, "slipped", was, after.start_time, _causes(after, since))
        yield OfRequest(key, "started", None, after.start_time)
    if phase in TERMINAL and (before is None or before.phase is not phase):
        why = () if after.reason is None else (after.reason,)
        yield OfRequest(key, "ended", None if before is None else str(before.phase), str(phase), why)


def _promise(
    key: str, was: datetime | None, now: datetime | None, after: GPRStatus, since: datetime
) -> Iterator[OfRequest]:
    if after.phase in TERMINAL:
        return
    if was is None:
        yield OfRequest(key, "promised", None, now)
    elif now is None or now > was:
        yield OfRequest(key, "slipped", was, now, _causes(after, since))
    else:
        yield OfRequest(key, "earlier", was, now)


def _causes(after: GPRStatus, since: datetime) -> tuple[str, ...]:
    causes = (str(cause) for slip in after.slips if slip.at > since for cause in slip.causes)
    return tuple(dict.fromkeys(causes))


def _nodes(old: Mapping[NodeKey, NodeRecord], new: Mapping[NodeKey, NodeRecord]) -> Iterator[OfNode]:
    """Nodes without a record are ready."""
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        was, now = (READY if record is None else str(record.state) for record in (before, after))
        if was != now:
            yield OfNode(*key, was, now, None if after is None else after.reason)


def _people(old: Mapping[str, SliceSpec], new: Mapping[str, SliceSpec]) -> Iterator[OfPerson]:
    for name in sorted(old.keys() | new.keys()):
        before, after = _roles(old.get(name)), _roles(new.get(name))
        for email in sorted(before.keys() | after.keys()):
            was, now = before.get(email, ABSENT), after.get(email, ABSENT)
            if was != now:
                yield OfPerson(name, email, was, now)


def _roles(spec: SliceSpec | None) -> dict[str, str]:
    if spec is None:
        return {}
    return {person.email: "member" for person in spec.people} | {
        person.email: "owner" for person in spec.owners
    }


def _documents(was: Wanted, now: Wanted) -> Iterator[OfDocument]:
    yield from _fields("project.yaml", was.project, now.project)
    old, new = was.manifests or was.clusters, now.manifests or now.clusters
    for name in sorted(old.keys() | new.keys()):
        yield from _fields(f"clusters/{name}.yaml", old.get(name), new.get(name))
    for name in sorted(was.slices.keys() | now.slices.keys()):
        yield from _fields(f"slices/{name}/slice.yaml", was.slices.get(name), now.slices.get(name))
    for name in sorted(was.templates.keys() | now.templates.keys()):
        yield from _fields(f"templates/{name}.yaml", was.templates.get(name), now.templates.get(name))


def _fields(path: str, was: BaseModel | None, now: BaseModel | None) -> Iterator[OfDocument]:
    if was is None or now is None:
        if was is not now:
            yield OfDocument(path, "", None if was is None else True, None if now is None else True)
        return
    if was == now:
        return
    before, after = (dict(_leaves(_plain(spec), "spec")) for spec in (was, now))
    changed = (name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name))
    for name in islice(changed, MOST_FIELDS):
        yield OfDocument(path, name, before.get(name), after.get(name))


def _plain(spec: BaseModel) -> dict[str, Any]:
    people = {"members", "owners"} if isinstance(spec, SliceSpec) else set[str]()
    return spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=people)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Values below, by path; a list is one value."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from _leaves(one, f"{path}.{name}")
    else:
        yield path, value


def _said(at: datetime | str | None) -> str:
    if at is None:
        return "an unknown time"
    return format_instant(at) if isinstance(at, datetime) else at


def _short(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
