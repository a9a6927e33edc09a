"""Where the files lie that open a repository: a password or token for https, a key for ssh. Pure values.

A folder is as Kubernetes mounts a Secret; single files can be named beside it. What is in them is read by
`reconciler.store.git.open_remote`, whenever git talks to the remote, and never kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

IN_FOLDER = {
    "username": "username",
    "password": "password",
    "ca": "ca.crt",
    "ssh_key": "ssh-privatekey",
    "known_hosts": "known_hosts",
}
"""Names in the folder: those of Kubernetes' own types of Secrets, so that one is mounted as it is."""

VARIABLES = {
    "folder": "EGS_GIT_CREDENTIALS",
    "username": "EGS_GIT_USERNAME_FILE",
    "password": "EGS_GIT_PASSWORD_FILE",
    "ca": "EGS_GIT_CA_FILE",
    "ssh_key": "EGS_GIT_SSH_KEY_FILE",
    "known_hosts": "EGS_GIT_KNOWN_HOSTS_FILE",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files that open a remote; a file of `folder` counts when none is named of its own."""

    folder: Path | None = None
    username: Path | None = None
    password: Path | None = None  # a token is one too
    ca: Path | None = None
    ssh_key: Path | None = None
    known_hosts: Path | None = None

    def file(self, name: str) -> Path | None:
        """Where one of them is; None when nobody named one. A file that was named need not be there."""
        own: Path | None = getattr(self, name)
        if own is not None or self.folder is None:
            return own
        there = self.folder / IN_FOLDER[name]
        return there if there.is_file() else None


def from_environment(environment: Mapping[str, str]) -> Credentials:
    """What the variables EGS_GIT_… name."""
    return Credentials(**{name: _path(environment.get(variable)) for name, variable in VARIABLES.items()})


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser().absolute() if text else None
