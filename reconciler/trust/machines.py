"""Whether a machine's statement is authentic: controllers, agents and appliers sign, with ed25519 keys only.

So everything is checked in this process: an untrusted commit never makes us start a program. A controller's
key must be listed in the trust folder as `controller`; an agent's or applier's key in the folder
(`agent:east/h100-1`, `agent:east/*`, `applier:east`) or in the cluster's manifest. A revoked key never
counts, and neither does one outside the folder's dates. The time stated by the signed object counts: a key
that may have been stolen must be revoked.

Machines without any listed key need not sign, at level none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.evidence import CONTROLLER, GIT, HEALTH, Level
from reconciler.settings import Trust
from reconciler.store.believed_commit import Believes
from reconciler.store.store_port import Commit, Sign
from reconciler.trust import sshsig
from reconciler.trust.keyring import Keyring, TrustFolder
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError

log = logging.getLogger(__name__)


class KeptKeys:
    """The keys of a trust folder; while it is unreadable, the last good ones, with a log line.

    Strict ends must not wait for a fixed file.
    """

    def __init__(self, read: Callable[[], Keyring]) -> None:
        self._read, self._last, self._told = read, read(), ""

    def __call__(self) -> Keyring:
        try:
            self._last, self._told = self._read(), ""
        except Fault as fault:
            if str(fault) != self._told:
                log.warning("keys not read message=%s; using the previous keys, fix the folder", fault)
            self._told = str(fault)
        return self._last


@dataclass(frozen=True, slots=True)
class Signed:
    """An agent's report as read from its branch."""

    cluster: str  # these two according to the branch
    agent: str
    report: bytes
    signature: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Machines:
    """Which machines to believe. `keys` gives the trust folder's current keys."""

    keys: Callable[[], Keyring]
    level: Level = "none"

    def controllers(self) -> Believes | None:
        """Recognises commits of controllers; None: no key is listed for them, so all are believed."""
        if self.level == "none" and not self.keys().names(CONTROLLER):
            return None
        return self._is_controllers

    def _is_controllers(self, commit: Commit) -> bool:
        key = signer(GIT, commit.payload, commit.signature)
        return key is not None and self.keys().allows(key, CONTROLLER, GIT, commit.at)

    def applier(self, cluster: str, spec: ClusterSpec) -> Believes | None:
        """Recognises commits of that cluster's applier; None: it has no key."""
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
        """True if reports of that cluster's agents must be signed: all of them, as soon as one agent has a key."""
        return self.level != "none" or bool(spec.agent_keys) or self.keys().names_any(f"agent:{cluster}/")

    def believes(self, signed: Signed, spec: ClusterSpec) -> bool:
        """True if the report is by the agent that owns the branch."""
        key = signer(HEALTH, signed.report, signed.signature)
        if key is None or self.keys().bars(key, signed.at):
            return False
        listed = (own.key for own in spec.agent_keys if own.agent in (signed.agent, "*"))
        principal = f"agent:{signed.cluster}/{signed.agent}"
        return _lists(listed, key) or self.keys().allows(key, principal, HEALTH, signed.at)

    def check_own(self, key: sshsig.PrivateKey | None, now: datetime) -> None:
        """UserError if a controller with this key would not believe its own commits."""
        if self.controllers() is None:
            return
        if key is None:
            raise UserError(
                "commits of controllers must be signed here, and this controller has no key; give --key FILE, and list "
                "its public key as `controller` in allowed_signers",
                "KeyMissing",
            )
        if not self.keys().allows(key.public, CONTROLLER, GIT, now):
            raise UserError(
                "the key of this controller does not count: allowed_signers does not list it as `controller`, or "
                f"revoked_keys lists it; add the line `controller {key.public}`, or start with another --key",
                "KeyNotTrusted",
            )


def machines_of(trust: Trust) -> Machines:
    """Built from these settings. UserError `BadTrustFolder`."""
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
    """How a store signs its commits with that key."""
    if key is None:
        return None
    return lambda payload: key.sign(GIT, payload)


def _lists(lines: Iterable[str], key: str) -> bool:
    return any(sshsig.canonical_key(line) == key for line in lines)
