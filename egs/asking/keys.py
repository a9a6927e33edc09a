"""API keys.

Held by tests/egs/test_sdk_admin.py.
"""

from __future__ import annotations

from typing import Any

from egs.asking.login import authenticate
from egs.calling import API, Ask, call
from egs.exceptions import BadParameters
from egs.sessions import AuthenticatedSession
from egs.steps import Script

KEY = f"{API}/api-key"
ROLES = ("Owner", "Editor", "Viewer")


def create_api_key(  # noqa: PLR0913 - the vendor's signature
    name: str,
    role: str,
    validity: str,
    username: str = "admin",
    description: str = "",
    workspace_name: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Make an API key; returns its text, which is shown only once. `role` is Owner, Editor or Viewer.

    `validity` is its last day, `YYYY-MM-DD`; empty: tomorrow (UTC). Editors and Viewers need `workspace_name`.
    The key acts for the caller, unless an admin names another person as `username`.

    Raises BadParameters (a ValueError) and Unauthorized.

    Example:
        >>> key = egs.create_api_key("ci", "Editor", "2026-12-31", workspace_name="vision",
        ...                          authenticated_session=auth)
        >>> egs.authenticate(endpoint, key).role
        'Editor'
    """
    if role not in ROLES:
        raise BadParameters(f"there is no role {role}; choose from {', '.join(ROLES)}")
    if role != "Owner" and not workspace_name:
        raise BadParameters(f"a key with role {role} needs a workspace: give workspace_name")
    body = {"name": name, "role": role, "validity": validity, "username": username}
    body |= {"description": description} | ({"workspaceName": workspace_name} if workspace_name else {})
    # Only this answer holds the secret: a repeated call could not return it.
    data = yield from call(authenticated_session, Ask("POST", KEY, body=body, retry="once"))
    return str(data["apiKey"])


def create_owner_api_key(
    *, egs_endpoint: str, egs_token: str, name: str, username: str, validity: str = "", description: str = ""
) -> Script[str]:
    """Make a key of role Owner with a token instead of a session; by default valid until tomorrow (UTC)."""
    session = yield from authenticate(egs_endpoint, access_token=egs_token)
    return (yield from create_api_key(name, "Owner", validity, username, description, None, session))


def delete_api_key(
    api_key: str | None = None,
    authenticated_session: AuthenticatedSession | None = None,
    *,
    name: str | None = None,
) -> Script[dict[str, Any]]:
    """Revoke a key, by its text or its name; it stays on record. Returns the revoked key.

    Example:
        >>> egs.delete_api_key(name="bo-viewer", authenticated_session=auth)["name"]
        'bo-viewer'
    """
    body = {"apiKey": api_key, "name": name}
    ask = Ask("DELETE", KEY, body={field: value for field, value in body.items() if value is not None})
    data = yield from call(authenticated_session, ask)
    return dict(data or {})


def list_api_keys(
    workspace_name: str | None = None, authenticated_session: AuthenticatedSession | None = None
) -> Script[dict[str, Any]]:
    """The keys visible to the caller, without their texts: `{"apiKeys": [...]}`.

    Example:
        >>> sorted(egs.list_api_keys(authenticated_session=auth))
        ['apiKeys']
    """
    ask = Ask("GET", f"{KEY}/list", {"workspaceName": workspace_name})
    data = yield from call(authenticated_session, ask)
    return dict(data)
