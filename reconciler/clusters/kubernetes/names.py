"""Every name that we write into a cluster, in one place; docs/cluster.md shows them to people.

Nodes bear names under a `node-restriction.kubernetes.io` prefix, so that a kubelet cannot give itself a slice.
The taint is ours alone and never `nvidia.com/gpu`: an admission plugin gives every GPU pod a toleration for that.
"""

from __future__ import annotations

MANAGER = "egs"
"""Field manager of everything that we apply."""
SYSTEM_NAMESPACE = "egs-system"
"""Where the controller keeps its own objects unless it is told another one."""

NODE_PREFIX = "egs.node-restriction.kubernetes.io/"
SLICE = NODE_PREFIX + "slice"
"""Node label: the slice that it serves. Taint key: the same value, or empty where it serves nobody."""
LEASE = NODE_PREFIX + "lease"
"""Node annotation: JSON of the lease, until the node is free again."""
STAMP = NODE_PREFIX + "stamp"
"""Node annotation: `term.seq` of the last write."""
PROJECT = NODE_PREFIX + "project"
"""Node annotation: which project's node it is, where several share a cluster."""
CORDON = NODE_PREFIX + "cordon"
"""Node annotation: why we cordoned it: `health: <reason>`, `exit`, or both, one a line."""
CORDONED_BEFORE = NODE_PREFIX + "cordoned-before"
"""Node annotation: somebody else had cordoned it before we did; it then stays so when we are done."""
EXIT = NODE_PREFIX + "exit"
"""Node annotation: RFC 3339 instant by which its GPU pods are told to be gone."""
MIG_BEFORE = NODE_PREFIX + "mig-before"
"""Node annotation: the MIG configuration to go back to."""

PREFIX = "egs.dev/"
NAMESPACE_SLICE = PREFIX + "slice"
"""Label of namespaces and of every object that we make for a slice."""
OWNER = PREFIX + "project"
"""Label of namespaces and objects: the project that they belong to."""
OBJECT_STAMP = PREFIX + "stamp"
"""Annotation of namespaced objects: `term.seq` of the last write."""
ADOPTED = PREFIX + "adopted"
"""Annotation of a namespace that was there before us: it is never deleted by us."""
KEEP = PREFIX + "keep"
"""Annotation by which a person keeps a namespace that we made when its slice goes."""
REQUEST_UID = PREFIX + "request"
"""Label of Jobs and events: uid of the request that they are about."""
MANAGED_BY = "app.kubernetes.io/managed-by"
"""Label of every object that we make, with the value `egs`."""

GPU_RESOURCE = "nvidia.com/gpu"
MIG_RESOURCE_PREFIX = "nvidia.com/mig-"
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"
