"""What a rule may read of a repository; every reading is written down, so that only its readers run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.cluster import Cluster
from schemas.documents.gpr import GPR, GPRTemplate
from schemas.documents.notifications import Profile
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.documents.workspace import WorkspaceRequest

PROJECT = "project.yaml"

Key = str | tuple[str, ...]
"""A document's path, or the name of a fact that several documents make up together."""

Kind = TypeVar("Kind", bound=Document)


def slice_path(name: str) -> str:
    """Where a slice's document lies."""
    return f"slices/{name}/slice.yaml"


def workspace_path(name: str) -> str:
    """Where the request for a workspace lies."""
    return f"requests/{name}.yaml"


def gpr_path(slice_: str, name: str) -> str:
    """Where a request's document lies."""
    return f"slices/{slice_}/gprs/{name}.yaml"


def cluster_path(name: str) -> str:
    """Where a cluster's document lies."""
    return f"clusters/{name}.yaml"


def template_path(name: str) -> str:
    """Where a template's document lies."""
    return f"templates/{name}.yaml"


def key_path(name: str) -> str:
    """Where the manifest of an API key lies."""
    return f"keys/{name}.yaml"


def profile_path(name: str) -> str:
    """Where a person's profile lies."""
    return f"people/{name}.yaml"


def binding_path(slice_: str) -> str:
    """Where the binding of a slice's templates lies."""
    return f"bindings/{slice_}.yaml"


def namespace_key(cluster: str, namespace: str) -> Key:
    """The slices that claim a namespace of a cluster."""
    return ("namespace", cluster, namespace)


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


def facts_of(document: Document | None) -> frozenset[Key]:
    """The facts of which this document is a part."""
    match document:
        case GPR():
            return frozenset({requests_key(document.spec.slice)})
        case Approval():
            return frozenset({approvals_key(document.spec.slice, document.spec.gpr)})
        case ApiKey():
            return frozenset({secret_key(document.spec.sha256)})
        case Profile():
            return frozenset({profile_key(document.spec.email)})
        case WorkspaceRequest():
            return facts_of(document.as_slice())
        case Slice():
            return frozenset(
                namespace_key(cluster, namespace)
                for cluster in document.spec.clusters
                for namespace in document.spec.namespaces
            )
    return frozenset()


def keys_of(path: str) -> frozenset[Key]:
    """Of the facts of which a document there is a part, those that its path alone tells."""
    match path.split("/"):
        case ["slices", slice_, "gprs", _]:
            return frozenset({requests_key(slice_)})
    return frozenset()


class View:
    """One document's look at the others. `absent` differs from "no document": a refused file is not absent."""

    __slots__ = ("_age", "_documents", "_parts", "_refused", "read")

    def __init__(
        self,
        documents: Mapping[str, Document],
        refused: Mapping[str, object],
        parts: Mapping[Key, set[str]],
        age: Callable[[str], tuple[bool, int]] = lambda _: (True, 0),
    ) -> None:
        """`age` tells of a file whether its request is on no record, and in which change it came: less is older."""
        self._documents, self._refused, self._parts, self._age = documents, refused, parts, age
        self.read: set[Key] = set()

    def absent(self, path: str) -> bool:
        """Whether no file lies there at all."""
        self.read.add(path)
        return path not in self._documents and path not in self._refused

    def parts(self, key: Key) -> list[str]:
        """The paths of the documents that make up a fact, in order; their contents are read by path."""
        self.read.add(key)
        return sorted(self._parts.get(key, ()))

    def count(self, key: Key) -> int:
        """How many documents make up a fact."""
        self.read.add(key)
        return len(self._parts.get(key, ()))

    def beyond(self, key: Key, most: int) -> list[str]:
        """Those of a fact's documents that are one too many: the newest, and none that is on record; in order."""
        if self.count(key) <= most:
            return []
        aged = sorted((*self._age(path), path) for path in self._parts[key])
        return sorted(path for is_new, _, path in aged[most:] if is_new)

    def document(self, path: str, kind: type[Kind]) -> Kind | None:
        """The document there, when there is one of this kind that reads well."""
        self.read.add(path)
        found = self._documents.get(path)
        return found if isinstance(found, kind) else None

    def project(self) -> Project | None:
        """The project."""
        return self.document(PROJECT, Project)

    def cluster(self, name: str) -> Cluster | None:
        """A cluster."""
        return self.document(cluster_path(name), Cluster)

    def slice(self, name: str) -> Slice | None:
        """A slice: of its own file, or as a workspace request makes it."""
        if not self.absent(slice_path(name)):
            return self.document(slice_path(name), Slice)
        asked = self.document(workspace_path(name), WorkspaceRequest)
        return None if asked is None else asked.as_slice()

    def no_slice(self, name: str) -> bool:
        """Whether neither a slice's file nor a request for one lies there."""
        return self.absent(slice_path(name)) and self.absent(workspace_path(name))

    def template(self, name: str) -> GPRTemplate | None:
        """A template."""
        return self.document(template_path(name), GPRTemplate)

    def gpr(self, slice_: str, name: str) -> GPR | None:
        """A request."""
        return self.document(gpr_path(slice_, name), GPR)
