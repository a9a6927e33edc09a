"""The address of a remote, and the credentials in it. Pure.

A remote is a folder, `file://`, `http://`, `https://`, `ssh://` or ssh's short form `user@host:path`.
Credentials in a URL are removed at once: git gets them in its environment as a header, only while it talks to
the remote, and they appear in no argument list, file or message. Credentials in files:
`reconciler.store.git.open_remote`.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from schemas.errors import UserError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCP_LIKE = re.compile(r"[^/]+:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PROTOCOLS = ("file", "http", "https", "ssh")
# Nothing here may begin with a dash: ssh would take it for an option.
_USER = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_HOST = r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])"
_SSH_URL = re.compile(rf"ssh://(?:{_USER}@)?{_HOST}(?::[0-9]{{1,5}})?/[^@]+", re.IGNORECASE)
_SSH_SHORT = re.compile(rf"{_USER}@{_HOST}:(?![-:])[^@:]+")
# Greedy up to the last @ before a space or a quote: passwords may contain @ and /.
_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s'\"]*@")


@dataclass(frozen=True, slots=True)
class Address:
    """A remote without its credentials; git may only use `protocol` for it."""

    url: str
    protocol: str
    header: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    user: str = field(default="", repr=False)  # some forges take a token as the user name alone
    has_password: bool = False


def scrubbed(text: str, secrets: tuple[str, ...]) -> str:
    """The text without these secrets, and without the login of any URL in it."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return _CREDENTIALS.sub(r"\1***@", text)


def is_remote(text: str) -> bool:
    """True if the text is a remote rather than a folder: any URL, or ssh's short form."""
    return "://" in text or (_SSH_SHORT.fullmatch(text) is not None and not Path(text).exists())


def parse(remote: str) -> Address:
    """Parses a remote as typed; relative folders are relative to the current one."""
    scheme = _SCHEME.match(remote)
    if _CONTROL.search(remote) or not remote.strip():
        raise _unsupported("it is empty or has control characters")
    if scheme is None:
        return Address(remote, "ssh") if is_remote(remote) else _folder(remote)
    protocol = scheme.group(1).lower()
    if protocol not in _PROTOCOLS:
        raise _unsupported(f"{protocol!r} is not one of {', '.join(_PROTOCOLS)}")
    if protocol == "ssh":
        return _ssh(remote)
    return _web(remote, protocol) if protocol != "file" else Address(remote, "file")


def _folder(remote: str) -> Address:
    # `ext::` and similar run programs, and `host:path` is a mistyped ssh address: neither is ever a folder.
    if "::" in remote or (_SCP_LIKE.match(remote) and not Path(remote).exists()):
        raise _unsupported("it is neither a folder nor a URL; an ssh address looks like git@host:path")
    return Address(str(Path(remote).expanduser().resolve()), "file")


def _ssh(remote: str) -> Address:
    if not _SSH_URL.fullmatch(remote):
        raise _unsupported("an ssh URL looks like ssh://git@host/path, without a password (use a key file)")
    return Address(remote, "ssh")


def _web(remote: str, protocol: str) -> Address:
    parts = urlsplit(remote)
    login, at, host = parts.netloc.rpartition("@")
    if not host or parts.query or parts.fragment:
        raise _unsupported("it must have a host and no query")
    if not at and "@" in parts.path:
        # A slash in a password ends the host part: the rest would be taken for a path and shown.
        raise _unsupported("it has an @ in its path; write / as %2F and @ as %40 in a password")
    url = urlunsplit((protocol, host, parts.path, "", ""))
    if not at:
        return Address(url, protocol)
    user, _, password = (unquote(part) for part in login.partition(":"))
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    secrets = longest_first(login, login.partition(":")[2], password, token)
    return Address(url, protocol, f"Authorization: Basic {token}", secrets, user, bool(password))


def longest_first(*texts: str) -> tuple[str, ...]:
    """Secrets in the order of removal, so that no shorter one cuts a longer one in two."""
    # Very short secrets would remove parts of ordinary words and so reveal themselves.
    return tuple(sorted({text for text in texts if len(text) > 3}, key=lambda text: (-len(text), text)))


def _unsupported(why: str) -> UserError:
    return UserError(
        f"the remote cannot be used: {why}; give a folder, a file://, http(s):// or ssh:// URL, or git@host:path",
        "UnsupportedRemote",
    )
