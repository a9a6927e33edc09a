"""ed25519 keys of people and machines for tests: the same name is the same key, in every process."""

from __future__ import annotations

import hashlib
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from reconciler.model.evidence import Level
from reconciler.trust.keyring import Keyring, parse_revoked, parse_signers
from reconciler.trust.machines import Machines
from reconciler.trust.sshsig import PrivateKey


@cache
def key(name: str) -> PrivateKey:
    """The key of that name."""
    private = _private(name)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    return PrivateKey(public, private)


def private_text(name: str) -> bytes:
    """The file that `ssh-keygen -t ed25519` would have written for that key."""
    return _private(name).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _private(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def line(principal: str, name: str = "", options: str = "") -> str:
    """A line of allowed_signers; the key is the one called as the principal, unless another is named."""
    return " ".join(word for word in (principal, options, key(name or principal).public) if word)


def keyring(*lines: str, revoked: tuple[str, ...] = ()) -> Keyring:
    """The trust folder with these lines, and these names' keys revoked."""
    text = "\n".join(key(name).public for name in revoked)
    return Keyring(parse_signers("\n".join(lines)), parse_revoked(text), is_given=True)


def machines(*lines: str, revoked: tuple[str, ...] = (), level: Level = "signature") -> Machines:
    """Whose word counts with that folder."""
    found = keyring(*lines, revoked=revoked)
    return Machines(lambda: found, level)
