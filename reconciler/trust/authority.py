"""Who a person is, and which rights the tree before a change gives them. Pure.

Rights follow list entries, never what an entry claims: a key or account listed by a slice gives rights in
that slice only, whatever address is listed with it, because the slice's owners write that entry. Addresses
carry rights from one place to another only if the operator's own file (`allowed_signers`) or a service named
there vouches for them; and within a slice, no one is identified by another slice's entries. If that file
exists, a signature counts as an admin's only if the file lists the key for the admin's address.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.evidence import GIT, Actor, Voucher
from reconciler.trust.keyring import Keyring
from reconciler.trust.sshsig import canonical_key
from schemas.documents.base import Document, Person
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.documents.workspace import WorkspaceRequest
from schemas.rules.view import PROJECT, slice_path

SERVICE = "service:"
"""Prefix of service principals: what a service signs counts for the person it names, but only for requests."""
_ABOUT_ALL = "/all"
"""Suffix of service principals that may act for people in every matter."""
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Roll:
    """People by key and account; the values are their addresses."""

    emails: frozenset[str] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)
    accounts: Mapping[int, str] = field(default_factory=dict)

    def entry(self, voucher: Voucher) -> str | None:
        """The address listed with that key or account."""
        return self.keys.get(voucher.key) if voucher.key else self.accounts.get(voucher.account)


def roll_of(people: Iterable[Person]) -> Roll:
    """If a key or account is listed twice, the first entry counts."""
    emails, keys, accounts = set[str](), dict[str, str](), dict[int, str]()
    for person in people:
        emails.add(person.email)
        for line in person.keys:
            if (key := canonical_key(line)) is not None:
                keys.setdefault(key, person.email)
        if person.forge is not None:
            accounts.setdefault(person.forge.id, person.email)
    return Roll(frozenset(emails), keys, accounts)


@dataclass(frozen=True, slots=True)
class Team:
    """The people of one slice."""

    members: Roll
    owners: Roll


NO_TEAM = Team(Roll(), Roll())

Rolls = Callable[[Team], tuple[Roll, ...]]


@dataclass(frozen=True, slots=True)
class Authority:
    """The people of one tree, and the operator's keys. A query costs O(slices)."""

    admins: Roll = field(default_factory=Roll)
    handles: Mapping[str, str] = field(default_factory=dict)  # of admins, by address
    teams: Mapping[str, Team] = field(default_factory=dict)  # by slice
    keyring: Keyring = field(default_factory=Keyring)

    def actor(self, voucher: Voucher, now: datetime, namespace: str = GIT, slice_: str = "") -> Actor | None:
        """The person identified by this evidence; None: not listed anywhere.

        `slice_` is the slice concerned: a person listed only in slices is identified by that slice's entry.
        """
        strong = self._strong(voucher, now, namespace)
        if strong is None:
            return None
        owns = frozenset(self._slices(voucher, strong, lambda team: (team.owners,)))
        member_of = frozenset(self._slices(voucher, strong, lambda team: (team.members, team.owners)))
        email = self._called(voucher, strong, slice_) or self._claimed(voucher, member_of)
        if email is None:
            return None
        is_admin = not strong.isdisjoint(self.admins.emails)
        if voucher.is_narrow:
            return Actor(email, member_of=frozenset(self.teams) if is_admin else member_of, is_narrowed=True)
        handle = self.handles.get(email, "") if is_admin else ""
        # A slice's entry must not give the rights that the address has elsewhere.
        own_in = None if strong else self._calling(voucher, email, member_of)
        return Actor(email, is_admin, owns, member_of, handle, own_in=own_in, admins=self.admins.emails)

    def _calling(self, voucher: Voucher, email: str, slices: Collection[str]) -> frozenset[str]:
        """Those of these slices that list the evidence with this address."""
        return frozenset(name for name in slices if self._claimed(voucher, (name,)) == email)

    def address(self, voucher: Voucher, now: datetime, slice_: str) -> str | None:
        """The address that this evidence has within one slice; None: unlisted, or listed by other slices only."""
        strong = self._strong(voucher, now, GIT)
        return None if strong is None else self._called(voucher, strong, slice_)

    def _strong(self, voucher: Voucher, now: datetime, namespace: str) -> set[str] | None:
        """Addresses whose rights it carries everywhere; None: it identifies no one, whatever lists it."""
        emails = self._shown(voucher, namespace, now)
        if emails is None:
            return None
        listed = self._admin_entry(voucher)
        return emails if listed is None else {*emails, listed}

    def _called(self, voucher: Voucher, strong: set[str], slice_: str) -> str | None:
        """The address given by an admin's entry or the operator, else by this slice."""
        email = min(strong & self.admins.emails, default=None) or min(strong, default=None)
        return email or self._claimed(voucher, (slice_,))

    def _shown(self, voucher: Voucher, namespace: str, now: datetime) -> set[str] | None:
        """Addresses confirmed for it by a trusted source; None: it identifies no one, whatever lists it."""
        if voucher.email:
            return {voucher.email}
        if not voucher.key:
            return set() if voucher.account else None
        if self.keyring.bars(voucher.key, now):
            return None
        principals = self.keyring.principals(voucher.key, namespace, now)
        if any(is_machine(principal) for principal in principals):
            return None
        return {principal for principal in principals if _PATTERN.isdisjoint(principal)}

    def _admin_entry(self, voucher: Voucher) -> str | None:
        """The admin that project.yaml lists it for, if such an entry is sufficient for admin rights."""
        if voucher.key and self.keyring.is_given:
            return None
        return self.admins.entry(voucher)

    def _slices(self, voucher: Voucher, strong: set[str], rolls: Rolls) -> Iterator[str]:
        for name, team in self.teams.items():
            if any(roll.entry(voucher) is not None or strong & roll.emails for roll in rolls(team)):
                yield name

    def _claimed(self, voucher: Voucher, slices: Collection[str]) -> str | None:
        """The address in a slice's entry, for a person that no other source identifies."""
        for name in sorted(slices):
            team = self.teams.get(name, NO_TEAM)
            if (email := team.owners.entry(voucher) or team.members.entry(voucher)) is not None:
                return email
        return None


def is_narrow(principals: Iterable[str]) -> bool:
    """True if a service with these principals may only act on requests, like the door for a cluster's objects.

    Of a person's rights only these count then: create, change and delete requests, and withdraw approvals. A
    stolen key of such a service changes no quota, no people and no policy.
    """
    return not any(each.startswith(SERVICE) and each.endswith(_ABOUT_ALL) for each in principals)


def is_machine(principal: str) -> bool:
    """True for a controller, a service, an agent or an applier; people are addresses."""
    return "@" not in principal


def authority_of(documents: Mapping[str, Document], keyring: Keyring) -> Authority:
    """The people of these documents, by path; only project, slices and workspace requests matter."""
    teams = {slice_.metadata.name: team_of(slice_) for slice_ in slices_in(documents)}
    return with_project(documents.get(PROJECT), teams, keyring)


def with_project(project: Document | None, teams: Mapping[str, Team], keyring: Keyring) -> Authority:
    people = project.spec.admins if isinstance(project, Project) else ()
    return Authority(roll_of(people), {person.email: person.handle for person in people}, teams, keyring)


def team_of(slice_: Slice) -> Team:
    return Team(roll_of(slice_.spec.members), roll_of(slice_.spec.owners))


def slices_in(documents: Mapping[str, Document]) -> Iterator[Slice]:
    """Every slice, including those made by workspace requests."""
    for document in documents.values():
        if isinstance(document, Slice):
            yield document
        elif isinstance(document, WorkspaceRequest) and slice_path(document.metadata.name) not in documents:
            yield document.as_slice()
