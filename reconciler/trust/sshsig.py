"""SSH signatures (OpenSSH's PROTOCOL.sshsig): parsed here; for ed25519 also checked and made in this process.

The input is untrusted: sizes are bounded, every length is checked, trailing bytes are refused, and nothing
here raises on hostile text. Other key types are parsed and written here, and checked by `ssh-keygen`; see
`reconciler.trust.signature_check`.

Held by tests/reconciler/trust/test_sshsig.py, against the real `ssh-keygen`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from schemas.errors import UserError

BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
ED25519 = "ssh-ed25519"
KEY_TYPES = frozenset(
    {
        ED25519, "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)  # fmt: skip
"""Supported key types. Certificates are not: their issuer would become an authority of its own."""

LONGEST = 16_384
"""Characters of a signature; the largest honest one, of an RSA key with 16,384 bits, has a third of that."""

_MAGIC = b"SSHSIG"
_VERSION = 1
_LINE = 70  # base64 characters per line, as ssh-keygen writes them
_HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}
_RSA_ALGORITHMS = frozenset({"rsa-sha2-256", "rsa-sha2-512"})  # SHA-1 is broken
_LEAST_RSA_BITS = 2048
_ED25519_KEY_BYTES = 32
_FINGERPRINT = re.compile(r"gpg:[0-9A-F]{40}")
_MOST_KEY_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Sshsig:
    """A parsed signature; only its form has been checked."""

    key: str  # the key that claims to have made it, as `canonical_key` gives it
    namespace: str
    hash_name: str
    algorithm: str
    signature: bytes  # in SSH's own format, with algorithm and type-specific fields

    def covers(self, message: bytes) -> bytes:
        """The bytes that were signed if the signature is of that message."""
        digest = _HASHES[self.hash_name](message).digest()
        return _MAGIC + _packed(self.namespace.encode(), b"", self.hash_name.encode(), digest)

    def armoured(self) -> str:
        """The signature as text, in the only form that `ssh-keygen` writes."""
        blob = _MAGIC + _VERSION.to_bytes(4, "big")
        blob += _packed(
            _blob(self.key), self.namespace.encode(), b"", self.hash_name.encode(), self.signature
        )
        text = base64.b64encode(blob).decode("ascii")
        lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
        return "\n".join([BEGIN, *lines, END, ""])


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """An ed25519 key that signs; its repr shows only the public key."""

    public: str
    _key: Ed25519PrivateKey = field(repr=False)

    def sign(self, namespace: str, message: bytes) -> str:
        """The armoured signature of a message, for one purpose."""
        unsigned = Sshsig(self.public, namespace, "sha512", ED25519, b"")
        signature = _packed(ED25519.encode(), self._key.sign(unsigned.covers(message)))
        return Sshsig(self.public, namespace, "sha512", ED25519, signature).armoured()


# -- reading signatures ----------------------------------------------------------------------------------------


def parse(armoured: str) -> Sshsig | None:
    """Parses a signature; None if it is not one."""
    if len(armoured) > LONGEST or not armoured.isascii():
        return None
    lines = armoured.rstrip("\n").split("\n")
    if len(lines) < 3 or lines[0] != BEGIN or lines[-1] != END:
        return None
    blob = _decoded("".join(lines[1:-1]))
    head = _MAGIC + _VERSION.to_bytes(4, "big")
    if blob is None or not blob.startswith(head):
        return None
    fields = _unpacked(blob[len(head) :], 5)
    return None if fields is None else _sshsig(*fields)


def _sshsig(key: bytes, namespace: bytes, reserved: bytes, hash_name: bytes, inner: bytes) -> Sshsig | None:
    known, algorithm = _key_of_blob(key), _first(inner)
    if known is None or algorithm is None or reserved:
        return None
    found = Sshsig(known, _word(namespace), _word(hash_name), _word(algorithm[0]), inner)
    kind = known.partition(" ")[0]
    fits = found.algorithm in _RSA_ALGORITHMS if kind == "ssh-rsa" else found.algorithm == kind
    return found if fits and found.namespace and found.hash_name in _HASHES else None


def is_ed25519_signature(signature: Sshsig, message: bytes) -> bool:
    """True if an ed25519 key made that signature of the message; False for other key types."""
    inner, key = _unpacked(signature.signature, 2), _unpacked(_blob(signature.key), 2)
    if signature.algorithm != ED25519 or inner is None or key is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key[1]).verify(inner[1], signature.covers(message))
    except (InvalidSignature, ValueError):
        return False
    return True


# -- keys ------------------------------------------------------------------------------------------------------


def canonical_key(line: str) -> str | None:
    """A public key as in `Voucher.key`: `type base64` of a .pub file's line, or `gpg:` and a fingerprint.

    None for unsupported keys: certificates, RSA below 2048 bits, a type that the bytes contradict.
    """
    if _FINGERPRINT.fullmatch(line):
        return line
    words = line.split()
    blob = _decoded(words[1]) if len(words) >= 2 and words[0] in KEY_TYPES else None
    key = None if blob is None else _key_of_blob(blob)
    return key if key is not None and key.startswith(words[0] + " ") else None


def _key_of_blob(blob: bytes) -> str | None:
    count = 0
    rest: bytes | None = blob
    fields: list[bytes] = []
    while rest and count < 5:  # no key type has more than four parts
        part = _first(rest)
        if part is None:
            return None
        fields.append(part[0])
        rest, count = part[1], count + 1
    kind = _word(fields[0]) if fields else ""
    if rest or kind not in KEY_TYPES or not _is_sound(kind, fields):
        return None
    return f"{kind} {base64.b64encode(blob).decode('ascii')}"


def _is_sound(kind: str, fields: list[bytes]) -> bool:
    if kind == ED25519:
        return len(fields) == 2 and len(fields[1]) == _ED25519_KEY_BYTES
    if kind == "ssh-rsa":
        return len(fields) == 3 and int.from_bytes(fields[2], "big").bit_length() >= _LEAST_RSA_BITS
    return len(fields) >= 3


def read_private_key(path: Path) -> PrivateKey:
    """The key in a file that `ssh-keygen -t ed25519` wrote. UserError `BadKey` says what is wrong."""
    try:
        about = path.stat()
        with path.open("rb") as opened:
            content = opened.read(_MOST_KEY_BYTES)
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror}; check its path and its permissions") from error
    # A Secret's file belongs to root, with the process's own group: then the group may read it.
    others = 0o077 if about.st_uid == os.getuid() else 0o007
    if stat.S_IMODE(about.st_mode) & others:
        raise _bad(path, "is readable by others; run `chmod 600` (for a Secret: `defaultMode: 0400`)")
    return PrivateKey(*_loaded(path, content))


def _loaded(path: Path, content: bytes) -> tuple[str, Ed25519PrivateKey]:
    try:
        key = load_ssh_private_key(content, None)
    except TypeError as error:
        raise _bad(
            path, "has a passphrase, which a process cannot enter; create a key without one"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _bad(
            path, "is not a private OpenSSH key; create one with `ssh-keygen -t ed25519 -N '' -f FILE`"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _bad(path, "is not an ed25519 key; create one with `ssh-keygen -t ed25519 -N '' -f FILE`")
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return public.decode("ascii"), key


def _bad(path: Path, why: str) -> UserError:
    return UserError(f"the key {path} {why}", "BadKey")


# -- bytes -----------------------------------------------------------------------------------------------------


def _blob(key: str) -> bytes:
    return base64.b64decode(key.split(" ")[1])


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _word(text: bytes) -> str:
    """Printable ASCII without spaces; empty for anything else."""
    word = text.decode("ascii", "replace")
    return word if word.isascii() and word.isprintable() and " " not in word else ""


def _packed(*fields: bytes) -> bytes:
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def _unpacked(data: bytes, count: int) -> list[bytes] | None:
    """Exactly this many fields and no trailing bytes."""
    fields = []
    for _ in range(count):
        part = _first(data)
        if part is None:
            return None
        fields.append(part[0])
        data = part[1]
    return fields if not data else None


def _first(data: bytes) -> tuple[bytes, bytes] | None:
    end = 4 + int.from_bytes(data[:4], "big")
    return (data[4:end], data[end:]) if 4 <= len(data) >= end else None
