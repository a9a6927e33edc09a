"""An example of every body in the OpenAPI document: the model's own, or built from its fields. Pure.

Held by tests/portal/test_documented.py: every body has an example, and it matches its schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
JSON = "application/json"
DEEPEST = 12
"""Depth limit, for schemas that contain themselves."""
USUAL: Mapping[str, str] = {
    "gprId": "gpr-7c29e338-ebda",
    "gprName": "gpt-4o-workload",
    "name": "vision",
    "sliceName": "vision",
    "slice": "vision",
    "workspaceName": "vision",
    "clusterName": "east",
    "cluster": "east",
    "pool": "h100",
    "gpuShape": "H100-80GB",
    "instanceType": "a2-highgpu-8g",
    "email": "bo@example.com",
    "commit": "8d5f0a1c6b7e4f2d9a3b5c7d9e1f2a3b4c5d6e7f",
    "branch": "requests/vision-gpt-4o-workload",
    "url": "https://git.example.com/fleet/pulls/7",
    "exitDuration": "6h0m0s",
}
"""Examples of text fields by name, for fields without an example."""
_TIMES = ("Time", "Timestamp", "At", "since", "at", "was")
"""Name endings of fields with an instant."""
_PLAIN: Mapping[str, Any] = {"string": "…", "integer": 1, "number": 1.0, "boolean": False, "null": None}


def with_examples(document: Json) -> None:
    """Add an example to every request and response body that has none."""
    made = _Made(document.get("components", {}).get("schemas", {}))
    for media, is_answer in _bodies(document):
        if "example" not in media and "examples" not in media and "schema" in media:
            media["example"] = made.of(media["schema"], is_answer)


def _bodies(document: Json) -> Iterator[tuple[Json, bool]]:
    for methods in document["paths"].values():
        for operation in methods.values():
            asked = operation.get("requestBody", {}).get("content", {})
            answers = [each.get("content", {}) for each in operation["responses"].values()]
            yield from ((content[JSON], True) for content in answers if JSON in content)
            if JSON in asked:
                yield asked[JSON], False


@dataclass(frozen=True, slots=True)
class _Made:
    schemas: Json

    def of(self, schema: Json, is_answer: bool, depth: int = 0) -> Any:
        """For an answer with all fields, for a request with the required ones and those with an example."""
        schema = self._seen(schema)
        if schema.get("examples"):
            return schema["examples"][0]
        for word in ("const", "default"):
            if schema.get(word) is not None:
                return schema[word]
        if "enum" in schema:
            return schema["enum"][0]
        options = [self._seen(each) for each in schema.get("anyOf") or schema.get("oneOf") or ()]
        if options:
            there = [each for each in options if each.get("type") != "null"]
            return self.of((there or options)[0], is_answer, depth) if depth < DEEPEST else None
        return self._by_type(schema, is_answer, depth)

    def _by_type(self, schema: Json, is_answer: bool, depth: int) -> Any:
        match schema.get("type"):
            case "object":
                return self._object(schema, is_answer, depth)
            case "array":
                items = schema.get("items")
                return [] if not items or depth >= DEEPEST else [self.of(items, is_answer, depth + 1)]
            case "integer" | "number" as kind:
                return max(_PLAIN[kind], schema.get("minimum", _PLAIN[kind]))
            case "string":
                return "x" * max(1, schema["minLength"]) if "minLength" in schema else _PLAIN["string"]
            case kind:
                return _PLAIN.get(kind or "null")

    def _object(self, schema: Json, is_answer: bool, depth: int) -> Json:
        if depth >= DEEPEST:
            return {}
        needed = schema.get("required", ())
        fields = schema.get("properties", {}).items()
        return {
            name: self._field(name, field, is_answer, depth + 1)
            for name, field in fields
            if is_answer or name in needed or self._seen(field).get("examples")
        }

    def _field(self, name: str, field: Json, is_answer: bool, depth: int) -> Any:
        """A text field without an example gets the usual one for its name."""
        found = self.of(field, is_answer, depth)
        if found != _PLAIN["string"]:
            return found
        return USUAL.get(name, "2026-11-21T08:00:00Z" if name.endswith(_TIMES) else found)

    def _seen(self, schema: Json) -> Json:
        """Resolves references; keys beside a reference take precedence."""
        while "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**self.schemas[schema["$ref"].rpartition("/")[2]], **rest}
        return schema
