"""Signatures by people: with any kind of key, in an agent or on a token.

So `ssh-keygen` signs, and asks for a passphrase or a touch as usual. Processes sign in memory, with ed25519:
see `reconciler.trust.sshsig`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from reconciler.store.git.git_process import configuration
from reconciler.trust.sshsig import canonical_key, parse
from schemas.errors import UserError

PersonKey = Path | str
"""A key file, private or the .pub of a key in an agent; or the public key itself, for agents only."""

_PATIENCE_S = 120.0  # time to type a passphrase, or to find and touch a token


def sign_as_person(key: PersonKey, namespace: str, message: bytes) -> str:
    """The person's signature. Runs in the person's environment, with their agent and terminal. UserError
    `NotSigned`.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise _not_signed("ssh-keygen is not installed; install OpenSSH's client")
    with tempfile.TemporaryDirectory(prefix="egs-") as folder:
        file, public = Path(folder) / "message", Path(folder) / "key.pub"
        file.write_bytes(message)
        if isinstance(key, str):
            public.write_text(f"{key}\n", encoding="ascii")
        by = public if isinstance(key, str) else key.absolute()
        _run([program, "-Y", "sign", "-n", namespace, "-f", str(by), str(file)], key)
        signature = file.with_name("message.sig").read_text(encoding="ascii")
    if parse(signature) is None:
        raise _not_signed(f"{key} has an unsupported type; use an ed25519 key, not a certificate")
    return signature


def _run(command: list[str], key: PersonKey) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments and an absolute path
            command,
            env=os.environ,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _not_signed(f"{key} did not sign within {_PATIENCE_S:g} s; try again") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:]
        raise _not_signed(
            f"{key} cannot sign: {said or 'ssh-keygen gave no reason'}; check the file and the agent"
        )


def configured_key(folder: Path) -> PersonKey | None:
    """The SSH key that Git in that folder is configured to sign with; None: none, or not an SSH key."""
    return key_in(configuration(folder), folder)


def key_in(configured: Mapping[str, str], folder: Path) -> PersonKey | None:
    """The same, of a configuration that was read."""
    if configured.get("gpg.format") != "ssh":
        return None
    named = configured.get("user.signingkey", "")
    public = canonical_key(named.removeprefix("key::"))
    if public is not None:
        return public
    return folder.absolute() / Path(named).expanduser() if named else None


def _not_signed(why: str) -> UserError:
    return UserError(f"nothing was signed: {why}", "NotSigned")
