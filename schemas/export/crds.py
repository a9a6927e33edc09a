"""The GPR as a custom resource, made from the same models: `python -m schemas.export.crds` writes deploy/crds.

The API server needs a structural schema: no references, no types below `anyOf`, RE2 patterns, no `null`. A model that
has no such form is an error here, except that fields of several types are passed on unchecked, for the controller to
judge.

Held, on a real API server, by tests/reconciler/clusters/kubernetes/test_crd.py.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from schemas.documents.base import API_VERSION, Model
from schemas.documents.gpr import GPR
from schemas.export.generated_files import GeneratedFiles
from schemas.export.json_schemas import schema_of
from schemas.reading.units import DURATION_PATTERN, LASTING_PATTERN, NAME_PATTERN, Instant
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import GPRStatus, Phase

Json = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "deploy" / "crds"
GROUP, _, VERSION = API_VERSION.partition("/")
PLURAL = "gprs"
DOOR_PHASES = ("Filed", "Proposed", "Refused")
"""Phases of an object that the controller has not seen yet: on main, on a proposed branch, or neither."""
NOT_MIRRORED = frozenset({"acceptedSpec", "boundNodes", "conditions"})
"""Status fields that an object does not repeat, or has in another form."""
ADMINS_ALONE = frozenset({"move"})
"""Request fields that objects do not have: only admins set them, but a slice's members write objects."""

_PARTS = "^([0-9]{1,4}w)?([0-9]{1,5}d)?([0-9]{1,6}h)?([0-9]{1,8}m)?$"
_RE2: Mapping[str, Json] = {
    DURATION_PATTERN: {"pattern": _PARTS, "minLength": 2},
    LASTING_PATTERN: {"pattern": _PARTS, "minLength": 2, "allOf": [{"pattern": "[1-9]"}]},
}
"""Patterns with look-ahead, in a form for RE2."""
_KEPT = frozenset(
    {"type", "description", "enum", "minimum", "maximum", "minLength", "maxLength"}
    | {"minItems", "maxItems", "minProperties", "maxProperties", "required"}
)
_DROPPED = frozenset({"title", "default", "examples", "$defs"})
"""Keywords for editors; a default would be written into the object, and from there into the file."""


class ObjectCondition(Model):
    """A condition of an object, as `kubectl wait --for=condition=…` reads it."""

    type: str = Field(description="Accepted, Provisioned, or a condition of the request.")
    status: Literal["True", "False"] = Field(description="Whether it holds.")
    reason: str = Field("", description="Stable CamelCase identifier for machines.")
    message: str = Field("", description="What happened, and what to do.")
    last_transition_time: Instant | None = Field(None, description="Since when, if known.")


class ObjectStatus(Model):
    """An object's status fields beside the request's own."""

    observed_generation: int = Field(description="The generation that this status is for.")
    request: str = Field("", description="slice/name of its request.")
    filed: bool = Field(False, description="Whether it was ever on the main branch.")
    author: str = Field("", description="Who last changed the object.")
    author_verified: bool = Field(False, description="Whether admission verified the author.")
    branch: str = Field("", description="Branch that waits to be merged.")
    proposed: str = Field("", description="Digest of the proposed content.")
    start: Instant | None = Field(None, description="Its start, or the promised one.")
    end: Instant | None = Field(None, description="Its end, or the promised one.")
    conditions: tuple[ObjectCondition, ...] = Field((), description="Conditions that hold now.")


def gpr_crd() -> Json:
    """The CustomResourceDefinition of GPRs, apiextensions.k8s.io/v1."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "egs"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": "GPR",
                "listKind": "GPRList",
                "plural": PLURAL,
                "singular": "gpr",
                "shortNames": ["gpurequest"],
                "categories": ["egs"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        dict(zip(_COLUMN, column, strict=True)) for column in _COLUMNS
                    ],
                    "schema": {"openAPIV3Schema": _object_schema()},
                }
            ],
        },
    }


_COLUMN = ("name", "type", "jsonPath")
_COLUMNS = (
    ("Phase", "string", ".status.phase"),
    ("Start", "string", ".status.start"),  # kubectl shows a `date` in the future as <invalid>
    ("End", "string", ".status.end"),
    ("Nodes", "integer", ".spec.nodes"),
    ("Shape", "string", ".spec.gpuShape"),
    ("Age", "date", ".metadata.creationTimestamp"),
    ("Reason", "string", ".status.reason"),
)


def _object_schema() -> Json:
    whole = schema_of(GPR)
    spec = structural(whole["properties"]["spec"], whole["$defs"])
    # The namespace determines the slice.
    spec.pop("required")
    for field in ADMINS_ALONE:
        del spec["properties"][field]
    name = {"type": "string", "pattern": NAME_PATTERN, "maxLength": 63}
    return {
        "type": "object",
        "description": "A GPU provision request: a number of GPU nodes of a shape, for a strict time.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": name}},
            "spec": spec,
            "status": _status_schema(),
        },
    }


def _status_schema() -> Json:
    own = ObjectStatus.model_json_schema(by_alias=True)
    request = GPRStatus.model_json_schema(by_alias=True)
    fields = {k: v for k, v in request["properties"].items() if k not in NOT_MIRRORED}
    found = structural({"type": "object", "properties": fields}, request["$defs"])
    found["description"] = "The controller's status of the request; only the controller writes it."
    found["properties"]["phase"]["enum"] = [*DOOR_PHASES, *map(str, Phase)]
    found["properties"] |= structural(own, own["$defs"])["properties"]
    return found


def structural(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """The schema in the form that Kubernetes accepts; raises ValueError if there is none."""
    if "$ref" in schema:
        return structural(
            definitions[schema["$ref"].rpartition("/")[2]] | _without(schema, "$ref"), definitions
        )
    if "anyOf" in schema and "properties" not in schema:
        return _one_of(schema, definitions)
    found: Json = {}
    for word, value in schema.items():
        if word in _KEPT:
            found[word] = value
        elif word not in _DROPPED:
            found |= _word(word, value, definitions)
    return found


def _word(word: str, value: Any, definitions: Mapping[str, Json]) -> Json:
    match word, value:
        case "const", _:
            return {"enum": [value]}
        case "pattern", _:
            return _pattern(value)
        case "items", dict():
            return {"items": structural(value, definitions)}
        case "properties", dict():
            return {"properties": {name: structural(inner, definitions) for name, inner in value.items()}}
        case "additionalProperties", dict():
            return {"additionalProperties": structural(value, definitions)}
        case "additionalProperties", False:
            return {}  # unknown fields are dropped by the API server, and refused by kubectl
        case "anyOf", list():
            # For alternatives beside fields only their required fields can be expressed.
            return {"anyOf": [{"required": entry["required"]} for entry in value]}
    raise ValueError(f"Kubernetes has no form for {word}: {value!r}; give it one in schemas/export/crds.py")


def _one_of(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """Alternative types: one type or `null` becomes that type; other choices are left to the controller."""
    kinds = [entry for entry in schema["anyOf"] if entry.get("type") != "null"]
    about = _without(schema, "anyOf")
    if len(kinds) == 1:
        return structural(kinds[0] | about, definitions)
    return {"description": about.get("description", ""), "x-kubernetes-preserve-unknown-fields": True}


def _pattern(pattern: str) -> Json:
    if pattern in _RE2:
        return dict(_RE2[pattern])
    if "(?" in pattern:
        raise ValueError(f"RE2 does not support {pattern}; give it a form in schemas/export/crds.py")
    return {"pattern": pattern}


def _without(schema: Json, word: str) -> Json:
    return {key: value for key, value in schema.items() if key != word}


def _texts() -> dict[str, str]:
    return {f"{PLURAL}.{GROUP}.yaml": dump(gpr_crd())}


FILES = GeneratedFiles("schemas.export.crds", FOLDER, _texts, ours="*.yaml")


if __name__ == "__main__":
    raise SystemExit(FILES.command(sys.argv[1:]))
