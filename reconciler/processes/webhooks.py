"""Whether the sender of a webhook knows a secret of ours. Pure.

GitHub and Gitea sign the body (HMAC-SHA256), GitLab sends the secret itself. A hook only wakes the loop,
which then looks for itself: the body is ignored, and a replayed hook is harmless.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from schemas.errors import UserError

SIGNATURES = {"X-Hub-Signature-256": "sha256=", "X-Gitea-Signature": ""}
"""Headers with a signature of the body, and the prefix of its 64 hexadecimal digits."""
TOKEN = "X-Gitlab-Token"  # noqa: S105 - the header's name
HEADERS = (*SIGNATURES, TOKEN)
MOST_SECRETS = 8
"""Secrets valid at a time; each hook is compared with all of them."""


def secrets_of(text: str) -> tuple[bytes, ...]:
    """One per line, so that a new one can be added before the old one is removed. UserError `HookSecretMissing`."""
    found = tuple(dict.fromkeys(line.strip().encode() for line in text.splitlines() if line.strip()))
    if not 0 < len(found) <= MOST_SECRETS:
        raise UserError(
            f"the file of webhook secrets contains {len(found)} secrets; "
            f"write 1 to {MOST_SECRETS}, one per line, and configure one of them in the forge",
            "HookSecretMissing",
        )
    return found


def refusal(headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes]) -> str | None:
    """Why this hook is refused: `SignatureMissing` or `SignatureWrong`; None: accepted.

    Only the `HEADERS` count, with that spelling. A wrong signature takes as long as a right one.
    """
    given = [(headers[name], prefix) for name, prefix in SIGNATURES.items() if name in headers]
    token = headers.get(TOKEN)
    if not given and token is None:
        return "SignatureMissing"
    right = False
    for secret in secrets:
        digest = hmac.new(secret, body, sha256).hexdigest()
        for signature, prefix in given:
            right |= _same(signature, (prefix + digest).encode())
        right |= token is not None and _same(token, secret)
    return None if right else "SignatureWrong"


def _same(given: str, wanted: bytes) -> bool:
    # Headers are bytes that http.server decodes as Latin-1.
    return hmac.compare_digest(given.encode("latin-1", errors="replace"), wanted)
