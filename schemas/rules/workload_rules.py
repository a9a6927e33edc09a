"""Rules for workloads: their objects alone, and their slice, request and namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas.documents.base import Document
from schemas.documents.workload import OBJECT_KINDS, Manifest, Workload
from schemas.reading.strict_yaml import Path
from schemas.reading.units import LONG_NAME_PATTERN
from schemas.rules.findings import Finding
from schemas.rules.problems import quoted
from schemas.rules.surroundings import of_surroundings
from schemas.rules.view import View

OURS = "egs.dev/"
"""Prefix of labels and annotations that the controller sets."""
SIMULATED_DURATION = OURS + "simulated-duration"
"""Annotation that people may set: how long a simulated cluster lets the object run."""
EXPORTED = OURS + "export"
"""Label that people may set: the slice's other clusters can use the Service."""
_PEOPLES = frozenset({("annotations", SIMULATED_DURATION), ("labels", EXPORTED)})
"""Those with our prefix that people may set."""
_NAME = re.compile(LONG_NAME_PATTERN)
_VERSION = re.compile("v[1-9][0-9]{0,2}((alpha|beta)[1-9][0-9]{0,2})?")
_ALLOWED = ("labels", "annotations")


def inside_workload(file: str, workload: Workload) -> Iterator[Finding]:
    """Problems of its objects alone. The cluster judges everything else about them."""
    seen: set[tuple[str, str]] = set()
    for i, manifest in enumerate(workload.spec.manifests):
        path: Path = ("spec", "manifests", i)
        found = [*_of_manifest(file, path, manifest, workload.spec.namespace)]
        yield from found
        if found:
            continue
        kind, name = identity(manifest)
        if (kind, name) in seen:
            yield Finding(file, "DuplicateObject", f"there are two objects {kind}/{name}", path)
        seen.add((kind, name))


def across_workload(file: str, workload: Document, view: View) -> Iterator[Finding]:
    """Its slice must exist and have the namespace; its request may still come."""
    if isinstance(workload, Workload):
        yield from of_surroundings(file, "workload", workload.spec, view)


def identity(manifest: Manifest) -> tuple[str, str]:
    """Kind and name of a manifest that passed the rules."""
    meta = manifest["metadata"]
    assert isinstance(meta, dict), "the rules have judged it"
    return str(manifest["kind"]), str(meta["name"])


def _of_manifest(file: str, path: Path, manifest: Manifest, namespace: str | None) -> Iterator[Finding]:
    kind, version, meta = manifest.get("kind"), manifest.get("apiVersion"), manifest.get("metadata")
    if not isinstance(kind, str) or not isinstance(version, str) or not isinstance(meta, dict):
        message = "an object needs apiVersion, kind and metadata.name"
        yield Finding(file, "BadManifest", message, path)
        return
    known, (group, _, number) = OBJECT_KINDS.get(kind), version.rpartition("/")
    if known is None:
        yield Finding(file, "KindNotAllowed", f"a workload may not have a {quoted(kind)}", (*path, "kind"))
    elif group != known.group or not _VERSION.fullmatch(number):
        message = f"{quoted(version)} is no version of {kind}"
        fix = f"write {known.group + '/' if known.group else ''}v1, or the version that your clusters serve"
        yield Finding(file, "BadManifest", message, (*path, "apiVersion"), fix)
    yield from _of_metadata(file, (*path, "metadata"), meta, namespace)
    if "status" in manifest:
        yield Finding(file, "BadManifest", "an object has no status here", (*path, "status"), "delete it")


def _of_metadata(file: str, path: Path, meta: Manifest, namespace: str | None) -> Iterator[Finding]:
    name, said = meta.get("name"), meta.get("namespace")
    if not isinstance(name, str) or len(name) > 253 or not _NAME.fullmatch(name):
        yield Finding(file, "BadManifest", "metadata.name is not the name of an object", path, "give a name")
    if said is not None and said != namespace:
        message = "the namespace of all objects is spec.namespace"
        yield Finding(file, "BadManifest", message, (*path, "namespace"), "delete it")
    for field in sorted(meta.keys() - {"name", "namespace", *_ALLOWED}):
        yield Finding(file, "BadManifest", f"metadata.{field} is the cluster's", (*path, field), "delete it")
    for field in _ALLOWED:
        texts = meta.get(field) or {}
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            yield Finding(
                file, "BadManifest", f"{field} are texts by name", (*path, field), "quote the values"
            )
            continue
        for key in sorted(texts):
            if key.startswith(OURS) and (field, key) not in _PEOPLES:
                message = f"{key} is set by the controller"
                yield Finding(file, "BadManifest", message, (*path, field, key), "delete it")
