"""API keys on the wire: made, listed and revoked. Pure.

A key is revoked, never deleted: its user gets a clear refusal, its name is not reused, and one changed line records who
ended it and when. A key can make other keys only if it carries all rights of its person within the scope (role Owner).
The new key carries no more and expires no later than the old one, so a stolen key does not outlive its revocation.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Literal

from pydantic import Field

from portal.http.context import Changed, Wire, example, optional
from portal.http.errors import ApiError, bad_parameters, forbidden
from portal.http.names import checked_name, is_address, listed
from portal.identity.callers import Caller
from portal.views.view import View
from reconciler.documents.yaml_edit import new_document
from schemas.documents.apikey import ApiKeySpec, Role, digest_of
from schemas.reading.units import format_instant

LONGEST = timedelta(days=3660)
"""Longest life of a key: ten years."""
LONGEST_BY_TOKEN = timedelta(days=90)
"""Longest life of a key made by a session that an ID token opened: a stolen token must not give access for years."""
MOST_IN_FORCE = 50
"""Most keys in force per person."""


class KeyWish(Wire):
    """A key to make."""

    model_config = example(
        {
            "name": "vision-pipeline",
            "role": "Editor",
            "validity": "2026-12-31",
            "username": "bo@example.com",
            "description": "nightly training",
            "workspaceName": "vision",
        }
    )

    name: str = Field(min_length=1, max_length=253, description="Its name.", examples=["vision-pipeline"])
    role: Role = Field(
        description="Owner: all that the person may do; Editor: file and end requests; Viewer: read."
    )
    validity: str = Field(
        default="", description='Last valid day (UTC); "": tomorrow.', examples=["2026-12-31"], max_length=10
    )
    username: str = Field(
        default="",
        max_length=254,
        description="Mail address of the person that the key acts for; default: the caller. Only admins may name "
        "another person, who must not be an admin, up to the role Editor. Any other text has no effect.",
    )
    description: str = Field(default="", max_length=500, description="Informational.")
    workspace_name: str | None = optional(
        "The workspace that the key is for; absent: the whole project.", max_length=253
    )


class KeyMade(Wire):
    """A new key; its text is shown only here."""

    model_config = example(
        {
            "apiKey": "egs_…",
            "name": "vision-pipeline",
            "expiresAt": "2027-01-01T00:00:00Z",
            "change": {"way": "pushed", "commit": "8d5f…"},
        }
    )

    api_key: str = Field(description="Its text. It is valid once the change is on main.", repr=False)
    name: str = Field(description="Its name.")
    expires_at: str = Field(description="When it expires.")
    change: Changed = Field(description="Where the change is.")


class KeyNamed(Wire):
    """Names a key, by its name or its text."""

    model_config = example({"name": "vision-pipeline"})

    name: str | None = optional("Its name.", min_length=1, max_length=253)
    api_key: str | None = optional("Its text.", min_length=1, max_length=256, repr=False)


class KeyRevoked(Wire):
    """A revoked key."""

    model_config = example({"name": "vision-pipeline", "change": {"way": "pushed", "commit": "8d5f…"}})

    name: str = Field(description="Its name.")
    change: Changed = Field(description="Where the change is.")


class KeyShown(Wire):
    """A key without its secret."""

    model_config = example(
        {
            "name": "vision-pipeline",
            "role": "Editor",
            "email": "bo@example.com",
            "username": "bo@example.com",
            "workspaceName": "vision",
            "workspaces": ["vision"],
            "validity": "2026-12-31",
            "expiresAt": "2027-01-01T00:00:00Z",
            "state": "Active",
            "description": "nightly training",
        }
    )

    name: str
    role: Role
    email: str = Field(description="The person it acts for.")
    username: str = Field(description="The same.")
    workspace_name: str = Field(description='The first of `workspaces`; "": the whole project.')
    workspaces: tuple[str, ...] = Field(description="The workspaces it is for; empty: the whole project.")
    validity: str = Field(description='Last valid day; "": it does not expire.')
    expires_at: str = Field(description='When it expires; "": never.')
    state: Literal["Active", "Expired", "Revoked"]
    description: str


class KeysShown(Wire):
    """Keys without their secrets, by name."""

    api_keys: tuple[KeyShown, ...]


# -- making ------------------------------------------------------------------------------------------------------------


def spec_of(asked: KeyWish, caller: Caller, view: View, now: datetime) -> ApiKeySpec:
    """The key that the caller may make, without its text; ApiError 403 and 422."""
    checked_name("name", asked.name)
    scope = _scope(asked, caller, view)
    email = _in_whose_name(asked, caller, view)
    end = end_of(asked.validity, now)
    _check_own(caller, scope, end, view.wanted.keys.get(caller.key))
    if not caller.is_admin and not caller.actor.member_of:
        raise forbidden(
            f"{caller.email} is a member of no workspace, so a key would be of no use; ask a workspace owner to add you"
        )
    if caller.is_handed and end > now + LONGEST_BY_TOKEN:
        raise forbidden(
            f"a login by ID token makes keys for at most {LONGEST_BY_TOKEN.days} days; give an earlier day, or log "
            "in with a browser at the portal itself"
        )
    check_number(view, email, now)
    return ApiKeySpec(
        sha256="0" * 64,
        email=email,
        role=asked.role,
        slices=scope,
        not_after=end,
        description=asked.description,
    )


def check_number(view: View, email: str, now: datetime) -> None:
    """ApiError 422 if that person has the maximum number of keys."""
    keys = (spec for spec in view.wanted.keys.values() if spec.email == email and not spec.revoked)
    if sum(spec.not_after is None or now < spec.not_after for spec in keys) >= MOST_IN_FORCE:
        raise bad_parameters(
            f"{email} has {MOST_IN_FORCE} keys in force, which is the maximum; revoke one first"
        )


def document(name: str, spec: ApiKeySpec, text: str) -> bytes:
    told = spec.edited(sha256=digest_of(text))
    fields = told.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return new_document("ApiKey", name, fields)


def _scope(asked: KeyWish, caller: Caller, view: View) -> tuple[str, ...]:
    if not asked.workspace_name:
        return ()  # the whole project, within the person's rights
    name = asked.workspace_name
    if name not in view.wanted.slices or not caller.may_see(name):
        seen = [each for each in view.wanted.slices if caller.may_see(each)]
        raise bad_parameters(
            f"workspaceName: there is no such workspace, or you may not see it; choose from {listed(seen)}"
        )
    return (name,)


def _in_whose_name(asked: KeyWish, caller: Caller, view: View) -> str:
    if not is_address(asked.username) or asked.username.lower() == caller.email.lower():
        return caller.email
    if not caller.is_admin:
        raise forbidden(f"username: only admins make keys that act for others; yours acts for {caller.email}")
    # With a key for another admin one admin could act as two.
    if asked.username.lower() in {admin.email.lower() for admin in view.wanted.project.admins}:
        raise forbidden(f"username: {asked.username} is an admin, and admins make their own keys")
    if asked.role == "Owner":
        raise forbidden(
            f"role: you may make keys for {asked.username} up to the role Editor; an Owner key that person must make "
            "themselves"
        )
    return asked.username


def end_of(validity: str, now: datetime) -> datetime:
    """The end of that day in UTC; ApiError 422 for a past or invalid day."""
    try:
        day = (
            datetime.strptime(validity, "%Y-%m-%d").replace(tzinfo=UTC)
            if validity
            else _day(now) + timedelta(days=1)
        )
    except ValueError as error:
        raise bad_parameters("validity: write a day like 2026-12-31") from error
    if day < _day(now):
        raise bad_parameters(f"validity: {validity} is in the past; the key would be expired")
    if day > now + LONGEST:
        raise bad_parameters(f"validity: {validity} is more than ten years away; choose an earlier day")
    return day + timedelta(days=1)


def _day(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _check_own(caller: Caller, scope: tuple[str, ...], end: datetime, by: ApiKeySpec | None) -> None:
    """Only an Owner key makes keys, and a new key carries no more than its maker; `by`: the key that makes it."""
    if not _carries(caller, scope):
        where = ", ".join(scope) or "the whole project"
        raise forbidden(
            f"only the role Owner for {where} makes such keys, and {_with_what(caller)} does not have it; "
            "log in yourself, or use a key of role Owner"
        )
    # The key's own end decides: a session ends within the hour, but can be opened again.
    if by is not None and by.not_after is not None and end > by.not_after:
        raise forbidden(
            f"the key {caller.key} expires at {format_instant(by.not_after)} and cannot make a key that expires later; "
            "give an earlier day"
        )


def _with_what(caller: Caller) -> str:
    return f"the key {caller.key}" if caller.key else "your login"


def _carries(caller: Caller, scope: tuple[str, ...]) -> bool:
    """Whether the caller has all rights that a key with that scope could have."""
    return any(grant.role == "Owner" and grant.includes(scope) for grant in caller.grants)


# -- looking and ending ------------------------------------------------------------------------------------------------


def keys_shown(view: View, caller: Caller, workspace: str | None, now: datetime) -> Iterator[KeyShown]:
    """Keys visible to the caller: their own within what they see, for an admin all; of one workspace, or all."""
    for name, spec in sorted(view.wanted.keys.items()):
        if _may_know(caller, spec) and (workspace is None or workspace in spec.slices):
            yield _shown(name, spec, now)


def _may_know(caller: Caller, spec: ApiKeySpec) -> bool:
    if caller.is_admin:
        return True
    return spec.email == caller.email and any(grant.includes(spec.slices) for grant in caller.grants)


def _shown(name: str, spec: ApiKeySpec, now: datetime) -> KeyShown:
    end = spec.not_after
    is_over = end is not None and end <= now
    return KeyShown(
        name=name,
        role=spec.role,
        email=spec.email,
        username=spec.email,
        workspace_name=spec.slices[0] if spec.slices else "",
        workspaces=spec.slices,
        validity="" if end is None else f"{end - timedelta(seconds=1):%Y-%m-%d}",
        expires_at="" if end is None else format_instant(end),
        state="Revoked" if spec.revoked else "Expired" if is_over else "Active",
        description=spec.description,
    )


def named(asked: KeyNamed, caller: Caller, view: View) -> str:
    """The named key, if the caller may revoke it; ApiError 404, 403 and 422."""
    if (asked.name is None) == (asked.api_key is None):
        raise bad_parameters("name: give either the key's name or its text as apiKey")
    found = view.keys.get(digest_of(asked.api_key)) if asked.api_key is not None else None
    name = asked.name if found is None else found[0]
    spec = view.wanted.keys.get(name or "")
    if name is None or spec is None or not _may_know(caller, spec):
        # A key's text is never repeated.
        what = "with that text" if asked.name is None else f"named {asked.name}"
        raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", f"there is no API key {what}, or you may not see it")
    if not caller.is_admin and not _carries(caller, spec.slices):
        raise forbidden(
            f"{_with_what(caller)} cannot revoke keys: that takes the role Owner; log in, or use a key of that role"
        )
    return name
