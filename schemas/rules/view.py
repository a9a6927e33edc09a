"""How a rule sees a repository: each read is recorded, so that a change runs only the rules that it affects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.cluster import Cluster
from schemas.documents.endpoint import Endpoint, Route
from schemas.documents.gpr import GPR, GPRTemplate
from schemas.documents.notifications import Profile
from schemas.documents.project import Project
from schemas.documents.slice import Slice, SliceSpec
from schemas.documents.workspace import WorkspaceRequest

PROJECT = "project.yaml"

Key = str | tuple[str, ...]
"""A document's path, or the name of a fact that several documents make up."""

Kind = TypeVar("Kind", bound=Document)


def slice_path(name: str) -> str:
    return f"slices/{name}/slice.yaml"


def workspace_path(name: str) -> str:
    return f"requests/{name}.yaml"


def gpr_path(slice_: str, name: str) -> str:
    return f"slices/{slice_}/gprs/{name}.yaml"


def workload_path(slice_: str, name: str) -> str:
    return f"slices/{slice_}/workloads/{name}.yaml"


def endpoint_path(slice_: str, name: str) -> str:
    return f"slices/{slice_}/endpoints/{name}.yaml"


def cluster_path(name: str) -> str:
    return f"clusters/{name}.yaml"


def template_path(name: str) -> str:
    return f"templates/{name}.yaml"


def key_path(name: str) -> str:
    return f"keys/{name}.yaml"


def profile_path(name: str) -> str:
    return f"people/{name}.yaml"


def binding_path(slice_: str) -> str:
    return f"bindings/{slice_}.yaml"


def namespace_key(cluster: str, namespace: str) -> Key:
    """The slices that claim a namespace of a cluster."""
    return ("namespace", cluster, namespace)


def any_namespace_key(namespace: str) -> Key:
    """The slices that claim a namespace of that name, in whichever cluster."""
    return ("namespace", namespace)


def across_key(namespace: str) -> Key:
    """Those of them whose Services go across clusters."""
    return ("across", namespace)


def requests_key(slice_: str) -> Key:
    """The requests in a slice's folder."""
    return ("requests", slice_)


def approvals_key(slice_: str, gpr: str) -> Key:
    """The approvals of a request."""
    return ("approvals", slice_, gpr)


def secret_key(sha256: str) -> Key:
    """The manifests of API keys with that digest."""
    return ("secret", sha256)


def profile_key(email: str) -> Key:
    """The profiles of one address."""
    return ("profile", email)


ANY_HOSTNAME = "*"
"""Of a route without hostnames: all of the Gateway's listener."""


def hostname_key(hostname: str) -> Key:
    """The endpoints that answer to a name."""
    return ("hostname", hostname)


def below_key(domain: str) -> Key:
    """The endpoints with a name below a domain; of the empty one: all that have a route."""
    return ("below", domain)


def served_key(slice_: str, gpr: str) -> Key:
    """The endpoints on the nodes of a request."""
    return ("served", slice_, gpr)


def facts_of(document: Document | None) -> frozenset[Key]:
    """The facts that this document is a part of."""
    match document:
        case GPR():
            return frozenset({requests_key(document.spec.slice)})
        case Approval():
            return frozenset({approvals_key(document.spec.slice, document.spec.gpr)})
        case ApiKey():
            return frozenset({secret_key(document.spec.sha256)})
        case Profile():
            return frozenset({profile_key(document.spec.email)})
        case Endpoint():
            return _of_route(document.spec.route) | {served_key(document.spec.slice, document.spec.gpr)}
        case WorkspaceRequest():
            return facts_of(document.as_slice())
        case Slice():
            return _of_slice(document.spec)
    return frozenset()


def _of_route(route: Route | None) -> frozenset[Key]:
    if route is None:
        return frozenset()
    found = {below_key(""), *map(hostname_key, route.hostnames or (ANY_HOSTNAME,))}
    for name in route.hostnames:
        parts = name.split(".")
        found |= {below_key(".".join(parts[n:])) for n in range(1, len(parts))}
    return frozenset(found)


def _of_slice(spec: SliceSpec) -> frozenset[Key]:
    names = set(spec.namespaces)
    found = {namespace_key(cluster, name) for cluster in spec.clusters for name in names}
    found |= {any_namespace_key(name) for name in names}
    if spec.services.across != "none":
        found |= {across_key(name) for name in names}
    return frozenset(found)


def keys_of(path: str) -> frozenset[Key]:
    """The facts of a document that follow from its path alone."""
    match path.split("/"):
        case ["slices", slice_, "gprs", _]:
            return frozenset({requests_key(slice_)})
    return frozenset()


class View:
    """One document's view of the others. `absent` differs from "no document": a refused file is not absent."""

    __slots__ = ("_age", "_documents", "_parts", "_refused", "read")

    def __init__(
        self,
        documents: Mapping[str, Document],
        refused: Mapping[str, object],
        parts: Mapping[Key, set[str]],
        age: Callable[[str], tuple[bool, int]],
    ) -> None:
        """`age` of a file: whether its request has no record, and the number of the update in which it came."""
        self._documents, self._refused, self._parts, self._age = documents, refused, parts, age
        self.read: set[Key] = set()

    def absent(self, path: str) -> bool:
        """Whether there is no file at that path."""
        self.read.add(path)
        return path not in self._documents and path not in self._refused

    def parts(self, key: Key) -> list[str]:
        """The paths of the documents that make up a fact, sorted; their contents are read by path."""
        self.read.add(key)
        return sorted(self._parts.get(key, ()))

    def beyond(self, key: Key, most: int) -> list[str]:
        """The newest documents of a fact above `most`, sorted; documents with a record are never among them."""
        self.read.add(key)
        paths = self._parts.get(key, set())
        if len(paths) <= most:
            return []
        aged = sorted((*self._age(path), path) for path in paths)
        return sorted(path for is_new, _, path in aged[most:] if is_new)

    def document(self, path: str, kind: type[Kind]) -> Kind | None:
        """The document there, if it is valid and of this kind."""
        self.read.add(path)
        found = self._documents.get(path)
        return found if isinstance(found, kind) else None

    def project(self) -> Project | None:
        return self.document(PROJECT, Project)

    def cluster(self, name: str) -> Cluster | None:
        return self.document(cluster_path(name), Cluster)

    def slice(self, name: str) -> Slice | None:
        """A slice from its own file, or as a workspace request makes it."""
        if not self.absent(slice_path(name)):
            return self.document(slice_path(name), Slice)
        asked = self.document(workspace_path(name), WorkspaceRequest)
        return None if asked is None else asked.as_slice()

    def no_slice(self, name: str) -> bool:
        """Whether there is neither a slice file nor a request for the slice."""
        return self.absent(slice_path(name)) and self.absent(workspace_path(name))

    def template(self, name: str) -> GPRTemplate | None:
        return self.document(template_path(name), GPRTemplate)

    def gpr(self, slice_: str, name: str) -> GPR | None:
        return self.document(gpr_path(slice_, name), GPR)
