"""Why a remote cannot be read, in words that say what to do. Pure.

Only the sentence comes from git's words: what happened to a branch is always read from its tip. Git runs in the
C locale, so its words are those below; whatever is not among them is told as git said it.
"""

from __future__ import annotations

from reconciler.store.git.open_remote import REASON
from schemas.errors import Fault

NOT_STARTED = 125  # what coreutils say when a command could not be started; git itself never exits so

_LOGIN = "LoginRefused"
_HOST_KEY = "HostKeyRefused"
_CERTIFICATE = "CertificateRefused"
_PASSWORD = (
    "the server refused the login; check the username and the password or token, its expiry and its rights"  # noqa: S105 - a sentence
)

# The first that is found counts: a changed host key is told by ssh in the words for an unknown one too.
_MEANINGS = (
    (
        "has changed and you have requested strict checking",
        _HOST_KEY,
        "the server's host key is another one than in known_hosts: either it was changed, or somebody stands in "
        "between; ask the server's owner before you replace the line in known_hosts",
    ),
    (
        "Host key verification failed",
        _HOST_KEY,
        "the server's host key is not the one in known_hosts; compare what `ssh-keyscan` says with what the "
        "server's owner published, then write that into known_hosts",
    ),
    (
        "Permission denied (",
        _LOGIN,
        "the server refused the key; register its public half there, with the right to read and push",
    ),
    ("Authentication failed for", _LOGIN, _PASSWORD),
    (
        "could not read Username for",
        _LOGIN,
        "the server asks for a login, and none was given or it was refused; give a file with the password or token, "
        "and check its expiry",
    ),
    ("could not read Password for", _LOGIN, _PASSWORD),
    ("requested URL returned error: 401", _LOGIN, _PASSWORD),
    (
        "requested URL returned error: 403",
        _LOGIN,
        "the server knows the login and does not allow this to it; check the rights of the password or token",
    ),
    (
        "certificate",
        _CERTIFICATE,
        "the server's certificate is not trusted; give the certificate of its authority as a CA file",
    ),
)


def unreachable(code: int, error: str) -> Fault:
    """The fault for a call of git that ended with that code, when the remote could not be read."""
    if code == NOT_STARTED:
        return Fault(f"the remote could not be asked: {error}", REASON)
    for words, reason, sentence in _MEANINGS:
        if words in error:
            return Fault(f"the remote could not be read: {sentence} ({error})", reason)
    return Fault(f"the remote could not be read: {error}", "RemoteUnreachable")
