"""Template bindings on the wire: the templates offered to a workspace, by cluster. Pure.

A binding is named after its workspace. Held by tests/portal/vendor/test_template_models.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from portal.http.context import Changed, Flag, Wire, example
from portal.http.errors import bad_parameters
from portal.http.names import listed
from reconciler.model.facts import Wanted
from schemas.documents.binding import BoundCluster, GPRTemplateBindingSpec

VALID = "Valid"
"""Status of a template that exists."""

_CLUSTER: dict[str, Any] = {
    "clusterName": "east",
    "defaultTemplateName": "finetune-small",
    "templates": ["finetune-small", "train-large"],
}
_TEXT = Field(min_length=1, max_length=253)


class ClusterWish(Wire):
    """The templates of one cluster."""

    cluster_name: Annotated[str, _TEXT] = Field(description="The cluster.", examples=["east"])
    default_template_name: str = Field(
        default="",
        max_length=253,
        description='Used by requests that name no template; one of `templates`. "": none.',
        examples=["finetune-small"],
    )
    templates: tuple[Annotated[str, _TEXT], ...] = Field(
        description="The templates offered there.",
        examples=[["finetune-small"]],
        min_length=1,
        max_length=100,
    )


class BindingWish(Wire):
    """A binding to make or change; `clusters` replaces all that an existing one says."""

    model_config = example({"workspaceName": "vision", "clusters": [_CLUSTER], "enableAutoGpr": False})

    workspace_name: Annotated[str, _TEXT] = Field(description="The workspace.", examples=["vision"])
    clusters: tuple[ClusterWish, ...] = Field(description="By cluster.", min_length=1, max_length=100)
    enable_auto_gpr: Flag = Field(
        default=False,
        description="Only false is supported: requests are files that people or programs commit, never made from pods.",
        examples=[False],
    )


class BoundClusterShown(Wire):
    """The templates of one cluster, and whether they exist."""

    cluster_name: str = Field(description="The cluster.")
    default_template_name: str = Field(description='"": none.')
    templates: tuple[str, ...] = Field(description="The templates offered there.")
    default_template_status: str = Field(description="`Valid`, or what is wrong; empty: there is no default.")
    template_status: dict[str, str] = Field(description="Of each template: `Valid`, or what is wrong.")


class Binding(Wire):
    """A binding as it is in force."""

    model_config = example(
        {
            "name": "vision",
            "namespace": "default",
            "workspaceName": "vision",
            "clusters": [
                {
                    **_CLUSTER,
                    "defaultTemplateStatus": VALID,
                    "templateStatus": {"finetune-small": VALID, "train-large": "there is no such template"},
                }
            ],
            "enableAutoGpr": False,
        }
    )

    name: str = Field(description="The workspace's name.")
    namespace: str = Field(description="The project.")
    workspace_name: str = Field(description="The workspace.")
    clusters: tuple[BoundClusterShown, ...] = Field(description="By cluster.")
    enable_auto_gpr: bool = Field(default=False, description="Always false here.")


class BindingNamed(Wire):
    """Names a binding."""

    model_config = example({"bindingName": "vision"})

    binding_name: str = Field(min_length=1, max_length=253, description="The workspace's name.")


class BindingChanged(Wire):
    """A binding that was made or changed, and where the change is."""

    model_config = example({"name": "vision", "change": {"way": "pushed", "commit": "8d5f…"}})

    name: str = Field(description="The workspace's name.")
    change: Changed = Field(description="Where the change is.")


def binding_of(name: str, spec: GPRTemplateBindingSpec, wanted: Wanted) -> Binding:
    shown = tuple(_shown(bound, wanted) for bound in spec.clusters)
    return Binding(name=name, namespace=wanted.project_name, workspace_name=name, clusters=shown)


def _shown(bound: BoundCluster, wanted: Wanted) -> BoundClusterShown:
    standing = {name: _standing(name, bound.cluster, wanted) for name in bound.templates}
    return BoundClusterShown(
        cluster_name=bound.cluster,
        default_template_name=bound.default or "",
        templates=bound.templates,
        default_template_status="" if bound.default is None else standing.get(bound.default, "not bound"),
        template_status=standing,
    )


def _standing(name: str, cluster: str, wanted: Wanted) -> str:
    template = wanted.templates.get(name)
    if template is None:
        return "there is no such template"
    if template.clusters and cluster not in template.clusters:
        return f"it is only for {', '.join(template.clusters)}"
    return VALID


def spec_of(asked: BindingWish, wanted: Wanted) -> GPRTemplateBindingSpec:
    """The spec of the file; ApiError 422 with everything that is wrong."""
    wrong = list(_wrong(asked, wanted))
    if wrong:
        raise bad_parameters("; ".join(wrong))
    return GPRTemplateBindingSpec(
        clusters=tuple(
            BoundCluster(
                cluster=each.cluster_name,
                templates=tuple(dict.fromkeys(each.templates)),
                default=each.default_template_name or None,
            )
            for each in asked.clusters
        )
    )


def _wrong(asked: BindingWish, wanted: Wanted) -> Iterator[str]:
    if asked.enable_auto_gpr:
        yield (
            "enableAutoGpr: requests are files that people or programs commit, with an author; they are never made "
            "from waiting pods. Send false, and file the request with `POST gpr` and templateName"
        )
    spanned = wanted.slices[asked.workspace_name].clusters
    named: set[str] = set()
    for each in asked.clusters:
        if each.cluster_name in named:
            yield f"clusters: {each.cluster_name} is listed twice"
        named.add(each.cluster_name)
        yield from _wrong_there(each, spanned, wanted)


def _wrong_there(each: ClusterWish, spanned: tuple[str, ...], wanted: Wanted) -> Iterator[str]:
    where = each.cluster_name
    if where not in spanned:
        yield f"clusters: the workspace does not span {where}; it spans {listed(spanned)}"
    unknown: list[Any] = sorted({name for name in each.templates if name not in wanted.templates})
    if unknown:
        yield f"templates: there is no template {', '.join(unknown)}; choose from {listed(wanted.templates)}"
    if each.default_template_name and each.default_template_name not in each.templates:
        yield f"defaultTemplateName: {each.default_template_name} is not among the templates of {where}"
