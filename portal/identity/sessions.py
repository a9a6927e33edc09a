"""Sessions: signed tokens that any replica can check and none has to remember.

A token says who somebody is and by which key or login; what they may is looked up at every request, so that a key
that is revoked or gone takes its sessions with it. Everything signed here names its purpose: no session is taken
for a login under way, and none of either for something else that the same secret signs.

Held by tests/portal/identity/test_sessions.py.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from portal.http.errors import ApiError, unauthenticated
from schemas.errors import UserError

LIFE = timedelta(hours=1)
_SHORTEST = 32  # bytes of a secret, as many as HS256 makes of it
_SESSION = "egs-session"


class Signer:
    """Signs and checks with HS256. The first secret signs, all of them check, so that they can be changed."""

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        """Raises UserError for a secret that is too short, or none at all."""
        if not texts or any(len(text) < _SHORTEST for text in texts):
            raise UserError(
                f"the secret of sessions has fewer than {_SHORTEST} bytes; make one with `openssl rand -hex 32`",
                "SecretTooShort",
            )
        self._keys = tuple(OctKey.import_key(text) for text in texts)

    def __repr__(self) -> str:
        return f"Signer({len(self._keys)} secrets)"

    def sign(self, purpose: str, content: Mapping[str, Any], expires: datetime) -> str:
        """Text that `read` understands until then."""
        claims = {**content, "aud": purpose, "exp": int(expires.timestamp())}
        return jwt.encode({"alg": "HS256"}, claims, self._keys[0], ["HS256"])

    def read(self, purpose: str, text: str, now: datetime) -> tuple[Mapping[str, Any], datetime] | None:
        """What was signed, and when that ends; None: not by us, for something else, or over."""
        for key in self._keys:
            try:
                claims = jwt.decode(text, key, ["HS256"]).claims
            except (JoseError, ValueError):
                continue
            ends_at = claims.get("exp")
            if claims.get("aud") != purpose or not isinstance(ends_at, int):
                return None
            expires = datetime.fromtimestamp(ends_at, UTC)
            return (claims, expires) if now < expires else None
        return None


def signer_of(file: Path | None) -> Signer:
    """With the secrets of a file, one a line; None: with one that ends with this process. Raises UserError."""
    if file is None:
        return Signer((secrets.token_bytes(_SHORTEST),))
    try:
        lines = [line.strip() for line in file.read_bytes().splitlines()]
    except OSError as error:
        raise UserError(
            f"{file}: the secret of sessions cannot be read: {error.strerror}", "NoSecret"
        ) from error
    return Signer(tuple(line for line in lines if line))


@dataclass(frozen=True, slots=True)
class Session:
    """Who somebody is, and until when that may be said of them without showing it again."""

    email: str
    name: str
    expires: datetime
    key: str = ""
    """Digest of the API key that it was got with; empty: by a login."""
    groups: tuple[str, ...] = ()
    """Of the identity provider: those that the project knew at the login."""
    is_handed: bool = False
    """By an ID token that was brought, not by a login that began here."""


def issue(signer: Signer, session: Session) -> str:
    """The token of a session."""
    content: dict[str, Any] = {"sub": session.email, "name": session.name}
    if session.key:
        content["key"] = session.key
    if session.groups:
        content["groups"] = list(session.groups)
    if session.is_handed:
        content["handed"] = True
    return signer.sign(_SESSION, content, session.expires)


def session_of(signer: Signer, token: str, now: datetime) -> Session:
    """The session of a token; ApiError 401 where it is none of ours, or over."""
    found = signer.read(_SESSION, token, now)
    if found is None:
        raise _ended()
    claims, expires = found
    groups = tuple(claims.get("groups", ()))
    is_handed = claims.get("handed", False)
    return Session(claims["sub"], claims["name"], expires, claims.get("key", ""), groups, is_handed)


def ends(now: datetime, not_after: datetime | None) -> datetime:
    """When a session that begins now ends: with its key, or after an hour. Whole seconds."""
    latest = now + LIFE if not_after is None else min(now + LIFE, not_after)
    return latest.replace(microsecond=0)


def _ended() -> ApiError:
    return unauthenticated("this session is over, or none of this server's; log in again", "SessionEnded")
