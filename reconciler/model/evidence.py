"""The words of trust, as values: evidence, who it shows, and what is refused.

A `Voucher` is evidence that somebody stands behind some content; whom it shows is for an `Authority` to say, which
knows the people of the base tree and the keys that the operator keeps outside of the repository.
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
"""What has to be shown of a change: nothing (demonstrations), a signature, the forge's word, or each of both."""

GIT = "git"
"""Namespace of the signatures of commits, as git itself has it."""
HEALTH = "egs-health"
"""Namespace of the signatures of agents' reports."""
CLUSTER_REPORT = "egs-cluster"
"""Namespace of the signatures of appliers' reports."""

CONTROLLER = "controller"
"""Principal of the keys with which controllers sign the status branch."""


@dataclass(frozen=True, slots=True)
class Voucher:
    """Evidence that somebody stands behind content: exactly one of `key`, `account` and `email` is given.

    `email` is what a service whose signature was checked says in its On-Behalf-Of trailer.
    """

    how: Literal["signature", "forge"]
    key: str = ""  # as `sshsig` gives it: `ssh-ed25519 AAAA…`, or `gpg:` and the fingerprint
    account: int = 0
    email: str = ""
    is_narrow: bool = False  # by a service that speaks about requests alone


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody whose identity was shown, and what the base tree makes of them."""

    email: str
    is_admin: bool = False
    owns: frozenset[str] = frozenset()  # slices
    member_of: frozenset[str] = frozenset()  # slices, owned ones too
    handle: str = ""  # of an admin: the name under which their approvals are filed
    is_narrowed: bool = False
    """Shown by a service that speaks about requests alone: the rights above are those of a member already."""
    own_in: frozenset[str] | None = None
    """Slices for which alone they make keys and profiles of their address: those that alone call them by it, or all
    that the key they came with lets through; None: for every slice."""
    admins: frozenset[str] = field(default=frozenset(), compare=False)
    """Addresses of all admins, whose keys nobody makes but themselves."""


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
    """Of the requests' files that this process saw change, by path."""
    alarm: str = ""  # why main is not followed any further; empty: it is
    is_frozen: bool = False  # a person has to act before main is followed again
    has_more: bool = False  # main goes on and is judged at the next call

    @property
    def held(self) -> tuple[HeldChange, ...]:
        """Changes that do not count."""
        return () if self.record is None else self.record.held


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A decision about a request whose author was shown; whether it covers the request is still to be asked."""

    request: str  # slice/name
    verdict: Literal["approve", "reject"]
    by: str  # handle of the admin
    email: str
    digest: str  # of the spec it is about
    how: Literal["file", "signed", "forge", "merge"]
    id: str  # names the statement, for ever
    rule: Literal["request", "extension"] = "request"
    limit: ApprovalLimit | None = None  # None: what is asked for at this digest
    not_after: datetime | None = None
    reason: str = ""


class Verifier(Protocol):
    """Checks signatures. No network; may run `ssh-keygen` or `gpg` with a time limit for what is not ed25519."""

    def key_of(self, namespace: str, message: bytes, signature: str) -> str | None:
        """The key whose valid signature of `message` this is, as `Voucher.key` has it; None for anything else.

        Says nothing about whose key that is, or whether it counts.
        """
