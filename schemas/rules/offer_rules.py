"""Rules of API keys and template bindings: what they refer to exists, and keys are unique."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from schemas.documents.apikey import ApiKey
from schemas.documents.binding import BoundCluster, GPRTemplateBinding
from schemas.documents.gpr import GPR, RequestSpec
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.reading.strict_yaml import Path
from schemas.reading.units import format_instant
from schemas.rules.findings import Finding
from schemas.rules.route_rules import of_slices
from schemas.rules.view import View, binding_path, cluster_path, key_path, secret_key, template_path


def of_key(file: str, key: ApiKey, view: View) -> Iterator[Finding]:
    """Its slices exist, and no other key has its secret."""
    yield from of_slices(file, key.spec.slices, ("spec", "slices"), view)
    own = key_path(key.metadata.name)
    others = [path for path in view.parts(secret_key(key.spec.sha256)) if path != own]
    if others:
        yield Finding(file, "DuplicateSecret", f"{others[0]} has the same secret", ("spec", "sha256"))


def expired(file: str, key: ApiKey, now: datetime) -> Iterator[Finding]:
    """The one rule that depends on the time."""
    end = key.spec.not_after
    if end is not None and end <= now:
        message = f"the key expired at {format_instant(end)}"
        yield Finding(file, "KeyExpired", message, ("spec", "notAfter"))


def of_groups(file: str, project: Project, view: View) -> Iterator[Finding]:
    """The slices of groups exist."""
    for i, group in enumerate(project.spec.groups):
        yield from of_slices(file, group.slices, ("spec", "groups", i, "slices"), view)


def inside_binding(file: str, binding: GPRTemplateBinding) -> Iterator[Finding]:
    """Each cluster once, and defaults that are bound."""
    seen: set[str] = set()
    for i, bound in enumerate(binding.spec.clusters):
        at: Path = ("spec", "clusters", i)
        if bound.cluster in seen:
            message = f"cluster {bound.cluster} has several entries"
            yield Finding(file, "DuplicateCluster", message, (*at, "cluster"))
        seen.add(bound.cluster)
        if bound.default is not None and bound.default not in bound.templates:
            message = f"the default {bound.default} is not bound in cluster {bound.cluster}"
            fix = f"add it to templates, or choose among {_listed(bound.templates)}"
            yield Finding(file, "DefaultNotBound", message, (*at, "default"), fix)


def of_binding(file: str, binding: GPRTemplateBinding, view: View) -> Iterator[Finding]:
    """Slice, clusters and templates exist and match."""
    name = binding.metadata.name
    slice_ = view.slice(name)
    if slice_ is None and view.no_slice(name):
        fix = "name it after the slice, or delete it"
        yield Finding(file, "UnknownSlice", f"there is no slice {name}", ("metadata", "name"), fix)
    for i, bound in enumerate(binding.spec.clusters):
        at: Path = ("spec", "clusters", i)
        yield from _of_bound_cluster(file, bound.cluster, slice_, (*at, "cluster"), view)
        yield from _of_bound_templates(file, bound, (*at, "templates"), view)


def _of_bound_cluster(
    file: str, cluster: str, slice_: Slice | None, at: Path, view: View
) -> Iterator[Finding]:
    if view.absent(cluster_path(cluster)):
        yield Finding(file, "UnknownCluster", f"there is no cluster {cluster}", at)
    elif slice_ is not None and cluster not in slice_.spec.clusters:
        message = f"slice {slice_.metadata.name} does not span cluster {cluster}"
        fix = f"choose among {_listed(slice_.spec.clusters)}"
        yield Finding(file, "ClusterNotAllowed", message, at, fix)


def _of_bound_templates(file: str, bound: BoundCluster, at: Path, view: View) -> Iterator[Finding]:
    for j, name in enumerate(bound.templates):
        template = view.template(name)
        if template is None:
            if view.absent(template_path(name)):
                yield Finding(file, "UnknownTemplate", f"there is no template {name}", (*at, j))
        elif template.spec.clusters and bound.cluster not in template.spec.clusters:
            message = f"template {name} is for {_listed(template.spec.clusters)}, not for {bound.cluster}"
            yield Finding(file, "TemplateElsewhere", message, (*at, j))


def of_bound_template(file: str, gpr: GPR, spec: RequestSpec, view: View) -> Iterator[Finding]:
    """A request of a bound slice names a template that is bound where it may run, or none.

    If it names clusters, the template must be bound in each of them; else in one of the slice's.
    """
    name = gpr.spec.template
    binding = view.document(binding_path(spec.slice), GPRTemplateBinding) if name else None
    if name is None or binding is None:
        return
    bound = {each.cluster: each.templates for each in binding.spec.clusters}
    asked = spec.clusters or tuple(bound)
    there = [cluster for cluster in asked if name in bound.get(cluster, ())]
    if len(there) == len(asked) or (there and not spec.clusters):
        return
    message = f"template {name} is not bound to slice {spec.slice}"
    if spec.clusters:
        message += f" in {_listed(sorted(set(asked) - set(there)))}"
    offered = "; ".join(f"{_listed(names)} in {cluster}" for cluster, names in bound.items())
    fix = f"bound templates: {offered}; choose one of them, or none"
    yield Finding(file, "TemplateNotBound", message, ("spec", "template"), fix)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    most = 8
    return f"{', '.join(names[:most])}{', …' if len(names) > most else ''}"
