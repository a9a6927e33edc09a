"""`egs key create|list|revoke`: keys of the HTTP API, as manifests below keys/.

A key's text is printed once, on stdout, after the change; the repository only gets its SHA-256.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from egs.commands import output
from reconciler.changes.change import Change, Means
from reconciler.changes.publish import aimed, publish
from reconciler.changes.reinstate import file_versions
from reconciler.changes.requests import check_typed
from reconciler.documents.yaml_edit import new_document, with_field
from reconciler.queries.arguments import lasting
from reconciler.queries.state import State, bad_name, clock, is_name, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound
from reconciler.sources.open_source import opened
from schemas.documents.apikey import ApiKeySpec, Role, digest_of
from schemas.reading.units import format_instant, wire
from schemas.rules.view import key_path

PREFIX = "egs_"
"""Lets secret scanners recognise a key."""
RANDOM_BYTES = 32
NEVER = "never"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewKey:
    name: str
    role: Role
    slices: tuple[str, ...] = ()
    email: str | None = None  # None: the caller
    expires: str = NEVER
    description: str = ""

    def end(self, now: datetime) -> datetime | None:
        """When it expires; None: never. Raises WrongUse."""
        lasts = None if self.expires == NEVER else lasting("--expires", self.expires)
        return None if lasts is None else now + lasts


def new_text() -> str:
    """256 random bits: the key cannot be guessed, and a plain hash does not reveal it."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def create(means: Means, asked: NewKey, *, is_trial: bool) -> str:
    """Makes a key and returns its text; a trial makes none and returns its manifest."""
    if not is_name(asked.name):
        raise bad_name(asked.name)
    path, text = key_path(asked.name), new_text()

    def build(state: State, base: str) -> Change:
        _check_for_another(state, asked, lambda: source.author(means.author).email)
        if source.store.read_path(base, path) is not None:
            raise NotAllowed(
                f"key {asked.name} exists already, perhaps revoked; choose another name (`egs key list` shows all)"
            )
        check_typed(path, data, b"")
        return Change({path: data}, f"Create API key {asked.name} for {email}", f"key-{asked.name}")

    with aimed(means) as source:
        email = asked.email or source.author(means.author).email
        data = manifest(asked, email, digest_of(text), asked.end(clock(None, source)))
        done = publish(source, means, build, is_trial=is_trial)
    if is_trial:
        output.note(f"dry run: no key is made; {path} would be:")
        return _without_digest(data)
    where = "now" if done.is_pushed else "once the change is on main"
    output.note(f"the key is valid {where}; it is shown only once, so store it safely")
    return text


def _check_for_another(state: State, asked: NewKey, me: Callable[[], str]) -> None:
    """With a key in another admin's name one admin could act as two; a verified main would hold it."""
    email = asked.email
    is_admins = email in {admin.email for admin in state.wanted.project.admins}
    if email is None or not (is_admins or asked.role == "Owner") or email == (mine := me()):
        return
    if is_admins:
        why = f"{email} is an admin, and admins create their keys themselves; you are {mine}"
    else:
        why = f"only {email} can create an Owner key for {email}; for another person use --role Editor or Viewer"
    raise NotAllowed(why, "NotYours")


def manifest(asked: NewKey, email: str, sha256: str, end: datetime | None) -> bytes:
    spec = {
        "sha256": sha256,
        "email": email,
        "role": asked.role,
        "slices": list(asked.slices),
        "notAfter": None if end is None else format_instant(end),
        "description": asked.description,
    }
    return new_document("ApiKey", asked.name, {field: value or None for field, value in spec.items()})


def _without_digest(data: bytes) -> str:
    lines = data.decode().rstrip("\n").splitlines()
    return "\n".join("  sha256: …" if line.startswith("  sha256:") else line for line in lines)


def revoke(means: Means, name: str) -> None:
    path = key_path(name)

    def build(state: State, base: str) -> Change:
        there = file_versions(source, state, base, path)
        if there.data is None:
            raise NotFound("key", name, state.wanted.keys)
        data = with_field(there.data, ("spec", "revoked"), True)
        if data == there.data and there.hold is None:
            raise NotAllowed(f"key {name} is revoked already; nothing to change")
        check_typed(path, data, there.data)
        return Change({path: data}, f"Revoke API key {name}", f"revoke-{name}")

    with aimed(means) as source:
        publish(source, means, build)


def rows(state: State) -> list[Row]:
    """Every key in force by name, without anything that could reveal its secret."""
    return [row(name, spec, state.now) for name, spec in sorted(state.wanted.keys.items())]


def row(name: str, spec: ApiKeySpec, now: datetime) -> Row:
    is_over = spec.not_after is not None and spec.not_after <= now
    return {
        "name": name,
        "email": spec.email,
        "role": spec.role,
        "slices": list(spec.slices),
        "notAfter": wire(spec.not_after),
        "state": "Revoked" if spec.revoked else "Expired" if is_over else "Active",
        "description": spec.description,
    }


def listed(repo: str | None, now: str | None) -> list[Row]:
    with opened(repo) as source:
        return rows(read_state(source, clock(now, source)))
