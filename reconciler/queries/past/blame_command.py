"""`egs blame` on a repository: the same rows as `GET blame`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from reconciler.clock import monotonic_s
from reconciler.queries.event_search import EventRow, events
from reconciler.queries.past.blame import MOST_EVENTS, Blamed, main_changes, status_changes
from reconciler.settings import DEFAULTS
from reconciler.sources.believed_keys import believed
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from reconciler.status.past_states import PastStates
from schemas.reading.reader import rule_of
from schemas.reading.units import format_instant
from schemas.rules.view import gpr_path


def blame_of(repo: str | None, thing: str, field: str | None, limit: int) -> dict[str, Any]:
    """Who set a request (`slice/name`) or a document (its path), or one field of it. Raises WrongUse, NotFound."""
    path = thing if thing.endswith(".yaml") else gpr_path(*thing.split("/")) if thing.count("/") == 1 else ""
    if rule_of(path) is None:
        raise WrongUse(f"{thing}: name a request as slice/name, or a document by its path, like project.yaml")
    asked = Blamed(path, field or None, limit)
    try:
        asked.check()
    except ValueError as error:
        raise WrongUse(f"--field {field}: {error}") from error
    with opened(repo) as given:
        source = given.upstream() if given.is_folder else given
        if source is None:
            raise WrongUse("a folder without a remote has no history; name a repository with --repo")
        main = main_changes(source.store, source.commit_of(None), asked) if asked.is_of_main else []
        status = _status(source, asked) if asked.is_of_status else []
    if not main and not status:
        raise NotFound("change of", f"{path} {field or ''}".strip(), ())
    return {"path": path, "field": asked.field, "main": main, "status": status}


def _status(source: Source, asked: Blamed) -> list[dict[str, Any]]:
    found = source.status()
    if found is None:
        return []
    states = PastStates(found[0], DEFAULTS, believed().controllers(), monotonic_s).states()

    def told(after: datetime | None, until: datetime) -> Iterator[EventRow]:
        rows = events(source, asked.events(after, until), MOST_EVENTS)
        return (row for row in rows if after is None or row["at"] > format_instant(after))

    return status_changes(found[0], reversed(states), asked, told)
