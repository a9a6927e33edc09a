"""Common parts of all documents: frozen, strict, unknown fields refused, camelCase in files."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from schemas.reading.units import Name

API_VERSION = "egs.dev/v1alpha1"


class Editable(BaseModel):
    """A model of which copies are made with other values in some fields."""

    def edited(self, **changes: Any) -> Self:
        """A copy with these values, not validated. mypy checks names and types: see tests/support/typed_edits.py.

        As `model_copy`, in a third of its time: a flood of requests makes a hundred thousand copies.
        """
        other = object.__new__(type(self))
        for name, value in (
            ("__dict__", self.__dict__ | changes),
            ("__pydantic_fields_set__", self.__pydantic_fields_set__ | changes.keys()),
            ("__pydantic_extra__", None),
            ("__pydantic_private__", None),
        ):
            object.__setattr__(other, name, value)
        return other


class Model(Editable):
    """Base of all documents and their parts; strict, so that `"2"` or `true` is never a number."""

    model_config = ConfigDict(
        defer_build=True,  # of some seventy kinds a process uses a few
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        field_title_generator=lambda name, _: to_camel(name),
    )


class Metadata(Model):
    """A document's name; it equals the name of its file or folder."""

    name: Name = Field(description="Equals the name of the file; for a slice, of its folder.")
    labels: dict[str, str] = Field(
        default_factory=dict,
        max_length=32,
        description="Labels of your own. Some have a meaning: `egs.dev/nonce` is the seed of a request's id; "
        "`egs.dev/origin`, `egs.dev/generation` and `egs.dev/author` name the cluster object that a file was made "
        "from, and its author.",
    )


class Document(Model):
    """The fields common to all documents."""

    api_version: Literal["egs.dev/v1alpha1"] = Field(
        "egs.dev/v1alpha1", description="Version of this document format."
    )
    # Every kind narrows it; declared here for its place in the order of fields.
    kind: str = Field(description="Kind of document.")
    metadata: Metadata = Field(description="Its name, and labels.")


PUBLIC_KEY = (
    r"^((ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|"
    r"sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{40,4000}={0,2}( [ -~]{0,200})?|gpg:[0-9A-F]{40})$"
)
"""A line of `ssh-keygen`'s .pub file, or the fingerprint of an OpenPGP key in the controller's keyring."""

PublicKey = Annotated[str, Field(pattern=PUBLIC_KEY)]


class ForgeAccount(Model):
    """An account on the forge. The number identifies it: names can be given up and reused."""

    login: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Name of the account.")
    id: int = Field(ge=1, le=2**53, description="Its number, from the forge's API.")


Address = Annotated[
    str,
    # ASCII only: a look-alike letter of another alphabet would name another person than the reviewer reads.
    Field(pattern=r"^[!-;=?A-~]{1,64}@[!-;=?A-~]{1,189}$", examples=["ada@example.com"]),
]
"""The mail address by which commits name a person."""


class Person(Model):
    """A person with rights here."""

    email: Address = Field(description="Address by which commits name this person, in ASCII.")
    name: Name | None = Field(
        None,
        description="Short name used for approval files; absent: the part of the address before the @, "
        "in lower case, with '-' for other characters.",
    )
    forge: ForgeAccount | None = Field(
        None, description="Account by which pull requests and reviews name this person."
    )
    keys: tuple[PublicKey, ...] = Field(
        (),
        max_length=20,
        description="Keys this person signs with: lines of .pub files, or `gpg:` and a fingerprint of 40 digits.",
    )

    @property
    def handle(self) -> str:
        """The name under which this person's approvals are filed."""
        if self.name is not None:
            return self.name
        local = self.email.partition("@")[0].lower()
        return "".join(c if c.isascii() and c.isalnum() else "-" for c in local).strip("-")[:63]
