"""A person's own signature on their commits, with the key that git is configured to use, SSH or GPG."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from reconciler.model.evidence import GIT
from reconciler.store.git.git_process import configuration
from reconciler.store.store_port import Sign
from reconciler.trust.personal_signatures import key_in, sign_as_person
from schemas.errors import UserError

_PATIENCE_S = 120.0  # time to type a passphrase, or to find and touch a token


def person_signs(folder: Path) -> Sign | None:
    """How git would sign a commit in that folder; None: no key is configured."""
    configured = configuration(folder)
    key = key_in(configured, folder)
    if key is not None:
        return lambda payload: sign_as_person(key, GIT, payload)
    if (configured.get("gpg.format") or "openpgp") != "openpgp":
        return None
    name = configured.get("user.signingkey", "")
    if not name and configured.get("commit.gpgsign") == "true":
        name = configured.get("user.email", "")
    program = configured.get("gpg.program") or "gpg"
    return (lambda payload: _gpg(program, name, payload)) if name else None


def must_sign(folder: Path) -> bool:
    """True if git is configured to always sign commits."""
    return configuration(folder).get("commit.gpgsign") == "true"


def _gpg(program: str, key: str, payload: bytes) -> str:
    found = shutil.which(program)
    if found is None:
        raise UserError(f"nothing was signed: {program} is not installed; install GnuPG", "NotSigned")
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments; the keyring and the agent are the person's own
            [found, "--detach-sign", "--armor", "--local-user", key],
            input=payload,
            capture_output=True,
            timeout=_PATIENCE_S,
            env=os.environ,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        text = f"nothing was signed: {key} took longer than {_PATIENCE_S:g} s"
        raise UserError(text, "NotSigned") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[-200:]
        text = f"nothing was signed: {said or 'gpg gave no reason'}; check the key and the agent"
        raise UserError(text, "NotSigned")
    return done.stdout.decode("ascii")
