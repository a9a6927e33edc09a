"""`egs diff`: what differs between two states, or between what should be in the clusters and what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from egs.commands import options, output
from egs.commands.backend import Backend, Ways
from egs.commands.declare import READS, declare
from egs.commands.errors import wrong_use
from egs.commands.options import argument, of_repository
from egs.commands.output import Column, Form, Row, field

_STATE = "a time, how long ago (2h), or a commit of the status branch"
First = Annotated[
    str | None, argument(metavar="FROM", help=f"The earlier state: {_STATE}. Default: compare clusters.")
]
Second = Annotated[str | None, argument(metavar="TO", help="The later state. Default: the newest.")]
Clusters = Annotated[
    list[str] | None, of_repository("--cluster", metavar="C", help="Only this cluster; may be repeated.")
]
Kubeconfigs = Annotated[
    Path | None,
    of_repository(
        "--kubeconfigs",
        metavar="DIR",
        envvar="EGS_KUBECONFIGS",
        help="Folder with the kubeconfigs that Cluster manifests name.",
        exists=True,
        file_okay=False,
    ),
]
Kubeconfig = Annotated[
    Path | None,
    of_repository("--kubeconfig", metavar="FILE", help="Your own kubeconfig of the one cluster."),
]
Context = Annotated[
    str | None, of_repository("--context", metavar="NAME", help="Context of that kubeconfig.")
]
Folder = Annotated[
    Path | None,
    of_repository("--state", metavar="DIR", help="A controller's folder, for simulated clusters."),
]
Project = Annotated[
    str | None,
    of_repository("--project", metavar="P", help="The controller's --project. Default: default."),
]
Namespace = Annotated[
    str | None,
    of_repository("--namespace", metavar="N", help="The controller's --namespace. Default: egs-system."),
]

_WITH_TIMES = frozenset({"promised", "slipped", "earlier", "started"})
_COLUMNS: tuple[Column, ...] = (
    ("WHAT", field("what")),
    ("CHANGE", field("change")),
    ("WAS", field("was")),
    ("NOW", field("now")),
    ("BECAUSE", field("because")),
)


def register(app: typer.Typer) -> None:
    declare(app, "diff", "Show what differs: two states, or clusters.", diff, READS)


def diff(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    first: First = None,
    second: Second = None,
    cluster: Clusters = None,
    kubeconfigs: Kubeconfigs = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    state: Folder = None,
    project: Project = None,
    namespace: Namespace = None,
    output: options.Output = Form.TABLE,
) -> None:
    """Show what differs between two states: requests, nodes, people and rules, with causes. Without FROM: what a
    controller would change in the clusters right now, and why. Nothing is written anywhere.

    \b
    Examples:
      egs diff 12h
      egs diff 2026-11-21T08:00:00Z 2026-11-21T20:00:00Z -o json
      egs diff --kubeconfigs ~/.kube/fleet
      egs diff --cluster east --kubeconfig ~/.kube/east -o json

    Without FROM, exit 0: nothing differs; 1: something does; 3: a cluster could not be looked at.
    """
    ways = Ways(cluster or (), kubeconfigs, kubeconfig, context, state, project, namespace)
    if first is None:
        raise typer.Exit(backend.in_clusters(ways, output))
    if ways != Ways():
        raise wrong_use("options for clusters belong to `egs diff` without FROM; leave them out")
    found = backend.differences(first, second)
    if output is Form.TABLE:
        _table(list(_rows(found)), Form.TABLE, _COLUMNS, "nothing differs")
    else:
        _data(found, output)


def _rows(found: Row) -> Iterator[dict[str, Any]]:
    for row in found["requests"]:
        shown = output.time if row["change"] in _WITH_TIMES else str
        was, now = (None if row[name] is None else shown(row[name]) for name in ("was", "now"))
        yield _row(output.key(row), row["change"], was, now, row["causes"])
    for row in found["nodes"]:
        yield _row(f"{row['cluster']}/{row['node']}", "state", row["was"], row["now"], row["reason"])
    for row in found["people"]:
        yield _row(f"{row['email']} in {row['slice']}", "role", row["was"], row["now"])
    for row in found["documents"]:
        yield _row(row["path"], row["field"] or "document", _short(row["was"]), _short(row["now"]))


def _row(what: str, change: str, was: Any, now: Any, because: Any = None) -> dict[str, Any]:
    return {"what": what, "change": change, "was": was, "now": now, "because": because}


def _short(value: Any) -> Any:
    """A value of a document in one cell."""
    return f"{len(value)} entries" if isinstance(value, dict | list) else value


# Inside a command, `output` is its option and not the module.
_data, _table = output.data, output.rows
