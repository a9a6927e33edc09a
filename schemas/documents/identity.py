"""The id of a request: `gpr-` and twelve hexadecimal digits, eight and four."""

from __future__ import annotations

import hashlib

NONCE = "egs.dev/nonce"
"""Label of a GPR's file: a random text from which the author of the file knows the request's id at once."""


def uid_of(key: str, seed: str) -> str:
    """The id of `slice/name`: the same for the same seed, different from other requests."""
    digest = hashlib.sha256(f"{key}\n{seed}".encode()).hexdigest()
    return f"gpr-{digest[:8]}-{digest[8:12]}"
