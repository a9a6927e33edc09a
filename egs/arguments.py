"""Checks the types of arguments before anything is sent. Pure.

A wrong type raises a TypeError that names the expected type, but never the value: it may be a key.

Held by tests/egs/test_sdk_arguments.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

from egs.connection import Patience
from egs.sessions import AuthenticatedSession

_WORDS: dict[Any, str] = {
    int: "a whole number (int)",
    float: "a number",
    str: "text (str)",
    bool: "True or False",
    timedelta: "a timedelta",
    datetime: "a datetime",
    AuthenticatedSession: "a session from egs.authenticate",
    Patience: "an egs.Patience",
    NoneType: "None",
}
_NUMBERS: dict[Any, Any] = {int: int, float: (int, float)}
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_call(build: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument whose type differs from its annotation in `build`.

    A function with a documented `__signature__` parses and checks its arguments itself.
    """
    if hasattr(build, "__signature__"):
        return
    wanted, signature = _wanted(build)
    given = signature.bind(*args, **kwargs).arguments
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given |= given.pop(parameter.name, {})
    check(build.__name__, {name: value for name, value in given.items() if name in wanted}, wanted)


def check(name: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise TypeError for the first value of a wrong type."""
    for argument, value in given.items():
        if not _is_of(value, wanted[argument]):
            raise TypeError(f"{name}() needs {argument} to be {words(wanted[argument])}, not {_kind(value)}")


def words(hint: Any) -> str:
    if hint in _WORDS:
        return _WORDS[hint]
    if _is_union(hint):
        return " or ".join(words(part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if _is_list(hint):
        inner = get_args(hint)[0]
        return "a list" if inner is Any else f"a list of {_SEVERAL.get(inner, 'mappings')}"
    return "a mapping" if _is_mapping(hint) else getattr(hint, "__name__", str(hint))


_SEVERAL = {str: "texts", int: "whole numbers"}


@functools.cache
def _wanted(build: Callable[..., Any]) -> tuple[Mapping[str, Any], inspect.Signature]:
    signature = inspect.signature(build, follow_wrapped=False)
    hints = get_type_hints(build)
    wanted: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        hint = hints.get(name, Any)
        if get_origin(hint) is Unpack:
            wanted |= get_type_hints(get_args(hint)[0])
        elif parameter.kind not in _OPEN:
            wanted[name] = hint
    return wanted, signature


def _is_of(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if _is_union(hint):
        return any(_is_of(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str)  # the server checks which values are allowed
    if hint in _NUMBERS:  # True is an int in Python, but not a number here
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    if _is_mapping(hint):
        return isinstance(value, Mapping)
    if _is_list(hint):
        is_list = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
        return is_list and all(_is_of(item, get_args(hint)[0]) for item in value)
    return isinstance(value, hint)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_list(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping)


def _kind(value: Any) -> str:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        return "None" if value is None else f"a value of type {type(value).__name__}"
    held = sorted({type(item).__name__ for item in value})
    return f"a {type(value).__name__} of {', '.join(held) or 'nothing'}"
