"""Open a remote with what its credentials' files say now.

A file is read when git talks to the remote, each time anew, so that a rotated Secret counts from the next call on;
what is in it is never kept:

* a password goes from its file through a credential helper's pipe to git, for the remote's own host alone; it stands
  in no argument list and in no environment. Over http it is refused;
* a key is read by ssh itself, in a closed world: no agent, no configuration, no other key, no question to anybody,
  and no server whose key is not in `known_hosts`.

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
DEFAULT_USER = "git"  # forges that take tokens take any name beside them

_MOST_BYTES = 1 << 20  # of any of the files; the largest, a bundle of authorities, has a quarter of that
_HELPER = (
    '!f() { test "$1" = get || return 0; '
    'printf "username=%s\\n" "$EGS_GIT_USER"; printf "password=%s\\n" "$(cat "$EGS_GIT_PASSWORD_FILE")"; }; f'
)
"""Answers git with what the file says at that moment; `printf` is a word of the shell, so no process has arguments."""

_SSH_OPTIONS = (
    "BatchMode=yes",  # a passphrase or a question would wait for a person who is not there
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
    """How one call of git gets in: arguments before the command, variables, and what no text may hold."""

    arguments: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Opening(…)"


def opening(address: Address, credentials: Credentials) -> Opening:
    """Read the files now. UserError `BadCredentials` says which is missing or wrong, never what is in it."""
    if address.protocol == "file":
        return Opening()
    if credentials.folder is not None and not credentials.folder.is_dir():
        raise _bad(f"{credentials.folder} is no folder; name the folder that holds the credentials")
    return _ssh(credentials) if address.protocol == "ssh" else _web(address, credentials)


# -- https -----------------------------------------------------------------------------------------------------


def _web(address: Address, credentials: Credentials) -> Opening:
    arguments, variables, secrets = [*_trust(credentials)], [*_header(address)], address.secrets
    password = credentials.file("password")
    if password is not None:
        if address.has_password:
            raise _bad(f"the URL holds a password and {password} another; take the one in the URL out")
        if address.protocol != "https":
            raise _bad("a password file opens https:// only: over http:// everybody on the way could read it")
        user, secret = _user(address, credentials), _one_line(password)
        if not user.isprintable():
            raise _bad("the name in the URL holds control characters; write it anew")
        parts = urlsplit(address.url)
        # For this host alone: whatever else git is led to gets no answer.
        arguments += ["-c", f"credential.{parts.scheme}://{parts.netloc}.helper={_HELPER}"]
        variables = [("EGS_GIT_USER", user), ("EGS_GIT_PASSWORD_FILE", str(password))]
        token = base64.b64encode(f"{user}:{secret}".encode()).decode()
        secrets = longest_first(*secrets, secret, token)
    if password is not None or address.header is not None:
        # A redirect would carry the login to wherever the server points.
        arguments += ["-c", "http.followRedirects=false"]
    return Opening(tuple(arguments), tuple(variables), secrets)


def _trust(credentials: Credentials) -> tuple[str, ...]:
    ca = credentials.file("ca")
    if ca is None:
        return ()
    if "BEGIN CERTIFICATE" not in _text(ca):
        raise _bad(f"{ca} holds no certificate; give the authority's certificate as PEM")
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
    """The content without its last line end; a second line would be an order to git."""
    text = _text(file).rstrip("\n")
    if not text or not text.isprintable():
        raise _bad(f"{file} must hold one line of plain text; write it anew, without a carriage return")
    return text


# -- ssh -------------------------------------------------------------------------------------------------------


def _ssh(credentials: Credentials) -> Opening:
    key, hosts = credentials.file("ssh_key"), credentials.file("known_hosts")
    if key is None:
        raise _bad(
            f"ssh needs a private key; put it into the folder of credentials as {IN_FOLDER['ssh_key']}, "
            f"or name its file in {VARIABLES['ssh_key']}"
        )
    if hosts is None:
        raise _bad(
            "ssh needs the server's host key, or anybody could pass for the server; put the output of "
            f"`ssh-keyscan HOST`, once compared with what the server's owner published, into the credentials "
            f"folder as {IN_FOLDER['known_hosts']}, or name its file in {VARIABLES['known_hosts']}"
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
        raise _bad(
            f"{key} holds no private key; give the file that `ssh-keygen` wrote, not the one ending in .pub"
        )
    about = key.stat()
    # ssh itself refuses its own user's key when others may read it; its words about that are hard to find.
    if about.st_uid == os.getuid() and stat.S_IMODE(about.st_mode) & 0o077:
        raise _bad(f"{key} may be read by others; `chmod 600` it (of a Secret: `defaultMode: 0400`)")


def _for_ssh(file: Path) -> str:
    """A path as ssh reads one in an option: % begins a token."""
    if '"' in str(file) or "\\" in str(file):
        raise _bad(f"{file} has a quote or a backslash in its name, which ssh cannot read; rename it")
    return str(file).replace("%", "%%")


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES)
    except OSError as error:
        raise _bad(f"{file} cannot be read: {error.strerror}; check its path and its rights") from error
    return content.decode("utf-8", "replace")


def _bad(sentence: str) -> UserError:
    return UserError(sentence, REASON)
