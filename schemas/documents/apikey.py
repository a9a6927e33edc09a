"""ApiKey: a secret that opens the HTTP API for one person; the repository stores only its hash."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Address, Document, Model
from schemas.reading.units import Instant, Name

Role = Literal["Owner", "Editor", "Viewer"]
"""Owner: all that the person may do; Editor: file, change and end requests; Viewer: read. Always within the scope."""


class ApiKeySpec(Model):
    """The key's person, and which of that person's rights it carries: never more than the person has."""

    sha256: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the key's text, in hexadecimal digits.")
    ]
    email: Annotated[Address, Field(description="The person, or the robot, that the key acts for.")]
    role: Annotated[Role, Field(description="Owner, Editor or Viewer.")]
    slices: Annotated[
        tuple[Name, ...],
        Field(max_length=100, description="Slices that it is valid for; empty: the whole project."),
    ] = ()
    not_after: Annotated[Instant | None, Field(description="When it expires; absent: never.")] = None
    revoked: Annotated[bool, Field(description="It is refused, but stays on record.")] = False
    description: Annotated[str, Field(max_length=500, description="Informational.")] = ""


class ApiKey(Document):
    """`keys/<name>.yaml`."""

    kind: Annotated[Literal["ApiKey"], Field(description="Kind of document.")] = "ApiKey"
    spec: Annotated[ApiKeySpec, Field(description="The key's person, and what it is valid for.")]


def digest_of(key: str) -> str:
    """The digest of a key's text in its manifest; a key is random enough for a plain hash."""
    return hashlib.sha256(key.encode()).hexdigest()
