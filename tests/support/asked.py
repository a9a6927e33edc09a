"""GPR objects, their files and a repository, as values: builders that name only what matters."""

from __future__ import annotations

from reconciler.gpr_objects.object_changes import door_actions
from reconciler.gpr_objects.object_files import (
    FILED_BY,
    GENERATION,
    ORIGIN,
    Edit,
    GprObject,
    ObjectsView,
    StatusPatch,
)
from schemas.documents.gpr import GPR, RequestSpec, resolve
from schemas.reading.reader import read_document
from schemas.reading.yaml_text import dump
from schemas.rules.repository import Repository
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import GPRStatus, Phase
from tests.support.world import START, at, cluster, gpr, project, slice_

BO = "bo@example.com"
KEY, PATH = "vision/train", gpr_path("vision", "train")
SPEC = {"nodes": 1, "duration": "1h"}
BASE = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/vision/slice.yaml": slice_("vision", namespaces=["vision-train", "vision-eval"]),
    "slices/nlp/slice.yaml": slice_("nlp"),
}
NAMESPACES = {"vision-train": "vision", "vision-eval": "vision", "nlp": "nlp", "stray": "vision"}


def asked(name: str = "train", namespace: str = "vision-train", **more: object) -> GprObject:
    """An object by Bo, as admission vouches."""
    given = {
        "namespace": namespace, "name": name, "uid": f"uid-{namespace}-{name}", "generation": 1,
        "created": at(1), "spec": SPEC, "is_released": False, "author": BO, "manager": "kubectl", "status": {},
    }  # fmt: skip
    return GprObject(**given | more)  # type: ignore[arg-type]


def file_of(thing: GprObject, slice_name: str = "vision", cluster_name: str = "east", **spec: object) -> str:
    """The file that an object's request has."""
    origin = f"{cluster_name}/{slice_name}/{thing.namespace}/{thing.name}/{thing.uid}"
    labels = {ORIGIN: origin, GENERATION: str(thing.generation), FILED_BY: BO}
    head = {
        "apiVersion": "egs.dev/v1alpha1",
        "kind": "GPR",
        "metadata": {"name": thing.name, "labels": labels},
    }
    return dump({**head, "spec": {"slice": slice_name, **thing.spec, **spec}})


def status(phase: Phase = Phase.QUEUED, **more: object) -> GPRStatus:
    document = read_document(PATH, gpr("vision", "train").encode())
    assert isinstance(document, GPR)
    spec = resolve(document.spec, None)
    assert isinstance(spec, RequestSpec)
    found = GPRStatus(phase=phase, uid="gpr-1", filed_at=START, accepted_spec=spec, spec_digest="sha256:1")
    return found.model_copy(update=more)


def view(*objects: GprObject, files: dict[str, str] | None = None, **more: object) -> ObjectsView:
    """A cluster and a repository; `files` come on top of project, cluster and slices."""
    texts = BASE | (files or {})
    repository = Repository()
    repository.update({path: read_document(path, text.encode()) for path, text in texts.items()})
    given = {
        "cluster": "east", "via": "commit", "namespaces": NAMESPACES, "repository": repository,
        "objects": {f"{thing.namespace}/{thing.name}": thing for thing in objects},
        "text": lambda path: texts[path].encode(), "statuses": {}, "guarded_since": START,
    }  # fmt: skip
    return ObjectsView(**given | more)  # type: ignore[arg-type]


def edit(found: ObjectsView) -> Edit:
    (action,) = door_actions(found)
    assert isinstance(action, Edit), action
    return action


def told(found: ObjectsView) -> dict[str, object]:
    (action,) = door_actions(found)
    assert isinstance(action, StatusPatch), action
    return action.status


def said(found: ObjectsView) -> tuple[object, object]:
    """Phase, and why it is not accepted."""
    status_ = told(found)
    (accepted,) = [c for c in status_["conditions"] if c["type"] == "Accepted"]  # type: ignore[attr-defined]
    return status_.get("phase"), accepted["reason"]
