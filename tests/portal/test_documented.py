"""The OpenAPI document is complete (K1): every path says what it is, what it refuses, and gives examples that hold."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, cast

import jsonschema
import pytest

from portal.app import API, create_app

DOCUMENT: dict[str, Any] = create_app(cast(Any, None)).openapi()
OPERATIONS = {
    f"{method} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
OF_THE_API = sorted(name for name in OPERATIONS if f" {API}" in name)
JSON = "application/json"


def bodies(operation) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON body of it, by what it is of."""
    asked = operation.get("requestBody", {}).get("content", {})
    if asked:
        yield "request", asked[JSON]
    for status, answer in operation["responses"].items():
        if JSON in answer.get("content", {}):
            yield status, answer["content"][JSON]


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_body_has_an_example_that_its_schema_takes(name):
    for what, media in bodies(OPERATIONS[name]):
        assert "example" in media, f"the {what} of {name} has no example"
        schema = {**copy.deepcopy(media["schema"]), "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(schema).validate(media["example"])


@pytest.mark.parametrize("name", OF_THE_API)
def test_every_path_says_what_it_is_and_what_it_refuses(name):
    operation = OPERATIONS[name]
    assert operation.get("summary"), name
    assert operation.get("description"), name
    wanted = {"401", "429", "503"} | (
        {"422"} if operation.get("parameters") or "requestBody" in operation else set()
    )
    assert wanted <= set(operation["responses"])
    if not name.startswith("get ") and "403" not in operation["responses"]:
        assert name in ANYBODYS
    for status, answer in operation["responses"].items():
        assert answer["description"], (name, status)
        if status[0] in "45":
            assert answer["content"][JSON]["schema"]["$ref"].endswith("/ErrorEnvelope"), (name, status)


ANYBODYS = {f"post {API}/auth", f"post {API}/gpr/waittime"}
"""What changes nothing, so that nobody is refused it who is known."""


@pytest.mark.parametrize("name", OF_THE_API)
def test_every_parameter_is_explained(name):
    for each in OPERATIONS[name].get("parameters", ()):
        assert each.get("description") or each["schema"].get("description"), f"{each['name']} of {name}"


def test_no_two_paths_have_one_name():
    """Clients that are made of the document name their functions so."""
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
