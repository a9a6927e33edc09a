"""ApiKey: a secret that opens the HTTP API for one person; the repository stores only its hash."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from schemas.documents.base import Address, Document, Model
from schemas.reading.units import Instant, Name

Role = Literal["Owner", "Editor", "Viewer"]
"""Owner: all that the person may do; Editor: file, change and end requests; Viewer: read. Always within the scope."""


class ApiKeySpec(Model):
    """The key's person, and which of that person's rights it carries: never more than the person has."""

    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the key's text, in hexadecimal digits."
    )
    email: Address = Field(description="The person, or the robot, that the key acts for.")
    role: Role = Field(description="Owner, Editor or Viewer.")
    slices: tuple[Name, ...] = Field(
        (), max_length=100, description="Slices that it is valid for; empty: the whole project."
    )
    not_after: Instant | None = Field(None, description="When it expires; absent: never.")
    revoked: bool = Field(False, description="It is refused, but stays on record.")
    description: str = Field("", max_length=500, description="Informational.")


class ApiKey(Document):
    """`keys/<name>.yaml`."""

    kind: Literal["ApiKey"] = Field("ApiKey", description="Kind of document.")
    spec: ApiKeySpec = Field(description="The key's person, and what it is valid for.")


def digest_of(key: str) -> str:
    """The digest in the manifest of a key with that text; a key is random enough for a plain hash."""
    return hashlib.sha256(key.encode()).hexdigest()
