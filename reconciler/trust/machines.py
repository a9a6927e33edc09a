"""Whether a machine's word is its own: controllers, agents and appliers sign, with ed25519 keys alone.

So everything is checked in this process: no stranger's commit makes us start a program. A key counts for controllers
when the trust folder names it as `controller`; for an agent or an applier when the folder does (`agent:east/h100-1`,
`agent:east/*`, `applier:east`), or the cluster's manifest; never when it is revoked, nor outside the dates that the
folder gives it. The instant counts that the signed thing states: what may be in wrong hands is to be revoked.

Nothing is asked of machines that nobody gave a key to, at level none.

Held by tests/reconciler/trust/test_machines.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from reconciler.model.evidence import CONTROLLER, GIT, HEALTH, Level
from reconciler.settings import Trust
from reconciler.store.believed_commit import Believes
from reconciler.store.store_port import Commit, Sign
from reconciler.trust import sshsig
from reconciler.trust.keyring import TrustFolder
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError

log = logging.getLogger(__name__)


class Keys(Protocol):
    """The keys that are kept outside of the repository; `reconciler.trust.keyring.Keyring` is one."""

    def allows(self, key: str, principal: str, namespace: str, now: datetime) -> bool:
        """Whether it signs for that principal, for that purpose at that instant; never when it is revoked."""

    def names(self, principal: str) -> bool:
        """Whether any key is named for that principal."""

    def names_any(self, prefix: str) -> bool:
        """Whether any key is named for a principal that begins so."""

    def bars(self, key: str, now: datetime) -> bool:
        """Whether it does not count at that instant, wherever it is listed: revoked, or outside its dates."""


class KeptKeys:
    """The keys of a trust folder; while it cannot be read, those of its last good reading, and a line in the log.

    Strict ends must not wait for somebody who mends a file.
    """

    def __init__(self, read: Callable[[], Keys]) -> None:
        self._read, self._last, self._told = read, read(), ""

    def __call__(self) -> Keys:
        """As of now."""
        try:
            self._last, self._told = self._read(), ""
        except Fault as fault:
            if str(fault) != self._told:
                log.warning("keys not read message=%s; those of before count, mend the folder", fault)
            self._told = str(fault)
        return self._last


@dataclass(frozen=True, slots=True)
class Signed:
    """An agent's report as it lies on its branch."""

    cluster: str  # these two as the branch has them
    agent: str
    report: bytes
    signature: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Machines:
    """Whose words count. `keys` gives what the trust folder says now."""

    keys: Callable[[], Keys]
    level: Level = "none"

    def controllers(self) -> Believes | None:
        """Tells the commits of controllers; None: nobody gave them a key, and nothing is asked of them."""
        if self.level == "none" and not self.keys().names(CONTROLLER):
            return None
        return self._is_controllers

    def _is_controllers(self, commit: Commit) -> bool:
        key = signer(GIT, commit.payload, commit.signature)
        return key is not None and self.keys().allows(key, CONTROLLER, GIT, commit.at)

    def applier(self, cluster: str, spec: ClusterSpec) -> Believes | None:
        """Tells the commits of that cluster's applier; None: it has no key."""
        principal = f"applier:{cluster}"
        if self.level == "none" and not spec.applier_keys and not self.keys().names(principal):
            return None

        def is_appliers(commit: Commit) -> bool:
            key = signer(GIT, commit.payload, commit.signature)
            if key is None or self.keys().bars(key, commit.at):
                return False
            return _lists(spec.applier_keys, key) or self.keys().allows(key, principal, GIT, commit.at)

        return is_appliers

    def asks(self, cluster: str, spec: ClusterSpec) -> bool:
        """Whether reports of that cluster's agents have to be signed: of all of them as soon as one has a key."""
        return self.level != "none" or bool(spec.agent_keys) or self.keys().names_any(f"agent:{cluster}/")

    def believes(self, signed: Signed, spec: ClusterSpec) -> bool:
        """Whether the report is by the agent whose branch it lies on."""
        key = signer(HEALTH, signed.report, signed.signature)
        if key is None or self.keys().bars(key, signed.at):
            return False
        listed = (own.key for own in spec.agent_keys if own.agent in (signed.agent, "*"))
        principal = f"agent:{signed.cluster}/{signed.agent}"
        return _lists(listed, key) or self.keys().allows(key, principal, HEALTH, signed.at)

    def check_own(self, key: sshsig.PrivateKey | None, now: datetime) -> None:
        """UserError when a controller that starts with this key would not be believed by itself."""
        if self.controllers() is None:
            return
        if key is None:
            raise UserError(
                "commits of controllers have to be signed here, and this one has no key; give --key FILE, and name "
                "its public half as `controller` in allowed_signers",
                "KeyMissing",
            )
        if not self.keys().allows(key.public, CONTROLLER, GIT, now):
            raise UserError(
                "the key of this controller does not count: allowed_signers does not name it as `controller`, or "
                f"revoked_keys has it; add the line `controller {key.public}`, or start with another --key",
                "KeyNotTrusted",
            )


def machines_of(trust: Trust) -> Machines:
    """As these settings say. UserError `BadTrustFolder`."""
    return Machines(KeptKeys(TrustFolder(trust.folder).keyring), trust.level)


def own_key(trust: Trust) -> sshsig.PrivateKey | None:
    """The key with which this process signs, read now. UserError `BadKey`."""
    return None if trust.key is None else sshsig.read_private_key(trust.key)


def signer(namespace: str, message: bytes, signature: str) -> str | None:
    """The ed25519 key whose valid signature of the message this is."""
    found = sshsig.parse(signature)
    if found is None or found.namespace != namespace or not sshsig.is_ed25519_signature(found, message):
        return None
    return found.key


def signing(key: sshsig.PrivateKey | None) -> Sign | None:
    """How a store signs the commits that it writes with that key."""
    if key is None:
        return None
    return lambda payload: key.sign(GIT, payload)


def _lists(lines: Iterable[str], key: str) -> bool:
    return any(sshsig.canonical_key(line) == key for line in lines)
