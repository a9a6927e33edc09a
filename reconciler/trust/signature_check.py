"""Checks signatures: ed25519 in this process, other SSH keys with `ssh-keygen`, OpenPGP with `gpg`.

Whose key it is, and whether it counts, is decided elsewhere. Nothing here raises on hostile input; trouble of
the machine is a Fault, so that a good signature is never reported as bad.

Held by tests/reconciler/trust/test_signature_check.py, against the real programs.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from pathlib import Path

from reconciler.model.evidence import GIT
from reconciler.trust import signature_programs
from reconciler.trust.keyring import gpg_files, stamp
from reconciler.trust.openpgp import OpenPgp, is_openpgp
from reconciler.trust.sshsig import ED25519, Sshsig, is_ed25519_signature, parse
from schemas.errors import Fault, UserError

log = logging.getLogger(__name__)


class SystemVerifier:
    """`Verifier` on this machine. `folder` is the trust folder with the OpenPGP keys; None: SSH only.

    Thread-safe. UserError `BadTrustFolder` at construction.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stamp = stamp(folder)
        self._openpgp = _opened(folder)
        self._ssh_keygen = signature_programs.found("ssh-keygen")
        self._warned = False

    def key_of(self, namespace: str, message: bytes, signature: str) -> str | None:
        """An OpenPGP signature has no namespace, and counts for commits only."""
        if is_openpgp(signature):
            return self._by_openpgp(message, signature) if namespace == GIT else None
        found = parse(signature)
        if found is None or found.namespace != namespace:
            return None
        good = (
            is_ed25519_signature(found, message)
            if found.algorithm == ED25519
            else self._by_ssh_keygen(found, message)
        )
        return found.key if good else None

    def _by_openpgp(self, message: bytes, signature: str) -> str | None:
        with self._lock:
            now = stamp(self._folder)
            if now != self._stamp:
                try:
                    self._openpgp = _opened(self._folder)
                except UserError as error:
                    raise Fault(str(error), error.reason) from error
                self._stamp = now
            return None if self._openpgp is None else self._openpgp.fingerprint(message, signature)

    def _by_ssh_keygen(self, signature: Sshsig, message: bytes) -> bool:
        if self._ssh_keygen is None:
            if not self._warned:
                self._warned = True
                log.warning(
                    "signature not checked algorithm=%s; ssh-keygen is missing, install OpenSSH's client",
                    signature.algorithm,
                )
            return False
        with tempfile.TemporaryDirectory(prefix="egs-") as home:
            file = Path(home) / "signature"
            file.write_text(signature.armoured(), encoding="ascii")
            command = [self._ssh_keygen, "-Y", "check-novalidate", "-n", signature.namespace, "-s", str(file)]
            code, _ = signature_programs.answer(command, Path(home), message)
        return code == 0


def _opened(folder: Path | None) -> OpenPgp | None:
    return OpenPgp(folder) if folder is not None and gpg_files(folder) else None
