"""Options shared by several commands of `egs-reconciler`, and groups of them; see also `trust_options`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.trust.trust_options import option

Repo = Annotated[str, option("--repo", "EGS_REPO", "Path or URL of the repository.")]
Repos = Annotated[
    list[str], option("--repo", "EGS_REPO", "Path or URL of a repository, or NAME=ADDRESS; may be repeated.")
]
State = Annotated[
    Path,
    typer.Option(
        "--state", envvar="EGS_STATE", help="Folder for mirror and cache; may be deleted at any time."
    ),
]
Poll = Annotated[
    int, typer.Option("--poll", min=1, max=3600, help="Seconds between two polls of the repository.")
]
Budget = Annotated[
    int | None,
    typer.Option(
        "--pushes-per-minute",
        min=0,
        max=60,
        help="Non-urgent pushes per minute; 0: no limit. Default: 2 for a URL, no limit for a path.",
    ),
]
HistoryDays = Annotated[
    int,
    typer.Option(
        "--history-days",
        min=0,
        max=700,
        envvar="EGS_HISTORY_DAYS",
        help="Days for which old states of the status branch are kept, in egs/history/*; 0: not at all.",
    ),
]
Listen = Annotated[
    str, option("--listen", "EGS_LISTEN", "HOST:PORT for webhooks, metrics and probes; none by default.")
]
HookSecrets = Annotated[
    Path | None,
    option(
        "--hook-secrets",
        "EGS_HOOK_SECRETS",
        "File with webhook secrets, one per line; without it webhooks are disabled.",
    ),
]
Elect = Annotated[
    str,
    option(
        "--elect",
        "EGS_ELECT",
        "NAMESPACE/NAME of a Lease: one of the processes that share it is active. Default: no election.",
    ),
]
ElectKubeconfig = Annotated[
    Path | None,
    option(
        "--elect-kubeconfig",
        "EGS_ELECT_KUBECONFIG",
        "Kubeconfig of the cluster with that Lease. Default: the cluster this runs in.",
    ),
]
Project = Annotated[
    str,
    option(
        "--project",
        "EGS_PROJECT",
        "Project that owns the nodes and namespaces, if projects share clusters. Default: default; with several "
        "repositories, each one's name.",
    ),
]
Kubeconfigs = Annotated[
    Path | None,
    option("--kubeconfigs", "EGS_KUBECONFIGS", "Folder with the kubeconfigs named in Cluster manifests."),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        envvar="EGS_NAMESPACE",
        help="Namespace in every cluster for objects that belong to no slice.",
    ),
]

Routes = Annotated[
    Path | None,
    option("--routes", "EGS_ROUTES", "Folder with the addresses of notifications; without it none are sent."),
]
MetricsFiles = Annotated[
    Path | None,
    option(
        "--metrics-files",
        "EGS_METRICS_FILES",
        "Folder with credentials that spec.metrics of clusters names, to observe roll-outs of endpoints.",
    ),
]
BelieveClock = Annotated[
    bool,
    typer.Option(
        "--believe-clock", help="Trust this machine's clock, whatever the status branch says about the time."
    ),
]

DEFAULT_STATE = Path("~/.local/state/egs-reconciler")


@dataclass(frozen=True, slots=True)
class Fleet:
    """One repository, and how its real clusters are reached."""

    repo: Repo
    state: State = DEFAULT_STATE
    project: Project = ""
    kubeconfigs: Kubeconfigs = None
    namespace: Namespace = SYSTEM_NAMESPACE
    routes: Routes = None
    metrics_files: MetricsFiles = None


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Expands parameters that are option groups: dataclasses whose fields are options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{part.name: given.pop(part.name) for part in fields(group)})
        command(**given)

    parameters = [
        each
        for name, parameter in inspect.signature(command).parameters.items()
        for each in (
            _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]
        )
    ]
    ordered = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    spread.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    spread.__annotations__ = {each.name: each.annotation for each in ordered}
    return spread


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_option(part, hints[part.name]) for part in fields(group)]


def _option(part: Field[Any], hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if part.default is MISSING else part.default
    return inspect.Parameter(part.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
