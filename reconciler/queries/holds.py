"""Held changes, and a main that is not followed, read from the status branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from reconciler.model.events import EventReason
from reconciler.model.facts import Facts
from reconciler.queries.event_search import Filter, events
from reconciler.sources.command_errors import WrongUse
from reconciler.sources.source import Source
from reconciler.store.store_port import Store
from reconciler.store.trailers import parse_stamp
from schemas.reading.reader import rule_of
from schemas.reading.units import format_instant
from schemas.rules.problems import Problem, quoted
from schemas.rules.view import gpr_path
from schemas.status.judgements import HeldChange, TrustRecord

LOOKED_BACK = 500
"""Number of status commits searched for the first one that processed the current main."""
MOST_ALARMS = 50
"""Number of events searched for the alarm of a main that is not followed."""
MAIN_WORD = "main"
"""Alarms about main contain this word; alarms about other branches do not."""

Row = dict[str, Any]


def hold_of(facts: Facts | None, key: str) -> HeldChange | None:
    """The held change of a request's file; None: its file counts as it is on main."""
    slice_, _, name = key.partition("/")
    path = gpr_path(slice_, name)
    return next((change for change in _holds(facts) if change.path == path), None)


def held_new(facts: Facts | None) -> list[str]:
    """Requests, as slice/name, whose file is new and held, so that nothing of them counts."""
    found = []
    for change in _holds(facts):
        rule = rule_of(change.path)
        if rule is not None and rule[0].kind == "GPR" and change.authorised is None:
            found.append(f"{rule[1]['slice']}/{rule[1]['name']}")
    return sorted(found)


def _holds(facts: Facts | None) -> tuple[HeldChange, ...]:
    return () if facts is None or facts.trust is None else facts.trust.held


def sentences(key: str, change: HeldChange) -> list[str]:
    """A hold in sentences: commit and rule, what counts, and what to do."""
    since = f"since {format_instant(change.since)}: commit {change.commit[:12]}, rule {change.rule}"
    if change.authorised is None:
        first = f"Its file is held {since}; it does not count, and the request is not planned."
        act = f"It counts once a person who may file it submits it again with `egs resubmit {key}`."
    elif change.found is None:
        first = f"The deletion of its file is held {since}; the request itself continues as it was accepted."
        act = f"`egs resubmit {key}` or `git revert` brings the file back; a person who may delete it can then do so."
    else:
        first = f"An edit of its file is held {since}; the request itself continues as it was accepted."
        act = f"A person who may make the edit submits it again with `egs resubmit {key}`; `git revert` drops it."
    return [first, f"{change.message}.", act]


def row(change: HeldChange) -> Row:
    return {
        "path": change.path,
        "commit": change.commit,
        "rule": change.rule,
        "message": change.message,
        "since": format_instant(change.since),
        "counts": change.authorised is not None,
    }


def problem_rows(source: Source, now: datetime) -> list[Row]:
    """Problems that only the status branch knows: held changes, and a main that is not followed."""
    loaded = source.loaded(now)
    if loaded is None:
        return []
    return [*_alarms(source, loaded.facts), *held_rows(loaded.facts.trust)]


def held_rows(record: TrustRecord | None) -> Iterator[Row]:
    fix = "have a person who may change this file submit the change again, or restore what counts"
    for change in () if record is None else record.held:
        text = f"{change.message} (held since commit {change.commit[:12]})"
        yield asdict(Problem(quoted(change.path), 1, 1, change.rule, "error", text, fix))


def _alarms(source: Source, facts: Facts) -> Iterator[Row]:
    """The alarm that keeps main from being followed, if it was reported since main was last processed."""
    judged = facts.intent if facts.trust is None else facts.trust.main
    main, status = _main(source), source.status()
    if not judged or main in (None, judged) or status is None:
        return
    followed = events(source, Filter(reason=EventReason.FOLLOWED), 1)
    since = max([_answered_since(*status, facts.intent), *(event["at"] for event in followed)])
    for event in events(source, Filter(reason=EventReason.ALARM), MOST_ALARMS):
        if event["at"] >= since and MAIN_WORD in event["message"].split():
            text = f"main is not followed beyond {judged[:12]}: {event['message']} (reported {event['at']})"
            fix = "push the old main again, or have an operator accept main as it is with `egs-reconciler adopt`"
            yield asdict(Problem("main", 1, 1, str(EventReason.ALARM), "error", text, fix))
            return


def _main(source: Source) -> str | None:
    """The head of main in the upstream repository."""
    remote = source.upstream()
    try:
        return None if remote is None else remote.commit_of(None)
    except WrongUse:
        return None


def _answered_since(store: Store, tip: str, intent: str) -> str:
    """When the status first covered its current commit of main."""
    since = store.commit(tip).at
    for commit in store.log(tip, LOOKED_BACK):
        stamp = parse_stamp(commit.trailers)
        if stamp is not None and stamp.intent and stamp.intent != intent:
            break
        since = commit.at
    return format_instant(since)
