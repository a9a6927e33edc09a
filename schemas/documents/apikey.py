"""ApiKey: a secret that opens the HTTP API for one person; the repository knows its hash alone."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Address, Document, Model
from schemas.reading.units import Instant, Name

Role = Literal["Owner", "Editor", "Viewer"]
"""Owner: whatever the person may; Editor: file, change and end requests; Viewer: read. Always within the scope."""


class ApiKeySpec(Model):
    """Whose key it is, and what of that person's rights it carries: never more than the person has."""

    sha256: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the key's text, in hexadecimal digits.")
    ]
    email: Annotated[Address, Field(description="The person, or the robot, in whose name it acts.")]
    role: Annotated[Role, Field(description="Owner, Editor or Viewer.")]
    slices: Annotated[
        tuple[Name, ...],
        Field(max_length=100, description="Slices it is good for; empty: the whole project."),
    ] = ()
    not_after: Annotated[Instant | None, Field(description="It opens nothing any more from then on.")] = None
    revoked: Annotated[bool, Field(description="It opens nothing any more, and stays on record.")] = False
    description: Annotated[str, Field(max_length=500, description="For people.")] = ""


class ApiKey(Document):
    """`keys/<name>.yaml`."""

    kind: Annotated[Literal["ApiKey"], Field(description="Kind of document.")] = "ApiKey"
    spec: Annotated[ApiKeySpec, Field(description="Whose key it is, and what it is good for.")]


def digest_of(key: str) -> str:
    """What the manifest of a key has of its text; a key is random enough for a plain hash."""
    return hashlib.sha256(key.encode()).hexdigest()
