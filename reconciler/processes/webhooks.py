"""Whether a webhook comes from somebody who knows a secret of ours. Pure.

GitHub and Gitea sign the body (HMAC-SHA256), GitLab sends the secret itself. A hook only wakes the loop, which then
looks for itself: what the body says counts for nothing, and a hook that is played again does no harm.

Held by tests/reconciler/processes/test_webhooks.py.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from schemas.errors import UserError

SIGNATURES = {"X-Hub-Signature-256": "sha256=", "X-Gitea-Signature": ""}
"""Headers with a signature of the body, and what stands before its 64 hexadecimal digits."""
TOKEN = "X-Gitlab-Token"  # noqa: S105 - the header's name
HEADERS = (*SIGNATURES, TOKEN)
MOST_SECRETS = 8
"""Secrets that count at a time; each hook is compared with all of them."""


def secrets_of(text: str) -> tuple[bytes, ...]:
    """One secret a line, so that a new one can come before the old one goes; UserError `HookSecretMissing`."""
    found = tuple(dict.fromkeys(line.strip().encode() for line in text.splitlines() if line.strip()))
    if not 0 < len(found) <= MOST_SECRETS:
        raise UserError(
            f"the file of webhook secrets holds {len(found)} secrets; "
            f"write 1 to {MOST_SECRETS}, one a line, and give one of them to the forge",
            "HookSecretMissing",
        )
    return found


def refusal(headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes]) -> str | None:
    """Why this hook is not believed: `SignatureMissing` or `SignatureWrong`; None when it is.

    Of `headers` only `HEADERS` count, spelled as there. A wrong signature takes as long as a right one.
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
    # Headers are bytes that http.server reads as Latin-1.
    return hmac.compare_digest(given.encode("latin-1", errors="replace"), wanted)
