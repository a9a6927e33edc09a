"""`egs diff`: what a controller would change in the clusters right now, and why. Changes nothing.

A controller acts on differences (`ClusterDriver.differences`) and on what the committed plan still needs
(`reconciler.acting.actions`). This asks for both as the loop does, and shows them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from egs.commands import output
from egs.commands.output import Form, counted
from reconciler.acting.actions import MOVED, Action, Do, actions
from reconciler.cli.answers.reachable_clusters import Reach, Ways
from reconciler.documents.slice_terms import terms_in
from reconciler.model.cluster_port import ClusterDriver, ClusterView, Difference
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.selected_nodes import found_in, with_found
from reconciler.planning.snapshot import at
from reconciler.queries.state import State, clock, read_state
from reconciler.settings import DEFAULTS
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.open_source import opened
from schemas.errors import EgsError
from schemas.reading.units import wire

SAME, DIFFERS, UNREACHED = 0, 1, 3
TOLERANCE = DEFAULTS.start_tolerance
ENSURES = frozenset({Do.ENSURE_FLEET, Do.ENSURE_SLICE})
LEFT = {
    "ClusterObserved": "the cluster is only observed (mode: observe)",
    "ClusterPaused": "the cluster is paused",
    "SlicePaused": "the slice is paused",
}
"""Why a controller does not repair a difference."""


@dataclass(slots=True)
class Looked:
    wanted: Wanted
    facts: Facts
    views: dict[str, ClusterView] = field(default_factory=dict)
    differences: dict[str, tuple[Difference, ...]] = field(default_factory=dict)
    troubles: dict[str, EgsError | OSError] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()


def show_differences(
    repo: str | None, now: str | None, clusters: Sequence[str], ways: Ways, form: Form
) -> int:
    with opened(repo) as source, contextlib.ExitStack() as stack:
        state = read_state(source, clock(now, source))
        names = _chosen(state.wanted, clusters, ways)
        looked = _look(state, names, Reach(source, ways, stack))
    if state.committed is None:
        output.note("there is no status: this is what the first controller would do")
    rows = [_cluster_row(name, looked) for name in names]
    if form is Form.TABLE:
        _print(rows)
    else:
        status = None if state.committed is None else wire(state.committed.at)
        shown = {"now": wire(state.now), "commit": state.commit, "statusTime": status, "clusters": rows}
        output.data(shown, form)
    return _summed_up(rows)


def _chosen(wanted: Wanted, asked: Sequence[str], ways: Ways) -> list[str]:
    for name in asked:
        if name not in wanted.manifests:
            raise NotFound("cluster", name, wanted.manifests)
    names = sorted({*asked} or wanted.manifests)
    if ways.kubeconfig is not None and len(names) != 1:
        raise WrongUse("--kubeconfig reaches one cluster; say which with --cluster C")
    return names


def _look(state: State, names: Sequence[str], reach: Reach) -> Looked:
    """Steps 3 and 8 of the loop without a write; a failing cluster stops no other."""
    now, facts = state.now, state.committed or Facts(state.now)
    looked = Looked(state.wanted, at(facts, now))
    drivers: dict[str, ClusterDriver] = {}
    for name in names:
        with output.working(f"Looking at {name}"), _troubles(looked, name):
            drivers[name] = reach.open(name, looked.wanted.manifests[name])
            looked.views[name] = drivers[name].observe(now)
    looked.wanted = with_found(looked.wanted, found_in(looked.wanted, looked.views))
    for name in list(looked.views):
        with _troubles(looked, name):
            terms = terms_in(name, looked.wanted, looked.facts, looked.views[name])
            looked.differences[name] = drivers[name].differences(terms, now)
    for name in looked.troubles:
        looked.views.pop(name, None)
    seen = Seen(looked.views, differences=looked.differences)
    looked.actions = actions(looked.wanted, looked.facts, seen, now, TOLERANCE)
    return looked


@contextlib.contextmanager
def _troubles(looked: Looked, name: str) -> Iterator[None]:
    try:
        yield
    except (EgsError, OSError) as error:
        looked.troubles[name] = error


# -- rows ----------------------------------------------------------------------------------------------------


def _cluster_row(name: str, looked: Looked) -> dict[str, Any]:
    spec, trouble = looked.wanted.manifests[name], looked.troubles.get(name)
    differences = looked.differences.get(name, ()) if trouble is None else ()
    here = [action for action in looked.actions if action.cluster == name]
    repaired = {action.slice for action in here if action.do in ENSURES}
    shown = {(do, difference.slice) for do in ENSURES for difference in differences}
    return {
        "name": name,
        "mode": spec.mode,
        "paused": spec.paused,
        "reached": trouble is None,
        "reason": trouble.reason if isinstance(trouble, EgsError) else trouble and type(trouble).__name__,
        "message": None if trouble is None else str(trouble),
        "differences": [
            _difference_row(d, None if d.slice in repaired else _why_left(name, looked.wanted))
            for d in differences
        ],
        "actions": [action_row(a) for a in here if _is_change(a) and (a.do, a.slice) not in shown],
    }


def _why_left(cluster: str, wanted: Wanted) -> str:
    spec = wanted.manifests[cluster]
    if spec.mode == "observe":
        return "ClusterObserved"
    return "ClusterPaused" if spec.paused else "SlicePaused"


def _difference_row(difference: Difference, why_left: str | None) -> dict[str, Any]:
    return {
        "slice": difference.slice or None,
        "object": difference.object,
        "found": difference.found,
        "detail": difference.detail or None,
        "repair": why_left is None,
        "reason": why_left,
    }


def _is_change(action: Action) -> bool:
    """Not what happens all the time: latency is measured, and new pods are shown when they end."""
    return action.do is not Do.SHOW_END and not (action.do is Do.CHECK and action.stage == "run")


def action_row(action: Action) -> dict[str, Any]:
    lease = action.lease
    return {
        "action": action.do.name.title().replace("_", ""),
        "node": action.node or None,
        "request": action.request or None,
        "slice": action.slice or (None if lease is None else lease.slice),
        "end": None if lease is None else wire(lease.end),
        "why": _why(action),
    }


def _why(action: Action) -> str:
    when = "before its start" if action.stage == "pre" else "after its end"
    sentences = {
        Do.REMOVE: f"{action.request} no longer has it",
        Do.RESTORE: "it is in service again",
        Do.ISOLATE: f"it is out of service{f': {action.text}' if action.text else ''}",
        Do.EVICT: f"the end of {action.request} is near",
        Do.ENSURE_FLEET: "objects of the cluster as a whole differ",
        Do.ENSURE_SLICE: "it differs from its manifest",
        Do.CHECK: f"{action.request} needs it checked {when}",
        Do.ADD: f"the end of {action.request} moved" if action.text == MOVED else f"{action.request} runs",
        Do.REMOVE_SLICE: "no slice of that name belongs here",
        Do.SCALE: f"the plan needs {action.count} nodes in this pool",
        Do.DRAINED: f"no request has it, and {action.text} waits for that",
        Do.END_WORKLOAD: f"workload {action.workload} no longer runs here",
        Do.RUN_WORKLOAD: f"workload {action.workload} differs from its file",
        Do.SHOW_END: f"pods do not show when {action.request} ends",
        Do.REMEDIATE: "its agent asks for it, and no request has it",
    }
    return sentences[action.do]


# -- for people ----------------------------------------------------------------------------------------------


WORDS = {
    "Remove": "take back",
    "Restore": "uncordon",
    "Isolate": "cordon",
    "Evict": "ask its GPU pods to end",
    "EnsureFleet": "put right",
    "EnsureSlice": "put right",
    "Check": "check",
    "Add": "hand over",
    "RemoveSlice": "remove",
    "Scale": "resize",
    "ShowEnd": "show its pods their end",
    "EndWorkload": "remove its objects",
    "RunWorkload": "apply its objects",
    "Drained": "report as drained",
    "Remediate": "reset or reboot",
}


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    lines = []
    for row in rows:
        for d in row["differences"]:
            found = f"{d['found']} ({d['detail']})" if d["detail"] else d["found"]
            then = ("leave", LEFT[d["reason"]]) if d["reason"] else ("repair", None)
            lines.append((row["name"], d["object"], d["slice"], found, *then))
        for a in row["actions"]:
            what = f"Node {a['node']}" if a["node"] else f"Slice {a['slice']}" if a["slice"] else "Cluster"
            lines.append((row["name"], what, a["slice"], None, WORDS[a["action"]], a["why"]))
    if lines:
        output.table(("CLUSTER", "WHAT", "SLICE", "FOUND", "THEN", "WHY"), lines, "")


def _summed_up(rows: Sequence[Mapping[str, Any]]) -> int:
    """Prints the sums; returns the exit code."""
    for row in rows:
        if not row["reached"]:
            output.note(f"not looked at: {row['message']}")
    reached = [row for row in rows if row["reached"]]
    differ = sum(len(row["differences"]) for row in reached)
    act = sum(len(row["actions"]) for row in reached)
    seen = f"in {counted(len(reached), 'cluster')}"
    if differ or act:
        sums = f"{counted(differ, 'difference')} and {counted(act, 'action')} of the plan {seen}"
        output.note(f"{sums}; nothing was changed")
    elif reached:
        output.note(f"nothing differs {seen}")
    if len(reached) < len(rows):
        return UNREACHED
    return DIFFERS if differ or act else SAME
