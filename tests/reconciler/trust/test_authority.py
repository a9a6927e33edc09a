"""Who evidence shows, by the tree before a change and the keys outside of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.evidence import Actor, Voucher
from reconciler.trust.authority import Authority, authority_of, is_narrow
from reconciler.trust.keyring import Keyring
from tests.support.landing import person
from tests.support.machinekeys import key, keyring, line
from tests.support.world import START, parsed, project, slice_


def authority(ring: Keyring | None = None, *, admins: Any = None, **slices: dict[str, Any]) -> Authority:
    files = {"project.yaml": project(admins=admins or [person("ada", account=1)])}
    for name, spec in slices.items():
        files[f"slices/{name}/slice.yaml"] = slice_(name, **spec)
    return authority_of({path: parsed(path, text) for path, text in files.items()}, ring or Keyring())


def by(name: str) -> Voucher:
    return Voucher("signature", key=key(name).public)


BO = {"members": [person("bo", account=2)]}
EVE = {"members": [person("eve")]}
OLGA = {"members": [person("bo")], "owners": [person("olga")]}


@pytest.mark.parametrize(
    ("known", "voucher", "want"),
    [
        pytest.param(
            authority(), by("ada"), Actor("ada@example.com", True, handle="ada"), id="an admin's key"
        ),
        pytest.param(
            authority(),
            Voucher("forge", account=1),
            Actor("ada@example.com", True, handle="ada"),
            id="an admin's account",
        ),
        pytest.param(authority(), by("eve"), None, id="a key that nobody lists"),
        pytest.param(authority(), Voucher("forge", account=9), None, id="an account that nobody lists"),
        pytest.param(authority(), Voucher("forge"), None, id="no evidence at all"),
        pytest.param(
            authority(a=BO),
            by("bo"),
            Actor("bo@example.com", member_of=frozenset({"a"}), own_in=frozenset({"a"})),
            id="a member's key",
        ),
        pytest.param(
            authority(a=BO, b=BO),
            by("bo"),
            Actor("bo@example.com", member_of=frozenset({"a", "b"}), own_in=frozenset({"a", "b"})),
            id="of two slices",
        ),
        pytest.param(
            authority(a=OLGA),
            by("olga"),
            Actor(
                "olga@example.com", owns=frozenset({"a"}), member_of=frozenset({"a"}), own_in=frozenset({"a"})
            ),
            id="an owner is a member",
        ),
        pytest.param(
            authority(a={"members": [{"email": "ada@example.com", "keys": person("eve")["keys"]}]}),
            by("eve"),
            Actor("ada@example.com", member_of=frozenset({"a"}), own_in=frozenset({"a"})),
            id="a key beside an admin's address in a slice makes no admin",
        ),
        pytest.param(
            authority(a=BO, b={"members": [{"email": "bo@example.com", "keys": person("eve")["keys"]}]}),
            by("eve"),
            Actor("bo@example.com", member_of=frozenset({"b"}), own_in=frozenset({"b"})),
            id="a key beside another's address gives nothing of his elsewhere",
        ),
        pytest.param(
            authority(a={"members": [{"email": "ada@example.com", "keys": person("eve")["keys"]}]}, b=EVE),
            by("eve"),
            Actor("ada@example.com", member_of=frozenset({"a", "b"}), own_in=frozenset({"a"})),
            id="what one slice calls somebody is not their address in another",
        ),
        pytest.param(
            authority(a=BO, b={"members": [{"email": "bo@example.com", "forge": {"login": "eve", "id": 7}}]}),
            Voucher("forge", account=7),
            Actor("bo@example.com", member_of=frozenset({"b"}), own_in=frozenset({"b"})),
            id="nor does an account",
        ),
        pytest.param(
            authority(keyring(line("bo@example.com", "bo2")), a=BO),
            by("bo2"),
            Actor("bo@example.com", member_of=frozenset({"a"})),
            id="the operator's file gives an address its rights everywhere",
        ),
        pytest.param(
            authority(keyring(line("other@example.com", "x"))),
            by("ada"),
            None,
            id="a manifest's key makes no admin then",
        ),
        pytest.param(
            authority(keyring(line("ada@example.com", "ada2"))),
            by("ada2"),
            Actor("ada@example.com", True, handle="ada"),
            id="the operator's does",
        ),
        pytest.param(
            authority(
                keyring(line("ada@example.com", "ada"), revoked=("ada",)), a={"members": [person("ada")]}
            ),
            by("ada"),
            None,
            id="a revoked key shows nobody, wherever it is listed",
        ),
        pytest.param(
            authority(keyring(line("bo@example.com", "bo", 'valid-before="20260101"')), a=BO),
            by("bo"),
            None,
            id="a key past its end shows nobody, wherever it is listed",
        ),
        pytest.param(
            authority(keyring(line("bo@example.com", "bo", 'valid-after="20991231"')), a=BO),
            by("bo"),
            None,
            id="nor does one before its beginning",
        ),
        pytest.param(
            authority(
                keyring(
                    line("bo@example.com", "bo", 'valid-before="20260101"'),
                    line("bo@example.com", "bo", 'valid-after="20260101"'),
                ),
                a=BO,
            ),
            by("bo"),
            Actor("bo@example.com", member_of=frozenset({"a"})),
            id="a key with another line counts by that",
        ),
        pytest.param(
            authority(keyring(line("*@example.com", "eve"))),
            by("eve"),
            None,
            id="a pattern is nobody's address",
        ),
        pytest.param(
            authority(keyring(line("service:door,ada@example.com", "ada")), a={"members": [person("ada")]}),
            by("ada"),
            None,
            id="a machine's key is no person's",
        ),
        pytest.param(
            authority(keyring(line("ada@example.com", "ada", 'valid-before="20260101"'))),
            by("ada"),
            None,
            id="a key past its end",
        ),
        pytest.param(
            authority(keyring(line("ada@example.com", "ada", 'namespaces="egs-approval"'))),
            by("ada"),
            None,
            id="a key for another purpose",
        ),
        pytest.param(
            authority(a=BO),
            Voucher("signature", email="bo@example.com"),
            Actor("bo@example.com", member_of=frozenset({"a"})),
            id="whom a service names",
        ),
        pytest.param(
            authority(a=BO),
            Voucher("signature", email="who@example.com"),
            Actor("who@example.com"),
            id="whom a service names and nobody lists has no rights",
        ),
        pytest.param(
            authority(a=OLGA),
            Voucher("signature", email="olga@example.com", is_narrow=True),
            Actor("olga@example.com", member_of=frozenset({"a"}), is_narrowed=True),
            id="whom a service for requests names is no owner",
        ),
        pytest.param(
            authority(a=BO, b=BO),
            Voucher("signature", email="ada@example.com", is_narrow=True),
            Actor("ada@example.com", member_of=frozenset({"a", "b"}), is_narrowed=True),
            id="whom a service for requests names is no admin, and files everywhere if they are",
        ),
    ],
)
def test_evidence_shows(known: Authority, voucher: Voucher, want: Actor | None) -> None:
    assert known.actor(voucher, START) == want


@pytest.mark.parametrize(
    ("principals", "narrow"),
    [
        (("service:door",), True),
        (("service:all",), True),
        (("service:*",), True),
        (("service:door", "someone/all@example.com"), True),
        (("service:door", "agent:east/all"), True),
        (("service:api/all",), False),
        (("service:door", "service:api/all"), False),
    ],
)
def test_which_services_speak_about_requests_alone(principals: tuple[str, ...], narrow: bool) -> None:
    assert is_narrow(principals) is narrow


def test_a_key_counts_at_the_instant_of_judging() -> None:
    known = authority(keyring(line("ada@example.com", "ada", 'valid-after="20261121"')))
    assert known.actor(by("ada"), START - timedelta(days=1)) is None
    assert known.actor(by("ada"), START) is not None


def test_in_matters_of_a_slice_its_own_entry_names_somebody() -> None:
    known = authority(
        a={"members": [{"email": "ada@example.com", "keys": person("bo")["keys"]}]}, b=BO, c=OLGA
    )
    assert [known.address(by("bo"), START, name) for name in "abc"] == [
        "ada@example.com",
        "bo@example.com",
        "bo@example.com",
    ]
    actor = known.actor(by("bo"), START, slice_="b")
    assert actor is not None
    assert (actor.email, actor.is_admin) == ("bo@example.com", False)
    assert known.address(by("olga"), START, "a") is None
    assert known.address(by("ada"), START, "a") == "ada@example.com"
    assert known.address(by("eve"), START, "a") is None
