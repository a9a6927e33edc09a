"""Writes our marks on nodes: read, decide, patch; repeated if the node changed in between.

Each patch is conditional on the version read, and decided from the marks that it replaces. So an outdated
controller that wakes up finds the newer stamp, whatever it had read before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Patch, Rejected, refused
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, read_node
from reconciler.clusters.kubernetes.nodes.node_marks import Marks, late, marks_of, patch
from reconciler.model.cluster_port import Answer, Done, Refused, Stamp

NODES = "/api/v1/nodes"
TRIES = 5
"""Of one write; a node changes every few seconds at most, so the second try nearly always succeeds."""
CHANGED = frozenset({409, 422})
"""The API server's answers to a patch whose test fails."""

Decide = Callable[[Node, Marks], Marks | Refused]


class NodeWriter:
    """The only writer of nodes in this process, but for the stamp of those that leave (`pool_scale`). Thread-safe."""

    def __init__(self, api: Api, known: Informer[Node], project: str) -> None:
        self._api, self._known, self._project = api, known, project

    def change(self, name: str, stamp: Stamp, decide: Decide) -> Answer:
        """Changes the node's marks with `decide`; refused for an older stamp or another project."""

        def steps(node: Node) -> list[Json] | Refused:
            marks = marks_of(node)
            refusal = late(f"node {name}", marks.stamp, stamp) or self._foreign(name, marks)
            if refusal is not None:
                return refusal
            wanted = decide(node, marks)
            if isinstance(wanted, Refused):
                return wanted
            return patch(node, replace(wanted, stamp=stamp, project=self._project))

        return self.write(name, steps)

    def write(self, name: str, steps: Callable[[Node], Patch | Refused]) -> Answer:
        """Patches the node with what `steps` returns for its present version; NodeGone if it does not exist.

        A refused patch affects only that node.
        """
        node = self._known.items().get(name) or self._read(name)
        for _ in range(TRIES):
            if node is None:
                return Refused("NodeGone", f"the cluster has no node {name}")
            wanted = steps(node)
            if isinstance(wanted, Refused) or not wanted:
                return wanted if isinstance(wanted, Refused) else Done()
            try:
                self._known.learn(self._api.patch(f"{NODES}/{name}", wanted))
            except Rejected as no:
                if no.status == 404:
                    node = None
                elif no.status in CHANGED:
                    node = self._read(name)
                else:
                    return refused(no)
            else:
                return Done()
        return Refused("NodeContended", f"node {name} changed during {TRIES} writes in a row; retrying")

    def _read(self, name: str) -> Node | None:
        found = self._api.find(f"{NODES}/{name}")
        if found is None:
            return None
        self._known.learn(found)
        return read_node(found)

    def _foreign(self, name: str, marks: Marks) -> Refused | None:
        if marks.project in {"", self._project}:
            return None
        return Refused(
            "NodeOfOtherProject",
            f"node {name} is managed by project {marks.project!r}; leave it to one project's pools",
        )
