"""Latency between the nodes of a running lease: which node each one measures to (F8). Pure except for one
read of a node.

Each node measures to the next by name, in a ring: every node is measured twice, once from each side, at a
cost linear in the nodes. The pod needs no GPU and almost no CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from reconciler.clusters.kubernetes.nodes.node_writer import NODES
from reconciler.model.cluster_port import CheckResult

ALONE = CheckResult("Latency", True, "no other node", "the lease has one node")


def next_of(node: str, peers: Iterable[str]) -> str:
    """The node that this one measures to; empty: there is no other."""
    others = sorted(set(peers) - {node})
    return next((name for name in others if name > node), others[0] if others else "")


def address_of(node: Json) -> str:
    """The node's address for pods; empty: it has none."""
    found = {a["type"]: a["address"] for a in (node.get("status") or {}).get("addresses") or ()}
    return str(found.get("InternalIP") or found.get("ExternalIP") or "")


def target(api: Api, peer: str) -> str:
    """`name=address` of a peer; empty if it is gone or has no address."""
    found = api.find(f"{NODES}/{peer}")
    address = "" if found is None else address_of(found)
    return f"{peer}={address}" if address else ""


def told(result: CheckResult, peer: str) -> CheckResult:
    """The result with the peer's name."""
    value = f"{result.value} to {peer}" if result.value and peer else result.value
    log = f"to {peer}: {result.log}" if peer else result.log
    return replace(result, value=value, log=log)
