"""The OpenAPI document is complete (K1): every path says what it is, what it refuses, and gives examples that hold."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from portal.http.error_keys import KEYS, STATUS
from portal.openapi.document import API
from tests.portal.test_error_keys import ELSEWHERE, ROOT, keys_in
from tests.support.portal import openapi_document

DOCUMENT: dict[str, Any] = openapi_document()
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
        examples = [each["value"] for each in media.get("examples", {}).values()]
        examples += [media["example"]] if "example" in media else []
        assert examples, f"the {what} of {name} has no example"
        schema = {**copy.deepcopy(media["schema"]), "components": DOCUMENT["components"]}
        for example in examples:
            jsonschema.Draft202012Validator(schema).validate(example)


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


OPEN = {
    "get /healthz",
    "get /readyz",
    "post /hooks/push",
    f"post {API}/auth",
    f"get {API}/auth/config",
    f"get {API}/auth/login",
    f"get {API}/auth/callback",
    f"post {API}/auth/logout",
    f"get {API}/promises",
}
"""What answers whoever asks: probes, a forge that signs, and logins, and the ledger of promises."""


def test_every_path_but_the_open_ones_says_how_to_show_who_asks():
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert {name: (each["type"], each.get("scheme")) for name, each in schemes.items()} == {
        "bearer": ("http", "bearer"),
        "cookie": ("apiKey", None),
    }
    assert schemes["cookie"]["name"] == "egs"
    for name, operation in OPERATIONS.items():
        assert operation["security"] == ([] if name in OPEN else [{"bearer": []}, {"cookie": []}]), name


ANYWHERE = {"NoSuchPath", "MethodNotAllowed", "InternalError"}
"""What is answered where there is no path, or by mistake, so that no path documents it."""


def keys_of(operation) -> dict[str, set[str]]:
    """The error keys that it documents, by status."""
    return {
        status: {
            each["value"]["error"]["errorKey"]
            for each in answer["content"][JSON].get("examples", {}).values()
        }
        for status, answer in operation["responses"].items()
        if status[0] in "45" and JSON in answer.get("content", {})
    }


def test_every_key_is_documented_where_it_is_answered():
    """Each key of the sources is known with its status, and some path's documentation shows it."""
    code = {key for file in sorted((ROOT / "portal").rglob("*.py")) for key in keys_in(file)} | ELSEWHERE
    assert code == set(KEYS)
    shown = {
        (key, int(status))
        for operation in OPERATIONS.values()
        for status, keys in keys_of(operation).items()
        for key in keys
    }
    assert shown == {(key, STATUS[key]) for key in set(KEYS) - ANYWHERE}
    body = DOCUMENT["components"]["schemas"]["ErrorBody"]["properties"]["errorKey"]
    assert body["x-extensible-enum"] == KEYS


def test_states_of_a_request_are_documented_by_key():
    changed = keys_of(OPERATIONS[f"put {API}/gpr"])["409"]
    assert {
        "Conflict",
        "GpuAlreadyProvisioned",
        "GpuAlreadyReleased",
        "NotProvisioned",
        "Unchanged",
    } <= changed
    assert "WorkspaceAlreadyExists" in keys_of(OPERATIONS[f"post {API}/slice-workspace"])["409"]
    for name in OF_THE_API:
        asks = {each["name"] for each in OPERATIONS[name].get("parameters", ())}
        if "Idempotency-Key" in asks:
            assert "IdempotencyKeyReused" in keys_of(OPERATIONS[name])["409"], name


def test_what_sends_a_browser_elsewhere_says_so():
    for name, status in ((f"get {API}/auth/login", "302"), (f"get {API}/auth/callback", "303")):
        answer = OPERATIONS[name]["responses"][status]
        assert {"Location", "Set-Cookie"} <= set(answer["headers"])
        assert "304" not in OPERATIONS[name]["responses"]
