"""A view: one commit of the status branch, and main as fetched with it. Immutable; every answer is made of one.

A fetch with new commits replaces the whole view, so an answer never mixes two commits.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from portal.views.event_log import NO_EVENTS, EventLog
from reconciler.documents.in_force import Desired
from reconciler.model.facts import Facts, Wanted
from reconciler.planning.snapshot import build_snapshot
from reconciler.queries.state import State
from reconciler.status.tree import Tree
from reconciler.trust.authority import Authority
from scheduler.snapshot import Snapshot
from schemas.documents.apikey import ApiKeySpec
from schemas.documents.gpr import RequestSpec
from schemas.documents.identity import uid_of
from schemas.rules.problems import Problem
from schemas.status.gpr_status import GPRStatus

Made = TypeVar("Made")


@dataclass(frozen=True)
class Past:
    """What distinguishes a past view."""

    present: View
    """The newest view: its rights count, never those of then."""
    at: datetime
    """The instant that was asked for."""


@dataclass(frozen=True)
class View:
    """One state of the repository. Costly results are computed when first needed, then kept.

    Worth it by `benchmarks.why`: without what is kept, a question costs seconds of a core, with it milliseconds.
    """

    main: str
    """Commit of main, in the store."""
    status: str
    """Commit of the status branch; empty: there is none yet."""
    facts: Facts
    """As committed there; `at` is when they were decided."""
    wanted: Wanted
    """The documents in force at `main`."""
    authority: Authority
    fetched: datetime
    """When these commits were first seen. `Reads.age_s` gives the age of an answer."""
    problems: tuple[Problem, ...] = field(default=())
    events: EventLog = field(default=NO_EVENTS, compare=False, repr=False)
    """The events on the status branch."""
    documents: Desired | None = field(default=None, compare=False, repr=False)
    """The documents of main as they were read, for `portal.views.what_if` alone; None: this view cannot be asked."""
    tree: Tree | None = field(default=None, compare=False, repr=False)
    """The status files as they were read, of which past views read the differences alone."""
    past: Past | None = field(default=None, compare=False, repr=False)
    """None: it is the newest one."""
    _worked_out: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    _of_plan: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rights(self) -> View:
        """The view whose people, slices and keys say what a caller may see."""
        return self if self.past is None else self.past.present

    def clock(self, now: datetime) -> datetime:
        """The time up to which it is shown: now, or then."""
        return now if self.past is None else self.past.at

    def once(self, make: Callable[[View], Made]) -> Made:
        """The result of `make` for this view, computed at the first call; `make` is a module-level function.

        Two concurrent first calls may both compute it; they get equal results.
        """
        return _kept(self._worked_out, self, make)

    def once_planned(self, make: Callable[[View], Made]) -> Made:
        """The same for results that depend on the plan alone, which newly filed requests do not change."""
        return _kept(self._of_plan, self, make)

    def after(self, before: View | None) -> View:
        """This view with the plan results of `before`, if only main has changed and the plan's inputs are the same."""
        if before is None or before.facts is not self.facts:
            return self
        old, new = before.wanted, self.wanted
        is_same = (old.project, old.slices, old.pools, old.clusters) == (
            new.project,
            new.slices,
            new.pools,
            new.clusters,
        )
        return replace(self, _of_plan=before._of_plan) if is_same else self

    @cached_property
    def keys(self) -> Mapping[str, tuple[str, ApiKeySpec]]:
        """Name and manifest of every API key, by the digest of its text.

        A key that two manifests claim is left out: its owner is ambiguous.
        """
        claims = Counter(spec.sha256 for spec in self.wanted.keys.values())
        found = self.wanted.keys.items()
        return {spec.sha256: (name, spec) for name, spec in found if claims[spec.sha256] == 1}

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """`slice/name` by request id, including requests that the controller has not seen yet."""
        found = {
            uid_of(key, filed.nonce): key
            for key, filed in self.wanted.filed.items()
            if key not in self.facts.requests and filed.nonce
        }
        return ChainMap(self.once_planned(_answered_ids), found)

    @cached_property
    def state(self) -> State:
        """The view as commands use it, so that the API and `egs -o json` give the same rows."""
        snapshot = self.once_planned(_snapshot)
        return State(self.facts.at, self.main, self.wanted, self.facts, self.facts, snapshot, self.problems)

    def request(self, id_or_key: str) -> tuple[str, GPRStatus | None, RequestSpec] | None:
        """`slice/name`, its status (None: not seen yet) and its terms; None: there is no such request.

        `id_or_key` is a request's id, or `slice/name`.
        """
        key = self.ids.get(id_or_key, id_or_key)
        status = self.facts.requests.get(key)
        if status is not None:
            return key, status, status.accepted_spec
        filed = self.wanted.filed.get(key)
        return None if filed is None or filed.spec is None else (key, None, filed.spec)


def _snapshot(view: View) -> Snapshot:
    return build_snapshot(view.wanted, view.facts, None, frozenset())


def _answered_ids(view: View) -> dict[str, str]:
    return {status.uid: key for key, status in view.facts.requests.items()}


def _kept(memory: dict[Any, Any], view: View, make: Callable[[View], Made]) -> Made:
    if make not in memory:
        memory[make] = make(view)
    found: Made = memory[make]
    return found
