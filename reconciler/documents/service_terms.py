"""A slice's Services across its clusters: which clusters are peers, and what the status says. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.cluster_port import ClusterView, SliceTerms
from reconciler.model.service_port import MOST_EXPORTS, ExportsView, Peer
from schemas.documents.cluster import ClusterSpec
from schemas.documents.slice import SliceSpec
from schemas.status.inventory import SliceExport, SliceServices

OBSERVED = "nothing is written while the cluster is only observed"


def peers_in(cluster: str, slice_: SliceSpec, clusters: Mapping[str, ClusterSpec]) -> tuple[Peer, ...] | None:
    """The slice's other clusters, by name; None if it exports nothing."""
    if slice_.services.across == "none":
        return None
    return tuple(
        Peer(name, spec.mesh.name or name, spec.mesh.addresses)
        for name in sorted(set(slice_.clusters) - {cluster})
        if (spec := clusters.get(name)) is not None
    )


def service_rows(
    spec: ClusterSpec, terms: tuple[SliceTerms, ...], view: ClusterView
) -> Iterator[SliceServices]:
    """What the status says of the exports in one cluster, by slice; one that was not looked at yet is left out."""
    for found in terms:
        have = view.exports.get(found.name)
        if found.peers is None:
            continue
        if spec.mode == "observe":
            yield SliceServices(slice=found.name, state="Observed", message=OBSERVED)
        elif have is not None and have.problem:
            yield SliceServices(slice=found.name, state="Missing", message=have.problem)
        elif have is not None:
            yield _kept(found.name, found.peers, have)


def _kept(slice_: str, peers: tuple[Peer, ...], have: ExportsView) -> SliceServices:
    exports = tuple(
        SliceExport(namespace=each.namespace, name=each.name, state=each.state, message=each.message)
        for each in have.exports
    )
    more = f"{have.omitted} more Services have the label; the first {MOST_EXPORTS} are exported"
    said = [_let_in(peers, have), more if have.omitted else ""]
    policy = "None"
    if have.by_name or any(peer.addresses for peer in peers):
        policy = "ClusterNames" if have.by_name else "Addresses"
    return SliceServices.model_validate(
        {
            "slice": slice_,
            "state": "Kept",
            "policy": policy if peers else "None",
            "exports": exports,
            "message": "; ".join(filter(None, said)),
        }
    )


def _let_in(peers: tuple[Peer, ...], have: ExportsView) -> str:
    """What the network policies cannot do; empty if they name the peers' clusters."""
    if not peers:
        return "the slice has no other cluster"
    if have.by_name:
        return ""
    unknown = [peer.cluster for peer in peers if not peer.addresses]
    known = [f"{peer.cluster} ({', '.join(peer.addresses)})" for peer in peers if peer.addresses]
    said = []
    if unknown:
        which = "these clusters" if unknown[1:] else "that cluster"
        said.append(
            f"pods of {', '.join(unknown)} are not let in: a NetworkPolicy cannot name pods of another cluster; "
            f"set spec.mesh.addresses of {which}, or use Cilium's cluster mesh"
        )
    if known:
        said.append(
            f"a NetworkPolicy cannot tell slices of another cluster apart: pods with the label egs.dev/export let in "
            f"all pods of {', '.join(known)}"
        )
    return "; ".join(said)


def troubles(rows: tuple[SliceServices, ...]) -> dict[str, tuple[str, ...]]:
    """By slice, sentences about Services that its other clusters cannot use."""
    return {row.slice: found for row in rows if (found := tuple(_troubles(row)))}


def _troubles(row: SliceServices) -> Iterator[str]:
    if row.state == "Missing" or (row.state == "Kept" and " are not let in" in row.message):
        yield row.message
    for each in row.exports:
        if each.state in {"Unanswered", "Refused", "Conflict"}:
            yield f"Service {each.namespace}/{each.name}: {each.message or each.state}"
