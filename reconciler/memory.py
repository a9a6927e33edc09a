"""What one controller process remembers between cycles. A new process starts without it and only loses time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from reconciler.acting.actions import Action
from reconciler.acting.apply import ClusterFailures
from reconciler.acting.due_actions import Hands
from reconciler.acting.fleet import Fleet
from reconciler.acting.standstill import Standstill
from reconciler.committer import Committer
from reconciler.deciding.failed_attempts import FailedAttempts
from reconciler.deciding.unchanged_requests import UnchangedRequests
from reconciler.health.agent_reports import Reports
from reconciler.leadership import Leading
from reconciler.main_reader import MainReader
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.telling.mailroom import Mailroom
from reconciler.timekeeping.cycle_pace import Pace
from reconciler.timekeeping.timekeeper import Timekeeper


@dataclass(slots=True)
class Memory:
    """The parts with a memory. One owner: the loop."""

    main: MainReader
    reports: Reports
    leadership: Leading
    committer: Committer
    fleet: Fleet
    hands: Hands
    mailroom: Mailroom
    time: Timekeeper
    pace: Pace
    standstill: Standstill
    unchanged: UnchangedRequests = field(default_factory=UnchangedRequests)
    attempts: FailedAttempts = field(default_factory=FailedAttempts)
    done: frozenset[Action] = frozenset()
    """Actions of the last cycle."""
    hurried: datetime | None = None
    """The time at which the next cycle was wanted at once."""


def new_memory(ports: Ports, settings: Settings, writer: str, *, adopt: bool) -> Memory:
    main, reports = MainReader(ports, settings, adopt=adopt), Reports(ports.store, ports.machines)
    trusted = None if ports.machines is None else ports.machines.controllers()
    lead = partial(Leading, ports.store, main.desired, settings, writer, adopt=adopt, may_lead=ports.may_lead)
    leadership = lead(believes=trusted, records=ports.records, said=reports.read)
    failures = ClusterFailures()
    hands = Hands(settings, failures, ports.drivers, ports.may_lead or (lambda: True), ports.clock)
    return Memory(
        main=main,
        reports=reports,
        leadership=leadership,
        committer=Committer(leadership, main, settings),
        fleet=Fleet(ports.drivers, reports, hands, failures, leadership.pending, ports.watch),
        hands=hands,
        mailroom=ports.mailroom or Mailroom(),
        time=Timekeeper(settings, ports.clock, ports.clocks),
        pace=Pace(settings, ports.clock),
        standstill=Standstill(leadership.branch, leadership.pending, settings),
    )
