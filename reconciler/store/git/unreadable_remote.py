"""Why a remote cannot be read, as a message that says what to do. Pure.

Only the message depends on git's output: the state of a branch is always read from its head. Git runs in the
C locale, so its texts are those below; others are passed on unchanged.
"""

from __future__ import annotations

from reconciler.store.git.open_remote import REASON
from schemas.errors import Fault

NOT_STARTED = 125  # coreutils' exit code for a command that could not be started; git never uses it

_LOGIN = "LoginRefused"
_HOST_KEY = "HostKeyRefused"
_CERTIFICATE = "CertificateRefused"
_PASSWORD = "the server refused the login; check the username and the password or token, its expiry and its permissions"  # noqa: S105 - a sentence

# The first match counts: for a changed host key ssh also prints the text for an unknown one.
_MEANINGS = (
    (
        "has changed and you have requested strict checking",
        _HOST_KEY,
        "the server's host key differs from known_hosts: either it was replaced, or the connection is being "
        "intercepted; ask the server's owner before you replace the line in known_hosts",
    ),
    (
        "Host key verification failed",
        _HOST_KEY,
        "the server's host key is not the one in known_hosts; compare the output of `ssh-keyscan` with what the "
        "server's owner published, then write that into known_hosts",
    ),
    (
        "Permission denied (",
        _LOGIN,
        "the server refused the key; register its public key there, with permission to read and push",
    ),
    ("Authentication failed for", _LOGIN, _PASSWORD),
    (
        "could not read Username for",
        _LOGIN,
        "the server requires a login, and none was given or it was refused; give a file with the password or token, "
        "and check its expiry",
    ),
    ("could not read Password for", _LOGIN, _PASSWORD),
    ("requested URL returned error: 401", _LOGIN, _PASSWORD),
    (
        "requested URL returned error: 403",
        _LOGIN,
        "the server accepted the login but denied access; check the permissions of the password or token",
    ),
    (
        "certificate",
        _CERTIFICATE,
        "the server's certificate is not trusted; give the certificate of its authority as a CA file",
    ),
)


def unreachable(code: int, error: str) -> Fault:
    """The fault for a failed call of git when the remote could not be read."""
    if code == NOT_STARTED:
        return Fault(f"the remote could not be contacted: {error}", REASON)
    for words, reason, sentence in _MEANINGS:
        if words in error:
            return Fault(f"the remote could not be read: {sentence} ({error})", reason)
    return Fault(f"the remote could not be read: {error}", "RemoteUnreachable")
