"""A message's text: a route's template, filled in. Pure.

A template can only use the given words: `$reason` and others stand for texts of the event, an unknown word
stays unchanged, and an event's text is never read as a template.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from schemas.documents.notifications import Template as Words
from schemas.reading.units import counted, format_instant
from schemas.status.outbox import Delivery, Entry

LONGEST_TITLE = 200
"""Characters; services cut longer titles in different ways."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent, as plain text."""

    title: str
    body: str
    warning: bool


def message_of(delivery: Delivery, words: Words, lost: int = 0) -> Message:
    """One message for all events of a delivery; `lost` events before it were given up."""
    titles = [_filled(words.title, entry) for entry in delivery.entries]
    paragraphs = [_filled(words.body, entry) for entry in delivery.entries]
    if delivery.more:
        paragraphs.insert(0, f"and {counted(delivery.more, 'older event')}: see `egs get events`")
    if lost:
        paragraphs.append(f"{counted(lost, 'earlier event')} could not be sent: see `egs get events`")
    title = _titled(titles, delivery.more)
    text = "\n".join(paragraphs)
    is_warning = any(entry.type == "Warning" for entry in delivery.entries)
    # Services refuse a message without a body.
    return Message(title, text if text.strip() else title, is_warning)


def _titled(titles: list[str], more: int) -> str:
    """As one line."""
    others = len(titles) - 1 + more
    end = f" (and {others} more)" if others else ""
    line = " ".join(titles[0].split()) if titles else ""
    return line[: LONGEST_TITLE - len(end)] + end


def _filled(text: str, entry: Entry) -> str:
    values = {
        "reason": entry.reason,
        "message": entry.message,
        "request": entry.request,
        "slice": entry.about,
        "cluster": entry.cluster,
        "node": entry.node,
        "time": format_instant(entry.at),
        "type": entry.type,
    }
    return Template(text).safe_substitute(values)
