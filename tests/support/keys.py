"""Real keys made by `ssh-keygen` and `gpg`, and what these programs sign with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GPG = shutil.which("gpg")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C"}


def run(command: Sequence[str], given: bytes = b"") -> bytes:
    """What a program prints; AssertionError with its complaint when it fails."""
    done = subprocess.run(command, input=given, capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@dataclass(frozen=True)
class Key:
    """An SSH key in a file; `public` is its type and base64."""

    private: Path
    public: str


def ssh_key(folder: Path, name: str = "key", kind: str = "ed25519", bits: int | None = None) -> Key:
    """A new key without a passphrase."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    size = [] if bits is None else ["-b", str(bits)]
    run(["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", name, "-f", str(file)])
    words = file.with_name(f"{name}.pub").read_text().split()
    return Key(file, f"{words[0]} {words[1]}")


def ssh_sign(key: Key, namespace: str, message: bytes) -> str:
    """The armoured signature that `ssh-keygen` makes."""
    return run(["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key.private)], message).decode()


@dataclass(frozen=True)
class OpenPgpKey:
    """An OpenPGP key in a home of its own."""

    home: Path
    fingerprint: str

    def gpg(self, *args: str, given: bytes = b"") -> bytes:
        """Run gpg in that home."""
        return run(["gpg", "--homedir", str(self.home), "--batch", "--no-tty", "--quiet", *args], given)

    def exported(self) -> bytes:
        """The public key, armoured."""
        return self.gpg("--armor", "--export", self.fingerprint)

    def sign(self, message: bytes) -> str:
        """The armoured detached signature of a message."""
        return self.gpg("--armor", "--detach-sign", "-u", self.fingerprint, given=message).decode()


@contextmanager
def openpgp_key(home: Path, who: str = "Ada <ada@example.com>") -> Iterator[OpenPgpKey]:
    """A new key without a passphrase; its agent is ended with it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = OpenPgpKey(home, "")
    try:
        key.gpg(
            "--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key", who, "ed25519", "sign"
        )
        listed = key.gpg("--with-colons", "--list-keys").decode().splitlines()
        yield OpenPgpKey(home, next(row.split(":")[9] for row in listed if row.startswith("fpr:")))
    finally:
        subprocess.run(
            ["gpgconf", "--homedir", str(home), "--kill", "all"],
            env=ENVIRONMENT,
            capture_output=True,
            check=False,
        )


def signed_by(key: Key) -> tuple[str, ...]:
    """Options with which git signs by that SSH key when it is asked to sign."""
    return ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key.private}")
