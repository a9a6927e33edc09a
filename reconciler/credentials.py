"""Paths of a repository's credential files: a password or token for https, a key for ssh. Pure values.

A folder has the layout of a mounted Kubernetes Secret; single files can be given too. Each call of git reads
the files (`reconciler.store.git.open_remote`); their content is never kept.
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
"""File names in the folder: those of Kubernetes' own Secret types, so that such a Secret can be mounted as it is."""

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
    """Files with a remote's credentials; a file in `folder` counts unless another one is given."""

    folder: Path | None = None
    username: Path | None = None
    password: Path | None = None  # or a token
    ca: Path | None = None
    ssh_key: Path | None = None
    known_hosts: Path | None = None

    def file(self, name: str) -> Path | None:
        """The path of one of them; None if not given. The file need not exist."""
        own: Path | None = getattr(self, name)
        if own is not None or self.folder is None:
            return own
        there = self.folder / IN_FOLDER[name]
        return there if there.is_file() else None


def from_environment(environment: Mapping[str, str]) -> Credentials:
    return Credentials(**{name: _path(environment.get(variable)) for name, variable in VARIABLES.items()})


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser().absolute() if text else None
