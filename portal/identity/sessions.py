"""Sessions: signed tokens that any replica can check and none must store.

A token names a person and the key or login behind it. Rights are looked up at every request, so a revoked or deleted
key ends its sessions. Every signed text names its purpose: a session cannot be used as a login under way, nor either
of them as anything else that the same secret signs.
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

from portal.http.errors import unauthenticated
from schemas.errors import UserError

_SHORTEST = 32  # bytes of a secret, the size of an HS256 key
_SESSION = "egs-session"
_TICKET = "egs-ticket"


class Signer:
    """Signs and checks with HS256. The first secret signs, all of them check, so that secrets can be rotated."""

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        """Raises UserError if a secret is missing or too short."""
        if not texts or any(len(text) < _SHORTEST for text in texts):
            raise UserError(
                f"the session secret has fewer than {_SHORTEST} bytes; make one with `openssl rand -hex 32`",
                "SecretTooShort",
            )
        self._keys = tuple(OctKey.import_key(text) for text in texts)

    def __repr__(self) -> str:
        return f"Signer({len(self._keys)} secrets)"

    def sign(self, purpose: str, content: Mapping[str, Any], expires: datetime) -> str:
        """A text that `read` accepts until `expires`."""
        claims = {**content, "aud": purpose, "exp": int(expires.timestamp())}
        return jwt.encode({"alg": "HS256"}, claims, self._keys[0], ["HS256"])

    def read(self, purpose: str, text: str, now: datetime) -> tuple[Mapping[str, Any], datetime] | None:
        """The signed content and its expiry; None: not signed by us, for another purpose, or expired."""
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
    """With the secrets of a file, one per line; None: with a secret of this process. Raises UserError."""
    if file is None:
        return Signer((secrets.token_bytes(_SHORTEST),))
    try:
        lines = [line.strip() for line in file.read_bytes().splitlines()]
    except OSError as error:
        raise UserError(f"{file}: the session secret cannot be read: {error.strerror}", "NoSecret") from error
    return Signer(tuple(line for line in lines if line))


@dataclass(frozen=True, slots=True)
class Session:
    """A person, and until when they need not show the credential again."""

    email: str
    name: str
    expires: datetime
    key: str = ""
    """Digest of the API key that opened it; empty: a login did."""
    groups: tuple[str, ...] = ()
    """Groups at the identity provider: those that the project knew at the login."""
    is_handed: bool = False
    """By an ID token that the client brought, not by a login that began here."""


def issue(signer: Signer, session: Session) -> str:
    """The session as a token."""
    return signer.sign(_SESSION, _content(session), session.expires)


def ticket(signer: Signer, session: Session, until: datetime) -> str:
    """A text for a link that opens a session of the same person until then; `session.expires` bounds the session."""
    content = {**_content(session), "end": int(session.expires.timestamp())}
    return signer.sign(_TICKET, content, until)


def session_of_ticket(signer: Signer, text: str, now: datetime) -> Session:
    """The session that a ticket stands for; ApiError 401 if it is not ours, or has ended."""
    found = signer.read(_TICKET, text, now)
    if found is None:
        raise unauthenticated("this link has ended, or another server made it; log in", "SessionEnded")
    claims, _ = found
    return _session(claims, datetime.fromtimestamp(claims["end"], UTC))


def _content(session: Session) -> dict[str, Any]:
    content: dict[str, Any] = {"sub": session.email, "name": session.name}
    if session.key:
        content["key"] = session.key
    if session.groups:
        content["groups"] = list(session.groups)
    if session.is_handed:
        content["handed"] = True
    return content


def session_of(signer: Signer, token: str, now: datetime) -> Session:
    """The session of a token; ApiError 401 if it is not ours, or has ended."""
    found = signer.read(_SESSION, token, now)
    if found is None:
        text = "this session has ended, or another server issued it; log in again"
        raise unauthenticated(text, "SessionEnded")
    return _session(*found)


def _session(claims: Mapping[str, Any], expires: datetime) -> Session:
    groups = tuple(claims.get("groups", ()))
    is_handed = claims.get("handed", False)
    return Session(claims["sub"], claims["name"], expires, claims.get("key", ""), groups, is_handed)


def ends(now: datetime, life: timedelta, not_after: datetime | None) -> datetime:
    """When a session that begins now ends: with its key, or after that time. Whole seconds."""
    latest = now + life if not_after is None else min(now + life, not_after)
    return latest.replace(microsecond=0)
