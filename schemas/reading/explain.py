"""Explain in sentences everything that is wrong with a document that its model refused.

The model decides. The JSON Schema made from it explains, because its errors name keyword, bound and place; what only
the model detects, such as a date that does not exist, is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError as SchemaError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from pydantic import ValidationError

from schemas.documents.base import API_VERSION, Document
from schemas.export.json_schemas import schema_of
from schemas.reading.strict_yaml import Path
from schemas.reading.units import (
    DURATION_PATTERN,
    INSTANT_PATTERN,
    LASTING_PATTERN,
    LINE_PATTERN,
    LONG_NAME_PATTERN,
    NAME_PATTERN,
)
from schemas.rules.findings import Finding

_SHAPES = {
    DURATION_PATTERN: "a duration like 6h or 0d6h0m",
    LASTING_PATTERN: "a duration like 6h or 0d6h0m, above zero",
    INSTANT_PATTERN: "a time like 2026-11-21T08:00:00Z",
    LONG_NAME_PATTERN: "a name of lower-case letters, digits, '-' and '.', at most 253",
    NAME_PATTERN: "a name of lower-case letters, digits and '-', at most 63",
    LINE_PATTERN: "text in one line, without control characters",
}
"""What to write instead of a pattern, which only programs understand."""

MOST = 50
"""Most findings per document; after fixing fifty people run the check again."""

_SECRET = frozenset({"sha256", "secret"})
"""Fields where people paste the secret itself by mistake; messages about them do not show the value."""
_LOOKS_SECRET = re.compile(r"://|egs_[A-Za-z0-9_-]{20}")
"""URLs, whose path may be a credential, and API keys."""

_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}
_SENTENCES: dict[str, Callable[[Any], str]] = {
    "minimum": lambda bound: f"it must be at least {bound}",
    "exclusiveMinimum": lambda bound: f"it must be more than {bound}",
    "maximum": lambda bound: f"it must be at most {bound}",
    "minItems": lambda bound: f"it needs at least {bound} {'entry' if bound == 1 else 'entries'}",
    "maxItems": lambda bound: f"it may have at most {bound} entries",
    "maxLength": lambda bound: f"it may have at most {bound} characters",
    "minProperties": lambda bound: f"it needs at least {bound} {'field' if bound == 1 else 'fields'}",
    "maxProperties": lambda bound: f"it may have at most {bound} fields",
    "enum": lambda values: f"allowed: {', '.join(map(str, values))}",
    "const": lambda value: f"allowed: {value}",
    "pattern": lambda _: "it does not have the form that this field needs",
}


@cache
def validator_of(model: type[Document]) -> Draft202012Validator:
    found: Draft202012Validator = _Validator(schema_of(model))
    return found


def _to_its_end(_: Any, pattern: str, value: Any, _schema: Any) -> Iterator[SchemaError]:
    """Matches as pydantic does: `$` is the end of the text, not the place before a final line break."""
    ending = f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
    if isinstance(value, str) and re.search(ending, value) is None:
        yield SchemaError(f"{value!r} does not match {pattern!r}")


_Validator: Any = extend(Draft202012Validator, {"pattern": _to_its_end})  # type: ignore[no-untyped-call]


def explain(file: str, model: type[Document], value: Any, refusal: ValidationError) -> tuple[Finding, ...]:
    """Every reason why `model` refused `value`, at least one and at most `MOST`."""
    if not isinstance(value, Mapping):
        return (Finding(file, "NotAMapping", f"the file holds {_shown(value)}, not a mapping"),)
    wrong_head = _wrong_head(file, model, value)
    if wrong_head:
        return (wrong_head,)
    found = list(islice(_from_schema(file, validator_of(model).iter_errors(value)), MOST))
    if len(found) == MOST:
        return tuple(found)
    # Innermost first, so that a list that is too short only because a bad entry was dropped is not reported.
    for extra in sorted(_from_model(file, value, refusal), key=lambda finding: -len(finding.path)):
        if not _covered(extra.path, {finding.path for finding in found}):
            found.append(extra)
    return tuple(found[:MOST])


def _wrong_head(file: str, model: type[Document], value: Mapping[str, Any]) -> Finding | None:
    """A wrong kind or version: nothing else can be judged then."""
    kind, want = value.get("kind"), model.model_fields["kind"].default
    if kind is not None and kind != want:
        return Finding(file, "WrongKind", f"kind is {_shown(kind)}, but files here hold {want}", ("kind",))
    version = value.get("apiVersion")
    if version is not None and version != API_VERSION:
        return Finding(file, "WrongVersion", f"apiVersion is {_shown(version)}", ("apiVersion",))
    return None


def _from_schema(file: str, errors: Iterable[SchemaError]) -> Iterator[Finding]:
    for error in errors:
        if error.validator == "anyOf" and tuple(error.absolute_path) == ("spec",):
            yield from _says_too_little(file, error)
        else:
            # Of the branches of a choice, the one that the author most likely meant.
            yield from _one(file, best_match([error]) if error.validator == "anyOf" else error)


def _says_too_little(file: str, error: Any) -> Iterator[Finding]:
    """The one choice between fields: a GPR needs nodes and duration, or a template with them."""
    for name in ("nodes", "duration"):
        if error.instance.get(name) is None:
            yield _missing(file, ("spec", name), error.schema, " unless a template gives it")


def _one(file: str, error: Any) -> Iterator[Finding]:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        for name in sorted(set(error.instance) - set(error.schema.get("properties", ()))):
            yield _unknown(file, (*path, name), error.schema["properties"])
    elif error.validator == "required":
        for name in sorted(set(error.validator_value) - set(error.instance)):
            yield _missing(file, (*path, name), error.schema)
    elif error.validator in ("type", "anyOf"):
        types = _types_of(error.schema)
        message = f"{_dotted(path)} must be {types}, this is {_shown_at(path, error.instance)}"
        yield Finding(file, "WrongType", message, path, _advice(error))
    else:
        usual = _SENTENCES.get(error.validator, lambda _: "it is not allowed")
        sentence = _unsupported(path, error.instance) or usual(error.validator_value)
        message = f"{_dotted(path)} is {_shown_at(path, error.instance)}: {sentence}"
        yield Finding(file, "BadValue", message, path, _advice(error))


def _unsupported(path: Path, value: Any) -> str:
    """Why something that people know from elsewhere is not here; empty: it is nothing of that kind."""
    if path[-1:] == ("sharing",) and str(value).lower().startswith("vgpu"):
        return (
            "vGPU is not supported, because its driver tells guests neither the board's heat and power limits nor its "
            "errors, by which health is judged"
        )
    return ""


def _unknown(file: str, path: Path, fields: Mapping[str, Any]) -> Finding:
    name = str(path[-1])
    near = get_close_matches(name[:64].lower(), [field.lower() for field in fields], 1, 0.6)
    meant = next((field for field in fields if near and field.lower() == near[0]), None)
    fix = f"did you mean {meant}?" if meant else f"fields here: {', '.join(sorted(fields))}"
    return Finding(
        file, "UnknownField", f"{_dotted(path)} is not a field of this kind", path, fix, on_key=True
    )


def _missing(file: str, path: Path, schema: Mapping[str, Any], unless: str = "") -> Finding:
    field = schema.get("properties", {}).get(path[-1], {})
    example, about = _example(field), field.get("description", "")
    more = f", for example {example}" if example else f": {about.rstrip('.')}" if about else ""
    fix = f"add {path[-1]}{more}"
    return Finding(file, "MissingField", f"{_dotted(path)} is required{unless}", path, fix)


def _types_of(schema: Mapping[str, Any]) -> str:
    types = [_TYPES[_type(branch)] for branch in _branches(schema) if _type(branch) in _TYPES]
    return " or ".join(dict.fromkeys(types)) or "something else"


def _example(schema: Mapping[str, Any]) -> str:
    """An example value of a field; empty if none would fit better than any other."""
    for branch in _branches(schema):
        if branch.get("pattern") in (DURATION_PATTERN, LASTING_PATTERN):
            return "6h"
        known = [
            *branch.get("examples", ()),
            *branch.get("enum", ()),
            *([branch["const"]] if "const" in branch else ()),
        ]
        if known:
            return str(known[0])
        if branch.get("type") == "integer":
            return str(branch.get("minimum", 1))
    return ""


def _branches(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives for a field, except leaving it empty."""
    return [branch for branch in schema.get("anyOf", [schema]) if branch.get("type") != "null"]


def _advice(error: Any) -> str | None:
    """What to write instead, from the schema's type, bounds, values and pattern."""
    around = error.parent
    is_one_of = error.validator == "type" and around is not None and around.validator == "anyOf"
    schema = around.schema if is_one_of else error.schema
    ways = dict.fromkeys(way for branch in _branches(schema) if (way := _way(branch, _about(error))))
    return f"write {' or '.join(ways)}" if ways else None


def _type(schema: Mapping[str, Any]) -> str:
    """A reference always leads to a part of a document, so to a mapping."""
    return str(schema.get("type", "object" if "$ref" in schema else ""))


def _about(error: Any) -> str:
    """The nearest description, without its full stop."""
    while error is not None:
        if error.schema.get("description"):
            return str(error.schema["description"]).rstrip(".")
        error = error.parent
    return ""


def _way(schema: Mapping[str, Any], about: str) -> str | None:
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    kind = _type(schema)
    if kind == "string":
        return _text(schema, about)
    if kind in ("integer", "number"):
        return _number(schema, "a whole number" if kind == "integer" else "a number")
    return _list(schema) if kind == "array" else _TYPES.get(kind)


def _text(schema: Mapping[str, Any], about: str) -> str:
    pattern, examples = schema.get("pattern"), schema.get("examples")
    if pattern in _SHAPES:
        return _SHAPES[pattern]
    if examples:
        return f"text like {examples[0]}"
    if pattern is not None:
        return f"text in this form: {about}" if about else f"text that matches {pattern}"
    most = schema.get("maxLength")
    return "text" if most is None else f"text of at most {most} characters"


def _number(schema: Mapping[str, Any], without_bounds: str) -> str:
    least, above, most = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    low = f" from {least}" if least is not None else f" above {above}" if above is not None else ""
    if most is None:
        return f"a number{low}" if low else without_bounds
    high = f" to {most}" if least is not None else f"{' and' if low else ''} at most {most}"
    return f"a number{low}{high}" if low else f"a number of{high}"


def _list(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if most is None:
        return f"a list of at least {least}" if least else "a list"
    return f"a list of {least} to {most}" if least else f"a list of at most {most}"


def _from_model(file: str, value: Any, refusal: ValidationError) -> Iterator[Finding]:
    """What only the model detects, in our words: the library's are for programmers."""
    for error in refusal.errors(include_url=False, include_context=False):
        path = real_path(value, error["loc"])
        what, fix = f"{_dotted(path)} has a value that the field cannot hold", None
        if error["type"] == "value_error":
            said, _, hint = error["msg"].removeprefix("Value error, ").partition("; ")
            what, fix = f"{_dotted(path)}: {said}", f"write {hint.replace(' reads', '')}" if hint else None
        elif error["type"] in ("int_type", "int_from_float"):
            what, fix = f"{_dotted(path)} must be a whole number", "write it without a decimal point"
        yield Finding(file, "BadValue", what, path, fix)


def real_path(value: Any, steps: Iterable[str | int]) -> Path:
    """The part of a model's error path that exists in the document; the rest names branches of a choice."""
    path: list[str | int] = []
    for step in steps:
        inside = isinstance(value, dict) and step in value
        if not inside and not (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            break
        path.append(step)
        value = value[step]
    return tuple(path)


def _covered(path: Path, places: set[Path]) -> bool:
    """Whether the schema has reported this value, or one inside or around it."""
    return any(place[: len(path)] == path or path[: len(place)] == place for place in places)


def _dotted(path: Path) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "the document"


def _shown_at(path: Path, value: Any) -> str:
    """The value, unless it may be a secret: everyone who reads the message would see it."""
    secret = isinstance(value, str) and path and path[-1] in _SECRET
    return "a text that is not shown" if secret else _shown(value)


def _shown(value: Any) -> str:
    text = (
        {True: "true", False: "false", None: "empty"}[value]
        if value is None or value is True or value is False
        else repr(value)
    )
    if _LOOKS_SECRET.search(text[:10_000]):
        return "text that may be a secret and is not shown"
    return text if len(text) <= 60 else f"{text[:57]}..."
