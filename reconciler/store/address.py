"""Where a remote is, and what opens it. Pure.

A remote is a folder, `file://`, `http://` or `https://`. Credentials in a URL are taken out of it at once:
they travel to git in its environment as a header, and appear in no argument list, file or message.
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
_PROTOCOLS = ("file", "http", "https")
# Greedy up to the last @ before a blank or a quote: passwords may hold @ and /.
_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s'\"]*@")


@dataclass(frozen=True, slots=True)
class Address:
    """A remote without its credentials; `protocol` is the only transport that git may use for it."""

    url: str
    protocol: str
    header: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def scrub(self, text: str) -> str:
        """The text without credentials, ours or anybody's."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return _CREDENTIALS.sub(r"\1***@", text)


def parse(remote: str) -> Address:
    """Read a remote as a person wrote it; relative folders are taken from where we stand."""
    scheme = _SCHEME.match(remote)
    if _CONTROL.search(remote) or not remote.strip():
        raise _unsupported("it is empty or holds control characters")
    if scheme is None:
        return _folder(remote)
    protocol = scheme.group(1).lower()
    if protocol not in _PROTOCOLS:
        raise _unsupported(f"{protocol!r} is none of {', '.join(_PROTOCOLS)}")
    return _web(remote, protocol) if protocol != "file" else Address(remote, "file")


def _folder(remote: str) -> Address:
    # `ext::` and friends run programs, and `host:path` means ssh: neither is ever a folder here.
    if "::" in remote or (_SCP_LIKE.match(remote) and not Path(remote).exists()):
        raise _unsupported("it is neither a folder nor a URL")
    return Address(str(Path(remote).expanduser().resolve()), "file")


def _web(remote: str, protocol: str) -> Address:
    parts = urlsplit(remote)
    login, at, host = parts.netloc.rpartition("@")
    if not host or parts.query or parts.fragment:
        raise _unsupported("it needs a host and no query")
    if not at and "@" in parts.path:
        # A slash in a password ends the host part: the rest would pass for a path and be shown.
        raise _unsupported("it has an @ in its path; write / as %2F and @ as %40 in a password")
    url = urlunsplit((protocol, host, parts.path, "", ""))
    if not at:
        return Address(url, protocol)
    user, _, password = login.partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return Address(url, protocol, f"Authorization: Basic {token}", _longest_first(login, password, token))


def _longest_first(login: str, password: str, token: str) -> tuple[str, ...]:
    known = {login, token, password, unquote(password)}
    # Very short secrets would blank out ordinary words and so show where they stand.
    return tuple(sorted((text for text in known if len(text) > 3), key=lambda text: (-len(text), text)))


def _unsupported(why: str) -> UserError:
    return UserError(
        f"the remote cannot be used: {why}; give a folder, or a file://, http:// or https:// URL",
        "UnsupportedRemote",
    )
