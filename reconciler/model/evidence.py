"""The values of trust: evidence, people, and refusals.

A `Voucher` is evidence of who made or approved some content; an `Authority`, which knows the people of the
base tree and the operator's keys, says whom it identifies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from schemas.documents.approval import ApprovalLimit
from schemas.status.gpr_status import Provenance
from schemas.status.judgements import HeldChange, TrustRecord

Level = Literal["none", "signature", "forge", "both"]
"""The evidence that a change needs: none (demonstrations), a signature, the forge's record, or both."""

GIT = "git"
"""Signature namespace of commits, as in git."""
HEALTH = "egs-health"
"""Signature namespace of agents' reports."""
CLUSTER_REPORT = "egs-cluster"
"""Signature namespace of appliers' reports."""

CONTROLLER = "controller"
"""Principal of the keys with which controllers sign the status branch."""


@dataclass(frozen=True, slots=True)
class Voucher:
    """Evidence of who made or approved content: exactly one of `key`, `account` and `email` is set.

    `email` is from the On-Behalf-Of trailer of a service whose signature was verified.
    """

    how: Literal["signature", "forge"]
    key: str = ""  # as given by `sshsig`: `ssh-ed25519 AAAA…`, or `gpg:` and the fingerprint
    account: int = 0
    email: str = ""
    is_narrow: bool = False  # from a service limited to requests


@dataclass(frozen=True, slots=True)
class Actor:
    """An identified person, with their rights in the base tree."""

    email: str
    is_admin: bool = False
    owns: frozenset[str] = frozenset()  # slices
    member_of: frozenset[str] = frozenset()  # slices, including owned ones
    handle: str = ""  # for an admin: the name of their approval files
    is_narrowed: bool = False
    """Identified by a service limited to requests: the rights above are already reduced to a member's."""
    own_in: frozenset[str] | None = None
    """Slices for which they may make keys and profiles for their address: those that alone list it, or all
    that their own key allows; None: every slice.
    """
    admins: frozenset[str] = field(default=frozenset(), compare=False)
    """Addresses of all admins; only they make their own keys."""


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a change of a file does not count: a stable reason, and a sentence with what to do."""

    path: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """How far main was judged: everything up to `commit` counts, except what `record` holds."""

    commit: str
    record: TrustRecord | None = None  # None: nothing is verified
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    """For the requests' files that this process saw change, by path."""
    alarm: str = ""  # why main is not followed further; empty: it is
    is_frozen: bool = False  # a person has to act before main is followed again
    has_more: bool = False  # the next call judges further commits

    @property
    def held(self) -> tuple[HeldChange, ...]:
        """Changes that do not count."""
        return () if self.record is None else self.record.held


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A decision on a request by an identified author; whether it covers the request is decided elsewhere."""

    request: str  # slice/name
    verdict: Literal["approve", "reject"]
    by: str  # handle of the admin
    email: str
    digest: str  # of the spec it approves
    how: Literal["file", "signed", "forge", "merge"]
    id: str  # permanent identifier of the decision
    rule: Literal["request", "extension"] = "request"
    limit: ApprovalLimit | None = None  # None: what is requested with this digest
    not_after: datetime | None = None
    reason: str = ""


class Verifier(Protocol):
    """Checks signatures. No network; may run `ssh-keygen` or `gpg` with a time limit for types other than ed25519."""

    def key_of(self, namespace: str, message: bytes, signature: str) -> str | None:
        """The key with this valid signature of `message`, as in `Voucher.key`; None for anything else.

        Does not say whose key it is, or whether it counts.
        """
