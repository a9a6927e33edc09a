"""Who somebody is, and what the tree before a change makes of them. Pure.

Rights go by entries, never by what an entry claims: a key or account that a slice lists gives rights in that slice
alone, whatever address stands beside it, because the slice's owners write it. Addresses carry rights from one place
to another only where the operator's own file (`allowed_signers`) or a service that it names vouches for them; and in
matters of a slice nobody is called as another slice's people call them. Where
there is such a file, a signature is an admin's only by a key that it names for the admin's address.

Held by tests/reconciler/trust/test_authority.py.
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
"""Principals of services begin so: what they sign counts for the person whom they name, about requests."""
_ABOUT_ALL = "/all"
"""Principals of services that speak for people about everything end so."""
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Roll:
    """Some people by all that shows them; the values are their addresses."""

    emails: frozenset[str] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)
    accounts: Mapping[int, str] = field(default_factory=dict)

    def entry(self, voucher: Voucher) -> str | None:
        """The address that stands beside that key or account here."""
        return self.keys.get(voucher.key) if voucher.key else self.accounts.get(voucher.account)


def roll_of(people: Iterable[Person]) -> Roll:
    """Of a key or account that stands there twice the first entry counts."""
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
    """The people of one tree, and the keys outside of it. Asking costs the number of slices."""

    admins: Roll = field(default_factory=Roll)
    handles: Mapping[str, str] = field(default_factory=dict)  # of admins, by address
    teams: Mapping[str, Team] = field(default_factory=dict)  # by slice
    keyring: Keyring = field(default_factory=Keyring)

    def actor(self, voucher: Voucher, now: datetime, namespace: str = GIT, slice_: str = "") -> Actor | None:
        """Whom this evidence shows; None: nobody who is listed anywhere.

        `slice_` is what it is about: somebody whom slices alone name is called as that one names them.
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
        # What a slice calls somebody must not open what the address opens elsewhere.
        own_in = None if strong else self._calling(voucher, email, member_of)
        return Actor(email, is_admin, owns, member_of, handle, own_in=own_in, admins=self.admins.emails)

    def _calling(self, voucher: Voucher, email: str, slices: Collection[str]) -> frozenset[str]:
        """Of these slices those that list the evidence beside this address."""
        return frozenset(name for name in slices if self._claimed(voucher, (name,)) == email)

    def address(self, voucher: Voucher, now: datetime, slice_: str) -> str | None:
        """What this evidence calls somebody in matters of one slice; None: only others name them, or nobody does."""
        strong = self._strong(voucher, now, GIT)
        return None if strong is None else self._called(voucher, strong, slice_)

    def _strong(self, voucher: Voucher, now: datetime, namespace: str) -> set[str] | None:
        """Addresses whose rights it carries everywhere; None: it shows nobody, whoever lists it."""
        emails = self._shown(voucher, namespace, now)
        if emails is None:
            return None
        listed = self._admin_entry(voucher)
        return emails if listed is None else {*emails, listed}

    def _called(self, voucher: Voucher, strong: set[str], slice_: str) -> str | None:
        """The address that an admin's entry or the operator gives, or else this slice."""
        email = min(strong & self.admins.emails, default=None) or min(strong, default=None)
        return email or self._claimed(voucher, (slice_,))

    def _shown(self, voucher: Voucher, namespace: str, now: datetime) -> set[str] | None:
        """Addresses that somebody beyond doubt gives for it; None: it shows nobody, whoever lists it."""
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
        """The admin beside whom project.yaml lists it, where what it lists makes admins."""
        if voucher.key and self.keyring.is_given:
            return None
        return self.admins.entry(voucher)

    def _slices(self, voucher: Voucher, strong: set[str], rolls: Rolls) -> Iterator[str]:
        for name, team in self.teams.items():
            if any(roll.entry(voucher) is not None or strong & roll.emails for roll in rolls(team)):
                yield name

    def _claimed(self, voucher: Voucher, slices: Collection[str]) -> str | None:
        """What a slice's people call somebody whom nobody else names."""
        for name in sorted(slices):
            team = self.teams.get(name, NO_TEAM)
            if (email := team.owners.entry(voucher) or team.members.entry(voucher)) is not None:
                return email
        return None


def is_narrow(principals: Iterable[str]) -> bool:
    """Whether a service with these principals speaks about requests alone, as a door does that reads a cluster's.

    Then of what a person may do only this counts: to file, change and delete requests, and to give approvals back.
    A stolen key of such a service changes no quota, no people and no policy.
    """
    return not any(each.startswith(SERVICE) and each.endswith(_ABOUT_ALL) for each in principals)


def is_machine(principal: str) -> bool:
    """Whether it is a controller, a service, an agent or an applier; people are addresses."""
    return "@" not in principal


def authority_of(documents: Mapping[str, Document], keyring: Keyring) -> Authority:
    """The people of these documents, by path; only project, slices and workspace requests matter."""
    teams = {slice_.metadata.name: team_of(slice_) for slice_ in slices_in(documents)}
    return with_project(documents.get(PROJECT), teams, keyring)


def with_project(project: Document | None, teams: Mapping[str, Team], keyring: Keyring) -> Authority:
    """The admins of a project, and these teams."""
    people = project.spec.admins if isinstance(project, Project) else ()
    return Authority(roll_of(people), {person.email: person.handle for person in people}, teams, keyring)


def team_of(slice_: Slice) -> Team:
    """The people of a slice."""
    return Team(roll_of(slice_.spec.members), roll_of(slice_.spec.owners))


def slices_in(documents: Mapping[str, Document]) -> Iterator[Slice]:
    """Every slice, those too that workspace requests make."""
    for document in documents.values():
        if isinstance(document, Slice):
            yield document
        elif isinstance(document, WorkspaceRequest) and slice_path(document.metadata.name) not in documents:
            yield document.as_slice()
