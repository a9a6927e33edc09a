"""Read one YAML document; refuse everything that two readers could understand differently.

It reads libyaml's events (`plain_yaml` reads plain documents), with YAML 1.2 core scalars. Tags construct nothing, and
the walk keeps its own stack, so no input, however deep or long, can crash the process. A plain scalar that YAML 1.1
readers understand differently (`no`, `010`, `1:30`, `1_000`) is refused with "quote it".

`load` gives the value; `locate`, a second pass for refused documents only, the place of every key and value in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from yaml import YAMLError
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # its stub forgets to export it
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from schemas.errors import UserError
from schemas.reading.plain_yaml import plain_value
from schemas.reading.scalars import Ambiguous, classify
from schemas.rules.rule_list import fix_of

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000
KNOWN_SCALARS = 8192
"""Size of the cache of classified scalars; a repository repeats the same few thousand."""

Path = tuple[str | int, ...]
Place = tuple[int, int]
Places = dict[Path, Place]

_PLAIN_ASCII = bytes([9, 10, 13, *range(32, 127)])
_BARE_CR = re.compile(r"\r(?!\n)")
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reorder what a reviewer sees
    "\u2028\u2029\ufeff\ufffe\uffff"  # line breaks to some readers, byte order mark, not characters
    "\u00ad\u180e\u200b\u2060-\u2064\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible to people
    "\ud800-\udfff]"  # surrogates, which UTF-8 cannot encode
)


class Refused(UserError):  # noqa: N818 - a refusal is an answer
    """Bytes that are not a document: place, rule and advice. Lines and columns count from 1."""

    def __init__(self, rule: str, message: str, place: Place = (1, 1), fix: str | None = None) -> None:
        self.rule = rule
        self.line, self.column = place
        self.fix = fix_of(rule) if fix is None else fix
        super().__init__(f"{message}; {self.fix}", reason=rule)
        self.message = message


@dataclass(frozen=True, slots=True)
class Positions:
    """The place of each key and value of a document, by path: `("spec", "clusters", 0)`."""

    values: Places
    keys: Places

    def value(self, path: Path) -> Place:
        """The value at `path`, or the nearest one around it if there is none."""
        while path not in self.values and path:
            path = path[:-1]
        return self.values.get(path, (1, 1))

    def key(self, path: Path) -> Place:
        """The key of the value at `path`; without a key, as `value`."""
        return self.keys.get(path) or self.value(path)


class _Known(dict[str, Any]):
    """Cache of classified plain scalars; cleared when full, so that no input makes it grow."""

    def __missing__(self, text: str) -> object:
        if len(self) >= KNOWN_SCALARS:
            self.clear()
        value = classify(text)
        if len(text) <= 64:
            self[text] = value
        return value


_known = _Known()


def load(data: bytes, max_bytes: int = MAX_BYTES) -> object:
    """The document's value: dict, list, str, int, float, bool or None. Raises only `Refused`.

    Machine-written files may be larger than people's: their readers pass a higher `max_bytes`.
    """
    _check_bytes(data, max_bytes)
    max_nodes = MAX_NODES * max_bytes // MAX_BYTES
    plain = plain_value(data.decode(), max_nodes // 2)  # a line adds at most two
    if plain is not None:
        return plain
    get = CParser(data).get_event
    try:
        _open(get)
        value, nodes = _walk(get, escapes=b"\\" in data, marks=b"!" in data or b"&" in data)
        _close(get())
    except YAMLError as error:
        raise _syntax(error, data) from error
    _check_value(value, nodes, max_nodes)
    return value


def _check_bytes(data: bytes, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise Refused("TooLarge", f"the file has {len(data)} bytes, at most {max_bytes} are allowed")
    # Nearly every file is plain ASCII, and this pass in C is the fastest test for it.
    if not data.translate(None, _PLAIN_ASCII) and b"\r" not in data:
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        raise Refused("NotUtf8", f"byte 0x{data[error.start]:02x} is not UTF-8", _end_of(before)) from error
    found = FORBIDDEN.search(text) or _BARE_CR.search(text)
    if found:
        place = _end_of(text[: found.start()])
        raise Refused("ForbiddenCharacter", f"character U+{ord(found[0]):04X} may not be used", place)


def _end_of(text: str) -> Place:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _open(get: Callable[[], Any]) -> None:
    get()  # stream start
    event = get()
    if type(event) is not DocumentStartEvent:
        raise Refused("EmptyDocument", "the file holds no document")
    if event.version or event.tags:
        raise Refused("DirectiveUsed", "a %YAML or %TAG line may not be used", _place(event))


def _close(event: Any) -> None:
    if type(event) is not StreamEndEvent:
        raise Refused("SeveralDocuments", "a second document begins here", _place(event))


def _walk(get: Callable[[], Any], escapes: bool, marks: bool) -> tuple[Any, int]:  # noqa: C901 - one table of events
    """The value of the events up to the document's end, and the number of values in it.

    `escapes` and `marks` say whether the text can contain escapes, and tags or anchors. This loop runs for every
    value of a repository: it uses local names, tests the commonest event first and calls little.
    """
    top: list[Any] = []
    known, stack, nodes, in_mapping = _known, list[Any](), 0, False
    into: Any = top
    key: str | None = None
    event: Any = None
    try:
        while True:
            event = get()
            kind = type(event)
            if kind is ScalarEvent:
                if marks and (event.tag or event.anchor):
                    _refuse_property(event)
                value: Any = event.value
                if not event.style:
                    value = known[value]
                elif escapes and FORBIDDEN.search(value):
                    raise Refused(
                        "ForbiddenCharacter", "an escape gives a forbidden character", _place(event)
                    )
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                nodes += len(into)
                into = stack.pop()
                in_mapping = type(into) is dict
                continue
            elif kind is DocumentEndEvent:
                break
            else:
                value = _container(event, len(stack))
            if not in_mapping:
                into.append(value)
            elif key is not None:
                into[key] = value
                key = None
            elif type(value) is str and value not in into:
                key = value
                continue
            else:
                _refuse_key(event, value)
            if kind is not ScalarEvent:
                stack.append(into)
                into, in_mapping = value, kind is MappingStartEvent
    except Ambiguous as error:
        raise Refused(error.rule, error.message, _place(event)) from error
    return top[0], nodes


def _container(event: Any, depth: int) -> dict[str, Any] | list[Any]:
    if type(event) is AliasEvent:
        raise Refused("AliasUsed", f"the alias *{event.anchor} may not be used", _place(event))
    if event.tag or event.anchor:
        _refuse_property(event)
    if depth >= MAX_DEPTH:
        raise Refused("TooDeep", f"values nest more than {MAX_DEPTH} deep", _place(event))
    return {} if type(event) is MappingStartEvent else []


def _check_value(value: object, nodes: int, max_nodes: int) -> None:
    if value is None:
        raise Refused("EmptyDocument", "the file holds no document")
    if nodes > max_nodes:
        raise Refused("TooManyValues", f"the file holds {nodes} values, at most {max_nodes} are allowed")


def _refuse_property(event: Any) -> NoReturn:
    if event.tag:
        raise Refused("TagUsed", f"the tag {event.tag} may not be used", _place(event))
    raise Refused("AnchorUsed", f"the anchor &{event.anchor} may not be used", _place(event))


def _refuse_key(event: Any, value: object) -> NoReturn:
    if type(value) is str:
        raise Refused("DuplicateKey", f"the key {_shown(value)} is given twice", _place(event))
    shown = event.value if type(event) is ScalarEvent else "a list or mapping"
    raise Refused("KeyNotString", f"a key must be text, this is {_shown(shown)}", _place(event))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _place(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def _syntax(error: YAMLError, data: bytes) -> Refused:
    if isinstance(error, ReaderError):
        return Refused("ForbiddenCharacter", f"not text: {error.reason}")
    mark = getattr(error, "problem_mark", None)
    # At the end of the file libyaml reports a line after the last one.
    place = (min(mark.line, data.count(b"\n")) + 1, mark.column + 1) if mark else (1, 1)
    parts = (getattr(error, "context", None), getattr(error, "problem", None))
    return Refused("BadYaml", ": ".join(part for part in parts if part) or "this is not YAML", place)


def locate(data: bytes) -> Positions:
    """The place of every key and value in bytes that `load` accepts."""
    get = CParser(data).get_event
    get(), get()  # the stream's and the document's start
    positions = Positions({}, {})
    _locate(get(), get, (), positions.values, positions.keys)
    return positions


def _locate(event: Any, get: Callable[[], Any], path: Path, values: Places, keys: Places) -> None:
    # Recursion is safe here: `load` has bounded the depth.
    values[path] = _place(event)
    if type(event) is SequenceStartEvent:
        index = 0
        while type(item := get()) is not SequenceEndEvent:
            _locate(item, get, (*path, index), values, keys)
            index += 1
    elif type(event) is MappingStartEvent:
        while type(name := get()) is not MappingEndEvent:
            below = (*path, name.value)
            keys[below] = _place(name)
            _locate(get(), get, below, values, keys)
