"""A plugin of mypy: `model.edited(field=…)` takes the names and types of that model's fields, all optional.

Without it `**changes: Any` would let every misspelt field through; `dataclasses.replace` is checked in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import ARG_NAMED_OPT, Var
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import AnyType, FunctionLike, Instance, Type, TypeOfAny, get_proper_type
from pydantic.mypy import METADATA_KEY

EDITABLE = "schemas.documents.base.Editable"


def plugin(version: str) -> type[Plugin]:
    return TypedEdits


class TypedEdits(Plugin):
    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        return _with_fields if fullname.endswith(".edited") else None  # the name has the receiver's class


def _with_fields(context: MethodSigContext) -> FunctionLike:
    model = get_proper_type(context.type)
    if not (isinstance(model, Instance) and model.type.has_base(EDITABLE)):
        return context.default_signature
    names = list(model.type.metadata[METADATA_KEY]["fields"])
    return context.default_signature.copy_modified(
        arg_types=[_type_of(model, name) for name in names],
        arg_kinds=[ARG_NAMED_OPT] * len(names),
        arg_names=names,
    )


def _type_of(model: Instance, name: str) -> Type:
    field = model.type[name].node
    assert isinstance(field, Var)
    if field.type is None:
        return AnyType(TypeOfAny.from_error)  # mypy has said what is wrong with the model itself
    return expand_type_by_instance(field.type, map_instance_to_supertype(model, field.info))
