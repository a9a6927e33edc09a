"""The custom resource is made from the models and has the form that Kubernetes takes; A8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.documents.gpr import GPRSpec
from schemas.export import crds
from schemas.status.gpr_status import GPRStatus, Phase

CRD = crds.gpr_crd()
(VERSION,) = CRD["spec"]["versions"]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]


def test_the_committed_definition_is_fresh() -> None:
    assert crds.FILES.stale() == [], "run: make schemas"


def test_the_file_reads_back_as_the_definition() -> None:
    text = (crds.FOLDER / "gprs.egs.dev.yaml").read_text()
    assert yaml.safe_load(text) == CRD


def test_every_field_of_a_request_is_there_and_explained() -> None:
    spec = SCHEMA["properties"]["spec"]["properties"]
    wanted = {info.alias or name for name, info in GPRSpec.model_fields.items()}
    assert set(spec) == wanted - crds.ADMINS_ALONE
    assert [name for name, about in spec.items() if not about.get("description")] == []


def test_every_field_of_a_status_is_there_but_those_that_are_not_mirrored() -> None:
    status = SCHEMA["properties"]["status"]["properties"]
    wanted = {info.alias or name for name, info in GPRStatus.model_fields.items()}
    assert wanted - set(status) == crds.NOT_MIRRORED - {"conditions"}
    assert set(status["phase"]["enum"]) == {*map(str, Phase), *crds.DOOR_PHASES}


def test_an_object_offers_nothing_that_admins_alone_may_set() -> None:
    """An object belongs to its slice; the API server drops what the definition does not name."""
    assert {"move"} == crds.ADMINS_ALONE
    assert "move" not in SCHEMA["properties"]["spec"]["properties"]
    assert "x-kubernetes-preserve-unknown-fields" not in SCHEMA["properties"]["spec"]


def test_the_namespace_may_say_the_slice() -> None:
    assert "required" not in SCHEMA["properties"]["spec"]


def parts(schema: Any, beside_value: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every schema below, and whether it is an alternative."""
    yield schema, beside_value
    for inner in schema.get("properties", {}).values():
        yield from parts(inner)
    for word in ("items", "additionalProperties"):
        if word in schema:
            yield from parts(schema[word])
    for word in ("anyOf", "allOf"):
        for inner in schema.get(word, ()):
            yield from parts(inner, beside_value=True)


def test_it_is_structural() -> None:
    """https://kubernetes.io/docs, "Specifying a structural schema": types everywhere, and none in alternatives."""
    for part, is_alternative in parts(SCHEMA):
        assert not {"$ref", "const", "default", "title", "examples", "$defs"} & part.keys(), part
        if is_alternative:
            assert not {"type", "description", "properties"} & part.keys(), part
        elif "x-kubernetes-preserve-unknown-fields" not in part:
            assert part["type"] in {"object", "array", "string", "integer", "number", "boolean"}, part
        assert "(?" not in part.get("pattern", ""), "RE2 does not look ahead"


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "string", "pattern": "^(?!no)"}, id="a pattern that RE2 cannot follow"),
        pytest.param({"type": "number", "exclusiveMinimum": 0}, id="a bound that is another thing there"),
        pytest.param({"oneOf": [{"type": "string"}]}, id="alternatives that nobody has judged"),
    ],
)
def test_what_has_no_form_is_refused_when_the_file_is_made(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"schemas/export/crds\.py"):
        crds.structural(schema, {})


def test_stale_missing_and_foreign_files_are_noticed_and_mended(tmp_path: Path) -> None:
    files = replace(crds.FILES, folder=tmp_path)
    files.write()
    assert files.stale() == []
    (tmp_path / "gprs.egs.dev.yaml").write_text("x: 1\n")
    (tmp_path / "old.yaml").write_text("x: 1\n")
    assert files.stale() == ["gprs.egs.dev.yaml", "old.yaml"]
    files.write()
    assert files.stale() == []


def test_wrong_use_exits_2() -> None:
    assert crds.FILES.command(["--chekc"]) == 2
    assert crds.FILES.command(["--check"]) == 0
