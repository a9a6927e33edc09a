"""Prepares the compiled engine: plans a few requests in every way, so that every part is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduler.kernel.engine import planned
from scheduler.promises import with_promises
from scheduler.snapshot import Plan, Pool, PoolKey, Request, Snapshot, Window

POOL: PoolKey = ("", "pool")


def warmed() -> Callable[[Snapshot], Plan]:
    """The compiled engine."""
    names = ("a", "b", "c")
    pool = Pool(POOL, "", 1, 1, names, windows={"a": (Window(50, 60),)})
    first, urgent = Request("x/1", "x", 3, 10, (POOL,)), Request("y/1", "y", 2, 10, (POOL,), priority=300)
    snapshot = Snapshot(0, {POOL: pool}, {}, {first.key: first})
    promised = with_promises(snapshot, planned(snapshot))
    requests = {**promised.requests, urgent.key: urgent}
    planned(replace(promised, requests=requests))
    return planned
