"""What counts of a commit on main if some changes are held: for those, the last authorised content. Pure.

A hold concerns one content. A path with another content was not judged yet (a reader may be ahead of the
controller) and is used as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.differing import differing
from reconciler.store.store_port import Entry
from schemas.status.judgements import HeldChange


@dataclass(frozen=True, slots=True)
class Overlay:
    """The holds that are applied, and what main has at their paths."""

    held: Mapping[str, HeldChange] = field(default_factory=dict)
    beneath: Mapping[str, Entry] = field(default_factory=dict)


def overlaid(
    changed: Iterable[Entry], holds: Iterable[HeldChange], before: Overlay, counted: Mapping[str, Entry]
) -> tuple[list[Entry], Overlay]:
    """Entries that may differ from `counted`, and their overlay; `changed` is what main changed since `before`."""
    by_path = {change.path: change for change in holds}
    if not by_path and not before.held:
        return sorted(changed, key=lambda entry: entry.path), before
    main = {entry.path: entry for entry in changed}
    moved = differing(by_path, before.held)
    touched = main.keys() | moved

    def of_main(path: str) -> Entry:
        return main.get(path) or before.beneath.get(path) or counted.get(path) or Entry(path, None)

    now = {path: of_main(path) for path in touched}
    held = {p: c for p, c in by_path.items() if (now[p].oid == c.found if p in touched else p in before.held)}
    beneath = {path: now.get(path) or before.beneath[path] for path in held}
    entries = [_counting(now[path], held.get(path)) for path in sorted(touched)]
    return entries, Overlay(held, beneath)


def _counting(entry: Entry, hold: HeldChange | None) -> Entry:
    if hold is None:
        return entry
    return (
        Entry(entry.path, None) if hold.authorised is None else Entry(entry.path, hold.authorised, hold.mode)
    )
