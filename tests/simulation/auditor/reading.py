"""The status branch as any reader has it: YAML by path; only changed files are read again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import yaml

Status = Mapping[str, Any]
"""One request's status, with the names of docs/reference/kinds/gpr.md."""

_CHECKS = re.compile(r"^  checks:\n(?:    .*\n|  - .*\n)+", re.MULTILINE)
_REQUEST = re.compile(r"slices/([^/]+)/gprs/([^/]+)\.yaml")
_SPAN = re.compile(r"(\d+)d(\d+)h(\d+)m(?:(\d+)s)?")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Published(Protocol):
    """What is published, commit by commit."""

    def files(self, commit: str) -> Mapping[str, str]:
        """Blob by path."""

    def text(self, blob: str) -> str:
        """The content of a blob."""

    def trailers(self, commit: str) -> Mapping[str, str]:
        """Of the commit's message."""

    def parent(self, commit: str) -> str | None:
        """The first one."""


@dataclass(slots=True)
class Page:
    """One commit of the status branch."""

    commit: str
    files: Mapping[str, str] = field(default_factory=dict)
    requests: dict[str, Status] = field(default_factory=dict)
    nodes: dict[tuple[str, str], Any] = field(default_factory=dict)
    term: int = 0
    seq: int = 0
    writer: str = ""
    intent: str = ""


def read(published: Published, commit: str, before: Page | None) -> Page:
    """The page of that commit; unchanged files come from the page before."""
    files, said = published.files(commit), published.trailers(commit)
    page = Page(
        commit,
        files,
        term=int(said.get("Term", 0)),
        seq=int(said.get("Seq", 0)),
        writer=said.get("Writer", ""),
        intent=said.get("Intent", ""),
    )
    known = {} if before is None else before.files
    for path, blob in files.items():
        same = known.get(path) == blob
        if (found := _REQUEST.fullmatch(path)) is not None:
            key = f"{found[1]}/{found[2]}"
            page.requests[key] = (
                before.requests[key] if same and before is not None else _status(published, blob)
            )
        elif path.startswith("nodes/"):
            _, cluster, name = path.removesuffix(".yaml").split("/")
            old = before.nodes.get((cluster, name)) if same and before is not None else None
            page.nodes[cluster, name] = old or document(published.text(blob))
    return page


def _status(published: Published, blob: str) -> Status:
    found: Status = document(_CHECKS.sub("", published.text(blob)))["status"]
    return found


def document(text: str) -> Any:
    """One YAML document."""
    return yaml.load(text, _LOADER)


def new_events(published: Published, before: Page | None, after: Page) -> Iterator[Mapping[str, Any]]:
    """Rows of event files that the page before had not."""
    known = {} if before is None else before.files
    for path in sorted(p for p in after.files if p.startswith("events/")):
        if known.get(path) == after.files[path]:
            continue
        text = published.text(after.files[path])
        old = published.text(known[path]) if path in known else ""
        if old and text.startswith(old):
            yield from document(text[len(old) :]) or ()
        else:
            rows = document(text).get("events") or ()
            had = document(old).get("events") or () if old else ()
            yield from (row for row in rows if row not in had)


def span(text: object) -> timedelta:
    """A duration as the documents write it."""
    found = _SPAN.fullmatch(str(text or "0d0h0m"))
    assert found is not None, text
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def instant(value: Any) -> datetime | None:
    """An instant of a status; None: absent."""
    if value is None:
        return None
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def start_of(status: Status) -> datetime | None:
    """When its lease begins, or began."""
    return instant(status.get("startTime") or status.get("estimatedStartTime"))


def end_of(status: Status) -> datetime | None:
    """When its nodes are taken back."""
    evicted = (status.get("eviction") or {}).get("at")
    end = instant(status.get("endTime") or status.get("estimatedEndTime"))
    early = instant(evicted)
    return end if early is None or end is None else min(end, early)
