"""Running requests that a slice lost to other slices: what the daily limit counts. Pure.

A loss is an eviction carried out or announced, not a cancelled one, nor one for the same slice: a slice cannot
use up its own limit. Held by tests/cases/reconciler/preemption.yaml.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from reconciler.lifecycle.early_end import PREEMPTED
from reconciler.model.facts import Facts
from reconciler.model.statuses import changed, live
from schemas.documents.base import Metadata
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.usage import UsageRecord

DAY = timedelta(days=1)


def losses(facts: Facts) -> Counter[str]:
    """The number of losses of each slice within a day, announced ones included."""
    found = Counter({name: len(_within_a_day(record, facts.at)) for name, record in facts.usage.items()})
    found.update(key.partition("/")[0] for key, status in live(facts.requests).items() if _is_going(status))
    return found


def with_losses(
    before: Facts, requests: Mapping[str, GPRStatus], usage: Mapping[str, UsageRecord], currency: str
) -> dict[str, UsageRecord]:
    """The ledger with every request evicted between `before` and `requests` for another slice."""
    found = dict(usage)
    for key in sorted(changed(before.requests, requests)):
        old, status = before.requests.get(key), requests.get(key)
        if old is None or old.eviction is None or status is None or not _is_going(old):
            continue
        if status.phase is Phase.PROVISIONED or status.reason != PREEMPTED:
            continue
        name, at = key.partition("/")[0], old.eviction.at
        record = found.get(name) or UsageRecord(metadata=Metadata(name=name), currency=currency)
        found[name] = record.edited(preempted=(*_within_a_day(record, at), at))
    return found


def _is_going(status: GPRStatus) -> bool:
    """True if it runs, and is to be evicted for another slice."""
    eviction = status.eviction
    if status.phase is not Phase.PROVISIONED or eviction is None or eviction.reason != PREEMPTED:
        return False
    return eviction.by.partition("/")[0] != status.accepted_spec.slice


def _within_a_day(record: UsageRecord, now: datetime) -> tuple[datetime, ...]:
    return tuple(at for at in record.preempted if now - at < DAY)
