"""`egs init --from-cluster`: a Cluster document from what a cluster shows to a person's own kubeconfig."""

from __future__ import annotations

import re
from pathlib import Path

from egs.commands import output
from reconciler.changes.init_and_prune import init
from reconciler.cli.answers.member_kubeconfig import Own
from reconciler.clusters.kubernetes.nodes.first_pools import FirstDocument, first_document
from reconciler.clusters.kubernetes.nodes.node_inventory import read_node
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.sources.command_errors import NotAllowed, WrongUse
from schemas.errors import Fault
from schemas.reading.reader import read_document
from schemas.reading.units import NAME_PATTERN
from schemas.rules.view import PROJECT


def init_from_cluster(path: str, admin: str | None, cluster: str, own: Own) -> None:
    """Writes `clusters/<cluster>.yaml`, and before it the repository if there is none; overwrites nothing."""
    if not re.fullmatch(NAME_PATTERN, cluster):
        raise WrongUse(f"--from-cluster {cluster}: write a name of lower-case letters, digits and '-'")
    folder = Path(path).expanduser()
    file = f"clusters/{cluster}.yaml"
    if (folder / file).exists():
        raise NotAllowed(f"{folder / file} exists already; nothing is overwritten")
    found = seen(cluster, own)
    if not found.text:
        raise NotAllowed(
            "the cluster shows no GPU node that could be in a pool; install the GPU operator, or the device plugin and "
            "GPU feature discovery"
        )
    read = read_document(file, found.text.encode())
    if isinstance(read, tuple):
        raise Fault(f"the document would not be valid: {read[0].message}; please report it")
    if not (folder / PROJECT).exists():
        init(path, admin)
    (folder / "clusters").mkdir(exist_ok=True)
    (folder / file).write_text(found.text, "utf-8")
    output.text(f"{folder / file} has {len(found.pools)} pool{'s' * (len(found.pools) != 1)}:")
    for line in found.pools:
        output.text(f"  {line}")
    output.note(
        "it is in mode: observe, in which nothing is touched; set prices and names, then `egs validate`"
    )


def seen(cluster: str, own: Own) -> FirstDocument:
    """What the cluster shows; notes go to stderr."""
    api = member_tokens.connected(member_tokens.opened(own.kubeconfig, own.context), cluster)
    found = first_document(cluster, (read_node(item) for item in api.items("/api/v1/nodes")))
    for note in found.notes:
        output.note(note)
    return found
