"""A branch writer's decisions: what changes, whether to push now, when to re-root. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.store.git.git_objects import blob_oid
from reconciler.store.trailers import Epoch

_MINUTE = timedelta(minutes=1)
KEEP_AGAIN = timedelta(minutes=10)
"""After a history could not be kept."""
Keeps = Callable[[str, datetime], int | None]
"""Keeps what is worth keeping of the history that ends in a commit; the number of pushes, None: try again later."""


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How often a branch may be pushed and how long its history may grow."""

    # Forges recommend at most 6 pushes per minute and repository; people need some of them. None: no limit.
    pushes_per_minute: int | None = 2
    # A day of one commit a minute with 50 of 10,000 files changed packs into about 25 MB: a clone in seconds.
    reroot_after: timedelta = timedelta(days=1)
    reroot_commits: int = 1000  # what a reader walks at most, and a forge shows without much paging
    reroot_bytes: int = 32_000_000  # bytes of contents written; keeps the branch small when files are large

    def doubled(self) -> WriterSettings:
        """With a history of twice the length, at most."""
        return replace(
            self,
            reroot_after=2 * self.reroot_after,
            reroot_commits=2 * self.reroot_commits,
            reroot_bytes=2 * self.reroot_bytes,
        )


def changed(
    files: Mapping[str, str], changes: Mapping[str, bytes | None]
) -> tuple[dict[str, bytes | None], dict[str, str | None]]:
    """The effective changes, and the resulting blob ids (None: deleted). O(changes)."""
    oids = {path: None if content is None else blob_oid(content) for path, content in changes.items()}
    moved = {path: oid for path, oid in oids.items() if files.get(path) != oid}
    return {path: changes[path] for path in moved}, moved


def postponed_until(pushes: Sequence[datetime], now: datetime, per_minute: int | None) -> datetime | None:
    """When the budget allows the next push; None: now."""
    if per_minute is None:
        return None
    recent = [at for at in pushes if at > now - _MINUTE]
    return None if len(recent) < per_minute else recent[-per_minute] + _MINUTE


def reroot_due(epoch: Epoch, now: datetime, settings: WriterSettings) -> bool:
    """True if the history since its root is old, long or large enough to be dropped."""
    return (
        now - epoch.since >= settings.reroot_after
        or epoch.commits >= settings.reroot_commits
        or epoch.written_bytes >= settings.reroot_bytes
    )
