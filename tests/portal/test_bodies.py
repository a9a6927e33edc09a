"""What every body of the API has in common: a number is a number, a truth a truth, a name one line."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import UnionType
from typing import Any, get_args

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from portal import routes
from portal.http.validation_errors import mistake
from portal.vendor.gpr_models import GprAsk, GprEdit
from portal.views.quotes import WaitAsk


def bodies() -> Iterator[type[BaseModel]]:
    """The model of each body that a path takes."""
    for module in pkgutil.walk_packages(routes.__path__, "portal.routes."):
        router = getattr(importlib.import_module(module.name), "router", None)
        for route in () if router is None else router.routes:
            if isinstance(route, APIRoute):
                for field in route.dependant.body_params:
                    kind = field.field_info.annotation
                    found = get_args(kind) if isinstance(kind, UnionType) else (kind,)
                    yield from (one for one in found if isinstance(one, type) and issubclass(one, BaseModel))


def fields(kind: str) -> Iterator[Any]:
    """Fields of bodies that are of that JSON type."""
    for body in sorted(set(bodies()), key=lambda body: body.__name__):
        for name, schema in body.model_json_schema()["properties"].items():
            if kind in {branch.get("type") for branch in schema.get("anyOf", [schema])}:
                yield pytest.param(body, name, id=f"{body.__name__}.{name}")


def refused(body: type[BaseModel], sent: dict[str, Any]) -> list[str]:
    """What is said about each wrong field."""
    with pytest.raises(ValidationError) as caught:
        body.model_validate(sent)
    return [mistake({**error, "loc": ("body", *error["loc"])}) for error in caught.value.errors()]


@pytest.mark.parametrize("value", [True, "2"], ids=repr)
@pytest.mark.parametrize(("body", "name"), list(fields("integer")))
def test_no_truth_and_no_text_is_a_number(body: type[BaseModel], name: str, value: Any) -> None:
    assert f"{name}: this must be a whole number" in refused(body, {name: value})


@pytest.mark.parametrize("value", [1, "yes"], ids=repr)
@pytest.mark.parametrize(("body", "name"), list(fields("boolean")))
def test_no_number_and_no_text_is_a_truth(body: type[BaseModel], name: str, value: Any) -> None:
    assert any(said.startswith(f"{name}: this must be ") for said in refused(body, {name: value}))


@pytest.mark.parametrize("text", ["a\nb", "a\n", "a\x1b[31m", "a\u2028b"], ids=ascii)
@pytest.mark.parametrize(
    ("body", "name"),
    [
        (GprAsk, "gprName"),
        (GprEdit, "gprName"),
        (WaitAsk, "requestName"),
        (GprAsk, "instanceType"),
        (GprAsk, "model"),
    ],
)
def test_a_name_is_one_line(body: type[BaseModel], name: str, text: str) -> None:
    assert any("one line of text" in said for said in refused(body, {name: text}))
