"""Real keys for tests, made and used by the real `ssh-keygen` and `gpg`; and commits that the real git signs.

`ssh_key(folder)` makes one; `ssh_sign` is `ssh-keygen -Y sign`; `openpgp_key` makes a key in a gpg home of its own;
`signed_by` gives the options with which git signs, for `repos.git(repo, *signed_by(key), "commit", "-S", …)`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GPG = shutil.which("gpg")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C"}


@dataclass(frozen=True)
class Key:
    """An SSH key: the file of its private half, and its public half as `Voucher.key` has it."""

    private: Path
    public: str


def ssh_key(folder: Path, name: str = "key", kind: str = "ed25519", bits: int | None = None) -> Key:
    """A new key without a passphrase."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    size = [] if bits is None else ["-b", str(bits)]
    run(["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", f"{name}@test", "-f", str(file)])
    return Key(file, " ".join(file.with_name(f"{name}.pub").read_text().split()[:2]))


def ssh_sign(key: Key, namespace: str, message: bytes) -> str:
    """What `ssh-keygen -Y sign` says to a message."""
    return run(["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", str(key.private)], message).decode()


def signed_by(key: Key) -> tuple[str, ...]:
    """Options for git: sign with this SSH key."""
    return ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key.private}")


@dataclass(frozen=True)
class OpenPgpKey:
    """An OpenPGP key in a home of its own."""

    home: Path
    fingerprint: str

    def gpg(self, *args: str, given: bytes = b"") -> bytes:
        """Run gpg in the key's home."""
        quiet = ("--batch", "--no-tty", "--yes", "--passphrase", "", "--pinentry-mode", "loopback")
        return run(["gpg", "--homedir", str(self.home), *quiet, *args], given)

    def exported(self) -> bytes:
        """The public half, armoured."""
        return self.gpg("--armor", "--export", self.fingerprint)

    def sign(self, message: bytes, *options: str) -> str:
        """A detached signature, as git asks gpg for it."""
        return self.gpg("--local-user", self.fingerprint, *options, "-bsa", given=message).decode()

    def revoke(self) -> None:
        """Use the certificate of revocation that gpg makes with every key."""
        file = self.home / "openpgp-revocs.d" / f"{self.fingerprint}.rev"
        self.gpg("--import", given=file.read_bytes().replace(b":-----BEGIN", b"-----BEGIN"))


@contextlib.contextmanager
def openpgp_key(folder: Path, expires: str = "never", options: tuple[str, ...] = ()) -> Iterator[OpenPgpKey]:
    """A new key of Ada's; its agent is ended with the block. Sockets have short names: so should the folder."""
    folder.mkdir(mode=0o700, parents=True)
    key = OpenPgpKey(folder, "")
    try:
        who = "Ada <ada@example.com>"
        said = key.gpg(*options, "--status-fd", "1", "--quick-generate-key", who, "ed25519", "sign", expires)
        created = next(line for line in said.decode().splitlines() if "KEY_CREATED" in line)
        yield OpenPgpKey(folder, created.split(" ")[3])
    finally:
        run(["gpgconf", "--homedir", str(folder), "--kill", "all"])


def run(command: list[str], given: bytes = b"") -> bytes:
    """Run a program to its good end."""
    done = subprocess.run(command, input=given, capture_output=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
