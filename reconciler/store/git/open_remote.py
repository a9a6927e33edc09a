"""Opens a remote with the current content of its credential files.

A file is read each time git talks to the remote, so that a rotated Secret counts from the next call on; its
content is never kept:

  * a password goes from its file through a credential helper's pipe to git, for the remote's own host only; it
    is in no argument list and no environment. Over http it is refused;
  * a key is read by ssh itself, isolated: no agent, no configuration, no other key, no prompt, and no server
    whose key is not in `known_hosts`.

Held by tests/reconciler/store/test_credentials.py against real servers.
"""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reconciler.credentials import IN_FOLDER, VARIABLES, Credentials
from reconciler.store.git.remote_address import Address, longest_first
from schemas.errors import UserError

REASON = "BadCredentials"
DEFAULT_USER = "git"  # forges that take tokens accept any user name with them

_MOST_BYTES = 1 << 20  # per file; the largest, a CA bundle, has a quarter of that
_HELPER = (
    '!f() { test "$1" = get || return 0; '
    'printf "username=%s\\n" "$EGS_GIT_USER"; printf "password=%s\\n" "$(cat "$EGS_GIT_PASSWORD_FILE")"; }; f'
)
"""Gives git the file's current content; `printf` is a shell builtin, so no process gets it as an argument."""

_SSH_OPTIONS = (
    "BatchMode=yes",  # a prompt would wait for a person who is not there
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    "StrictHostKeyChecking=yes",
    "GlobalKnownHostsFile=/dev/null",
    "UpdateHostKeys=no",
    "PasswordAuthentication=no",
    "ConnectTimeout=30",
    "ServerAliveInterval=15",
)


@dataclass(frozen=True, slots=True)
class Opening:
    """How one call of git authenticates: arguments before the command, variables, and secrets to remove from texts."""

    arguments: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Opening(…)"


def opening(address: Address, credentials: Credentials) -> Opening:
    """Reads the files now. UserError `BadCredentials` says which is missing or wrong, never its content."""
    if address.protocol == "file":
        return Opening()
    if credentials.folder is not None and not credentials.folder.is_dir():
        raise _bad(f"{credentials.folder} is not a folder; give the folder that contains the credentials")
    return _ssh(credentials) if address.protocol == "ssh" else _web(address, credentials)


# -- https -----------------------------------------------------------------------------------------------------


def _web(address: Address, credentials: Credentials) -> Opening:
    arguments, variables, secrets = [*_trust(credentials)], [*_header(address)], address.secrets
    password = credentials.file("password")
    if password is not None:
        if address.has_password:
            raise _bad(f"the URL has a password and {password} another; remove the one in the URL")
        if address.protocol != "https":
            raise _bad("a password file is used with https:// only: over http:// it could be intercepted")
        user, secret = _user(address, credentials), _one_line(password)
        if not user.isprintable():
            raise _bad("the user name in the URL has control characters; correct it")
        parts = urlsplit(address.url)
        # For this host only: other hosts that git is sent to get no answer.
        arguments += ["-c", f"credential.{parts.scheme}://{parts.netloc}.helper={_HELPER}"]
        variables = [("EGS_GIT_USER", user), ("EGS_GIT_PASSWORD_FILE", str(password))]
        token = base64.b64encode(f"{user}:{secret}".encode()).decode()
        secrets = longest_first(*secrets, secret, token)
    if password is not None or address.header is not None:
        # A redirect would send the login wherever the server points.
        arguments += ["-c", "http.followRedirects=false"]
    return Opening(tuple(arguments), tuple(variables), secrets)


def _trust(credentials: Credentials) -> tuple[str, ...]:
    ca = credentials.file("ca")
    if ca is None:
        return ()
    if "BEGIN CERTIFICATE" not in _text(ca):
        raise _bad(f"{ca} contains no certificate; give the authority's certificate as PEM")
    return ("-c", f"http.sslCAInfo={ca}")


def _header(address: Address) -> tuple[tuple[str, str], ...]:
    if address.header is None:
        return ()
    return (
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.extraHeader"),
        ("GIT_CONFIG_VALUE_0", address.header),
    )


def _user(address: Address, credentials: Credentials) -> str:
    named = credentials.file("username")
    return _one_line(named) if named is not None else address.user or DEFAULT_USER


def _one_line(file: Path) -> str:
    """The content without its final line end; a second line would be a command to git."""
    text = _text(file).rstrip("\n")
    if not text or not text.isprintable():
        raise _bad(f"{file} must contain one line of plain text, without a carriage return")
    return text


# -- ssh -------------------------------------------------------------------------------------------------------


def _ssh(credentials: Credentials) -> Opening:
    key, hosts = credentials.file("ssh_key"), credentials.file("known_hosts")
    if key is None:
        raise _bad(
            f"ssh needs a private key; put it into the folder of credentials as {IN_FOLDER['ssh_key']}, "
            f"or set its path in {VARIABLES['ssh_key']}"
        )
    if hosts is None:
        raise _bad(
            "ssh needs the server's host key, or any server could impersonate it; put the output of "
            f"`ssh-keyscan HOST`, after comparing it with what the server's owner published, into the credentials "
            f"folder as {IN_FOLDER['known_hosts']}, or set its path in {VARIABLES['known_hosts']}"
        )
    _check_key(key)
    _text(hosts)
    program = shutil.which("ssh")
    if program is None:
        raise _bad("ssh is not installed; install OpenSSH's client")
    files = (f'IdentityFile="{_for_ssh(key)}"', f'UserKnownHostsFile="{_for_ssh(hosts)}"')
    words = [program, "-F", "/dev/null"]
    for option in (*_SSH_OPTIONS, *files):
        words += ["-o", option]
    command = (("GIT_SSH_COMMAND", shlex.join(words)), ("GIT_SSH_VARIANT", "ssh"))
    return Opening(variables=command)


def _check_key(key: Path) -> None:
    if "PRIVATE KEY" not in _text(key):
        raise _bad(f"{key} contains no private key; give the file without the suffix .pub")
    about = key.stat()
    # ssh itself refuses its user's key if others may read it; its message is hard to find.
    if about.st_uid == os.getuid() and stat.S_IMODE(about.st_mode) & 0o077:
        raise _bad(f"{key} is readable by others; run `chmod 600` (for a Secret: `defaultMode: 0400`)")


def _for_ssh(file: Path) -> str:
    """A path for an ssh option, where % begins a token."""
    if '"' in str(file) or "\\" in str(file):
        raise _bad(f"{file} has a quote or a backslash in its name, which ssh cannot read; rename it")
    return str(file).replace("%", "%%")


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES)
    except OSError as error:
        raise _bad(f"{file} cannot be read: {error.strerror}; check its path and its permissions") from error
    return content.decode("utf-8", "replace")


def _bad(sentence: str) -> UserError:
    return UserError(sentence, REASON)
