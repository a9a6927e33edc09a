"""Processes inside one cluster besides the controller: the door of GPR objects, and the admission webhook.

Commands only: `reconciler.gpr_objects.door` and `reconciler.clusters.kubernetes.admission.webhook` do the
work. The Kubernetes client is imported when a process starts, because that is slow.
"""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from threading import Event
from typing import Annotated, Literal

import typer

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.credentials import from_environment
from reconciler.processes.kubeconfig_option import by_option
from reconciler.processes.process_options import DEFAULT_STATE, Repo, State, grouped
from reconciler.settings import Settings
from reconciler.signals import wait_for
from reconciler.trust.trust_options import TrustOptions, option

log = logging.getLogger(__name__)

app = typer.Typer()

HERE = "here"
"""The cluster's name in messages of a process that knows no other."""
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig of the cluster. Default: the cluster this runs in.",
        show_default=False,
    ),
]


@app.command(epilog="Example: egs-reconciler door --cluster east --repo URL --verify none --via commit")
@grouped
def door(
    cluster: Annotated[str, option("--cluster", "EGS_CLUSTER", "Name of the Cluster document.")],
    repo: Repo,
    trust: TrustOptions,
    state: State = DEFAULT_STATE,
    via: Annotated[
        Literal["commit", "branch"],
        typer.Option("--via", help="commit: onto main, by verified authors; branch: for people to merge."),
    ] = "branch",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Turns GPR objects of a cluster into commits and shows their requests' status, until SIGTERM or Ctrl-C."""
    ended = _until_told()
    from reconciler.gpr_objects.door import DoorSettings, run_door

    api = by_option(cluster, kubeconfig, "--kubeconfig")
    settings = Settings(
        repo=repo,
        state=state.expanduser(),
        credentials=from_environment(os.environ),
        trust=trust.settings(repo),
    )
    log.info("door opened cluster=%s via=%s", cluster, via)
    run_door(api, settings, DoorSettings(cluster, via), ended)


@app.command(epilog="Example: egs-reconciler admission --listen :9443")
def admission(
    listen: Annotated[str, option("--listen", "EGS_LISTEN", "HOST:PORT for API servers.")],
    kubeconfig: Kubeconfig = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", envvar="EGS_NAMESPACE", help="Namespace of the webhook's Secret and Service."
        ),
    ] = SYSTEM_NAMESPACE,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Host name that API servers use, if not its Service.", show_default=False
        ),
    ] = "",
) -> None:
    """Answers API servers about pods of slices and authors of GPR objects, until SIGTERM or Ctrl-C."""
    ended = _until_told()
    from reconciler.clusters.kubernetes.admission.webhook import AdmissionService

    api = by_option(HERE, kubeconfig, "--kubeconfig")
    service = AdmissionService(api, namespace, listen, SystemClock(), host)
    service.start()
    log.info("admission answers port=%d namespace=%s", service.port, namespace)
    wait_for(ended)
    service.stop()


def _until_told() -> Event:
    """Set by SIGTERM or Ctrl-C."""
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    return ended
