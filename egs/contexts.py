"""The context file: the servers that a person uses, with identities, and the current one. Like kubectl's, one file.

    current-context: prod
    contexts:
      prod: {server: https://egs.example.com, email: bo@example.com, api-key: …}

It is at `$EGS_CONFIG`, else `$XDG_CONFIG_HOME/egs/config.yaml`, else `~/.config/egs/config.yaml`. It holds secrets:
only its owner can read it, and it is replaced atomically. Unknown keys are kept.

Held by tests/egs/test_contexts.py.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from egs.commands.errors import Said, broken, not_allowed, wrong_use

CURRENT, CONTEXTS = "current-context", "contexts"
_FIELDS = {"server": "server", "email": "email", "api-key": "api_key", "token": "token", "expires": "expires"}
"""Names of a context's fields in the file and here."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Context:
    """One server and the identity there. Key and token are never in a repr."""

    server: str
    email: str = ""
    api_key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    expires: str = ""
    """When the token expires (RFC 3339); empty: it is a key, or unknown."""
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Book:
    """The whole file."""

    contexts: Mapping[str, Context] = field(default_factory=dict)
    current: str = ""
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def having(self, name: str, context: Context) -> Book:
        """With that context added as the current one."""
        return replace(self, contexts={**self.contexts, checked(name): context}, current=name)

    def without(self, name: str) -> Book:
        """Without that context; if it was the current one, there is none afterwards. Raises Said."""
        self.named(name)
        rest = {key: context for key, context in self.contexts.items() if key != name}
        return replace(self, contexts=rest, current="" if self.current == name else self.current)

    def using(self, name: str) -> Book:
        """With that context as the current one. Raises Said."""
        self.named(name)
        return replace(self, current=name)

    def named(self, name: str) -> Context:
        """The context of that name. Raises Said."""
        found = self.contexts.get(name)
        if found is None:
            known = ", ".join(sorted(self.contexts))
            advice = f"choose from {known}" if known else "`egs login SERVER` makes one"
            raise not_allowed(f"there is no context {name}; {advice}", "NotFound")
        return found


def path_of(environ: Mapping[str, str]) -> Path:
    if environ.get("EGS_CONFIG"):
        return Path(environ["EGS_CONFIG"]).expanduser()
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".config")
    return Path(base) / "egs" / "config.yaml"


def read(path: Path) -> Book:
    """Read the file; an empty book if there is none. Raises Said if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Book()
    except (OSError, UnicodeDecodeError) as error:
        raise broken(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        ) from error
    import yaml

    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise _unusable(path, "it is not YAML") from error
    return _book(path, content)


def write(path: Path, book: Book) -> None:
    """Replace the file. Raises Said."""
    import yaml

    text = yaml.safe_dump(_content(book), sort_keys=False, allow_unicode=True)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, text)
    except OSError as error:
        raise broken(
            f"{path} cannot be written: {error.strerror}; name another file with EGS_CONFIG"
        ) from error


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically by one that only its owner can read. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def checked(name: str) -> str:
    """The name itself, if it is valid for a context. Raises Said."""
    if _NAME.fullmatch(name) is None:
        raise wrong_use(f"{name[:80]!r} is not a valid context name; use letters, digits and ._-")
    return name


def _book(path: Path, content: Any) -> Book:
    if not isinstance(content, dict) or not isinstance(content.get(CONTEXTS) or {}, dict):
        raise _unusable(path, "it has no map of contexts")
    contexts = {
        str(name): _context(path, name, found) for name, found in (content.get(CONTEXTS) or {}).items()
    }
    more = {key: value for key, value in content.items() if key not in (CURRENT, CONTEXTS)}
    return Book(contexts, str(content.get(CURRENT) or ""), more)


def _context(path: Path, name: Any, found: Any) -> Context:
    if not isinstance(found, dict) or not isinstance(found.get("server"), str):
        raise _unusable(path, f"context {name} names no server")
    known = {_FIELDS[key]: str(value) for key, value in found.items() if key in _FIELDS and value is not None}
    return Context(**known, more={key: value for key, value in found.items() if key not in _FIELDS})


def _unusable(path: Path, why: str) -> Said:
    return broken(
        f"{path} cannot be used: {why}; correct it, or delete it and log in again", "BadContextFile"
    )


def _content(book: Book) -> dict[str, Any]:
    contexts = {}
    for name, context in book.contexts.items():
        known = {key: getattr(context, attribute) for key, attribute in _FIELDS.items()}
        contexts[name] = {key: value for key, value in known.items() if value} | dict(context.more)
    return {CURRENT: book.current or None, CONTEXTS: contexts, **book.more}
