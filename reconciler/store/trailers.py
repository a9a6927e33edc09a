"""The `Key: value` lines at the end of a commit, and names that fit into one. Pure.

`Writer` is unique per process, `Term` grows by one with every take-over, `Seq` with every attempt inside a
term, `Intent` is the commit of `main` that the content covers. `Epoch` says when the history was last
re-rooted, and how many commits and bytes it has had since: a restarted writer reads it instead of walking
back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*): ?(.*)")
_WRITER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}")
_NUMBER = re.compile(r"[0-9]{1,15}")
_INTENT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_EPOCH = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([0-9]{1,15}) ([0-9]{1,15})")
MOST_OF_A_NAME = 100
_INSTANT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Epoch:
    """A history since its root: its first time, and commits and bytes written since."""

    since: datetime
    commits: int = 0
    written_bytes: int = 0

    def grown(self, written_bytes: int) -> Epoch:
        """The same history with one more commit."""
        return Epoch(self.since, self.commits + 1, self.written_bytes + written_bytes)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The writer of a commit, with term and sequence number."""

    writer: str
    term: int
    seq: int
    intent: str | None = None
    epoch: Epoch | None = None


def parse_trailers(message: str) -> Mapping[str, str]:
    """The trailers of a commit message: its last paragraph, if every line of it is one.

    The first paragraph is the subject, never trailers; of a repeated key the last value counts.
    """
    paragraphs = message.rstrip("\n").split("\n\n")
    matches = [_LINE.fullmatch(line) for line in paragraphs[-1].split("\n")]
    if len(paragraphs) < 2 or not all(matches):
        return {}
    return {match[1]: match[2].strip() for match in matches if match}


def is_writer(name: str) -> bool:
    """True if the name can be used in a trailer and read back."""
    return _WRITER.fullmatch(name) is not None


def parse_stamp(trailers: Mapping[str, str]) -> Stamp | None:
    """The stamp, or None if a trailer is missing or invalid."""
    writer, term, seq = (trailers.get(key, "") for key in ("Writer", "Term", "Seq"))
    if not (is_writer(writer) and _NUMBER.fullmatch(term) and _NUMBER.fullmatch(seq)):
        return None
    intent = trailers.get("Intent", "")
    known = intent if _INTENT.fullmatch(intent) else None
    return Stamp(writer, int(term), int(seq), known, _parse_epoch(trailers.get("Epoch", "")))


def _parse_epoch(text: str) -> Epoch | None:
    match = _EPOCH.fullmatch(text)
    if match is None:
        return None
    try:
        since = datetime.strptime(match[1], _INSTANT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return Epoch(since, int(match[2]), int(match[3]))


def message(summary: str, stamp: Stamp) -> str:
    """A commit message with the summary and the stamp's trailers."""
    lines = [f"Writer: {stamp.writer}", f"Term: {stamp.term}", f"Seq: {stamp.seq}"]
    if stamp.intent is not None:
        lines.append(f"Intent: {stamp.intent}")
    if stamp.epoch is not None:
        epoch = stamp.epoch
        since = epoch.since.astimezone(UTC).strftime(_INSTANT)
        lines.append(f"Epoch: {since} {epoch.commits} {epoch.written_bytes}")
    return with_trailers(summary.strip() or "Update", lines)


def with_trailers(summary: str, lines: Iterable[str]) -> str:
    """A commit message: one line, then the trailers."""
    return "\n".join([summary, "", *lines, ""])


def person_name(text: str) -> str:
    """The text as a person's name in a commit: one printable line without `<` and `>`; empty if nothing is left."""
    kept = "".join(letter if letter.isprintable() and letter not in "<>" else " " for letter in text)
    return " ".join(kept.split())[:MOST_OF_A_NAME].strip()
