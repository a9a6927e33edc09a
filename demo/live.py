"""`egs demo`: the running system as one live page in the terminal."""

from __future__ import annotations

import signal
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event as Signal
from threading import Thread

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from demo.api import Served, served
from demo.story import LIVE
from demo.system import System
from reconciler.clock import Clock, ScaledClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.model.events import Event
from reconciler.model.facts import Facts
from reconciler.processes.wake import Waking
from reconciler.settings import Settings
from schemas.errors import EgsError
from schemas.reading.units import format_duration
from schemas.status.gpr_status import HOLDING, WAITING, GPRStatus

EVENTS_SHOWN = 12
FRAME_S = 0.5
CLUSTERS = ("east", "west")
"""Of the example."""
AGENTS_EVERY_S = 5.0
"""Real seconds between two rounds of the agents."""


@dataclass(slots=True)
class Board:
    """The content of the page; written by the controller's thread, read by the page."""

    facts: Facts | None = None
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_SHOWN))

    def note(self, cycle: Cycle) -> None:
        """Take over the results of a cycle."""
        self.facts = cycle.facts or self.facts
        self.events.extend(cycle.events)


def watch(root: Path, console: Console, speed: float, port: int = 0) -> bool:
    """Run until SIGTERM or Ctrl-C; False if the controller failed. `port`: of the portal; 0: any free one."""
    poll = timedelta(seconds=2 * speed)  # a push is seen within two real seconds
    settings = Settings(repo=str(root / "fleet.git"), state=root, poll=poll, pushes_per_minute=None)
    system, clock = System(root, settings), ScaledClock(SystemClock(), speed)
    if not system.repository.exists():
        system.create(clock.now())
    board, stop = Board(), Signal()
    controller = system.start_controller()
    waking = Waking(controller, clock, speed, board.note, beside=controller.hands.round)
    agents = Thread(target=_watch_nodes, args=(system, clock, stop), daemon=True)
    with _until_signal(stop), served(system, clock, port) as door:
        console.print(f"portal: {door.link}", soft_wrap=True)
        console.print(f"HTTP API: {door.url}/docs   API key: {door.key}", soft_wrap=True)
        waking.start()
        agents.start()
        with Live(console=console, refresh_per_second=4, screen=console.is_terminal) as page:
            while not stop.wait(FRAME_S) and not waking.ended.is_set():
                page.update(_page(system, board, clock.now(), (speed, door)))
        stop.set()
        waking.stop()
        agents.join()
    system.close()
    console.print(f"stopped; everything is in {root}, which may be deleted")
    if waking.failed is not None:
        console.print(f"[red]{waking.failed.reason}:[/red] {waking.failed}")
    return waking.failed is None


@contextmanager
def _until_signal(stop: Signal) -> Iterator[None]:
    old = {n: signal.signal(n, lambda *_: stop.set()) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _watch_nodes(system: System, clock: Clock, stop: Signal) -> None:
    """Submits the example's workloads once its clusters run, then runs the agents."""
    todo = deque(LIVE)
    while not stop.wait(AGENTS_EVERY_S if not todo else FRAME_S):
        if len(system.clusters) < len(CLUSTERS):
            continue
        try:
            while todo:
                todo[0](system, clock.now())
                todo.popleft()
            system.watch_nodes(clock.now())
        except EgsError:
            continue  # remote or cluster did not answer: the next round tries again


def _page(system: System, board: Board, now: datetime, about: tuple[float, Served]) -> Group:
    speed, door = about
    head = (
        f"[bold]{system.repository}[/bold]   {now:%Y-%m-%d %H:%M:%S} UTC, {speed:g} times real time\n"
        f"try: git clone {system.repository}   or: egs gpr create vision/mine --nodes 1 --duration 1h "
        f"--repo {system.repository}"
    )
    head += f"\n[bold]portal:[/bold] {door.link}\nHTTP API: {door.url}/docs   API key: {door.key}"
    facts = board.facts
    if facts is None:
        return Group(Panel(head, title="EGS demo"), "starting …")
    return Group(
        Panel(head, title="EGS demo — Ctrl-C ends it"),
        _running(facts, now),
        _waiting(facts, now),
        _nodes(system, now),
        _events(board),
    )


def _running(facts: Facts, now: datetime) -> Table:
    table = _table("Running", "request", "phase", "nodes", "start", "ends in")
    for key, status in sorted(facts.requests.items()):
        if status.phase in HOLDING and status.assignment is not None:
            held = status.assignment
            start = status.start_time or status.estimated_start_time
            end = status.end_time or status.estimated_end_time
            nodes = f"{held.cluster}: {', '.join(held.nodes)}"
            table.add_row(key, str(status.phase), nodes, _clock(start), _left(end, now))
    return table


def _waiting(facts: Facts, now: datetime) -> Table:
    table = _table("Waiting", "request", "priority", "asks for", "starts", "in", "note")
    waiting = [(k, s) for k, s in facts.requests.items() if s.phase in WAITING]
    for key, status in sorted(waiting, key=_by_start):
        spec = status.accepted_spec
        wish = f"{spec.nodes} × {spec.gpus_per_node} {' or '.join(spec.gpu_shapes) or 'any GPU'}"
        start = status.estimated_start_time
        note = status.reason or (f"moved: {status.slips[-1].cause}" if status.slips else "")
        table.add_row(key, str(spec.priority), wish, _clock(start), _left(start, now), note)
    return table


def _by_start(item: tuple[str, GPRStatus]) -> tuple[bool, float, str]:
    key, status = item
    start = status.estimated_start_time
    return start is None, 0 if start is None else start.timestamp(), key


def _nodes(system: System, now: datetime) -> Table:
    table = _table("Nodes", "pool", "nodes")
    for name, cluster in sorted(dict(system.clusters).items()):
        try:
            view = cluster.observe(now)
        except EgsError:
            table.add_row(name, "does not answer")
            continue
        pools: dict[str, list[str]] = {}
        for node in view.nodes.values():
            mark = "[green]free[/green]" if node.lease is None else f"[cyan]{node.lease.request}[/cyan]"
            if node.isolated or not node.ready:
                mark = "[red]out[/red]"
            pools.setdefault(node.pool, []).append(mark)
        for pool, marks in pools.items():
            counts = [f"{mark} ×{number}" for mark, number in Counter(marks).items()]
            table.add_row(f"{name}/{pool}", "  ".join(counts))
    return table


def _events(board: Board) -> Table:
    table = _table("Events", "time", "reason", "message")
    for event in reversed(list(board.events)):
        style = "yellow" if event.warning else None
        table.add_row(f"{event.at:%H:%M:%S}", str(event.reason), event.message, style=style)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", expand=True, box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _clock(at: datetime | None) -> str:
    return "" if at is None else f"{at:%H:%M:%S}"


def _left(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    return "now" if at <= now else format_duration(at - now + timedelta(seconds=59))
