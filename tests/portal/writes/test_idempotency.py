"""What main's trailers say of earlier writes; there is no other memory (K1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from portal.writes.idempotency import SERVICE, History, believer, digest_of, made_in, since, trailer_of
from reconciler.settings import Trust
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Person
from reconciler.trust.machines import signing
from tests.support.machinekeys import key, line, private_text
from tests.support.memory_remote import MemoryRemote
from tests.support.world import START

BO = Person("Bo", "bo@example.com")


def commit(store: MemoryStore, parent: str | None, *trailers: str, committer: Person | None = SERVICE) -> str:
    """A commit by bo with these trailers, which the service made."""
    message = "\n".join(["A change", "", *trailers, ""])
    changes = {"file": f"{parent}{trailers}".encode()}
    at = START + timedelta(seconds=1)
    return store.write(Draft(changes, message, BO, at, parent, parent, committer))


def test_keys_of_two_callers_never_meet() -> None:
    assert digest_of("bo@example.com", "k") != digest_of("ada@example.com", "k")
    assert digest_of("bo@example.com", "k") == digest_of("bo@example.com", "k")


def test_found_by_id_and_by_key() -> None:
    """The first write under a key is the one that counts; commits by hand are none."""
    store = MemoryStore(MemoryRemote())
    digest = digest_of(BO.email, "k")
    tip = commit(store, None)
    first = commit(store, tip, "Request-Id: one", f"Idempotency-Key: {trailer_of(digest, 'a' * 16)}")
    second = commit(store, first, "Request-Id: two", f"Idempotency-Key: {trailer_of(digest, 'a' * 16)}")
    history = History(store)
    history.follow(second)
    found = history.of_key(BO.email, digest)
    assert found is not None
    assert (found.commit, found.email, found.print) == (first, BO.email, "a" * 16)
    assert history.of_id(BO.email, "two") == made_in(store.commit(second))
    assert history.of_id(BO.email, "three") is None
    third = commit(store, second, "Request-Id: three")
    history.follow(third)
    assert history.of_id(BO.email, "three") is not None


def test_what_a_merge_brings() -> None:
    """A proposal that was merged is found by its id as well."""
    store = MemoryStore(MemoryRemote())
    tip = commit(store, None)
    side = commit(store, tip, "Request-Id: side")
    assert made_in(store.commit(tip)) is None
    assert [each.oid for each in since(store, tip, side, 10)] == [side]
    assert [each.oid for each in since(store, None, side, 10)] == [side, tip]
    assert [each.oid for each in since(store, "0" * 40, side, 1)] == [side]


def test_a_trailer_that_is_nonsense() -> None:
    """Whoever writes one by hand gives nobody an answer."""
    store = MemoryStore(MemoryRemote())
    made = made_in(store.commit(commit(store, None, "Request-Id: x", "Idempotency-Key: nonsense")))
    assert made is not None
    assert made.key == ""


def test_trailers_of_others_are_not_believed() -> None:
    """Whoever writes another's trailers into a commit of their own makes nobody's write, and undoes nobody's."""
    store = MemoryStore(MemoryRemote())
    ada = digest_of("ada@example.com", "k")
    of_adas = ("Request-Id: one", f"Idempotency-Key: {trailer_of(ada, 'a' * 16)}")
    by_hand = commit(store, None, *of_adas, committer=None)
    through_us = commit(store, by_hand, *of_adas)
    history = History(store)
    history.follow(through_us)
    assert history.of_key("ada@example.com", ada) is None, "each speaks for its author alone"
    assert history.of_id("ada@example.com", "one") is None
    found = history.of_id(BO.email, "one")
    assert found is not None
    assert found.commit == through_us, "what the service did not commit says nothing"


def test_where_the_service_signs_its_signature_counts(tmp_path: Path) -> None:
    """Author and committer are whatever a pusher writes; a replica's key of the same name counts as well."""
    signers = (
        line("service:portal/all", "portal"),
        line("service:portal/all", "replica"),
        line("service:door", "door"),
    )
    (tmp_path / "allowed_signers").write_text("\n".join((*signers, line("bo@example.com", "bo"))) + "\n")
    own = tmp_path / "portal.key"
    own.write_bytes(private_text("portal"))
    own.chmod(0o600)
    trust = Trust("signature", tmp_path, own)
    believes = believer(trust)
    for name, is_believed in (
        ("portal", True),
        ("replica", True),
        ("door", False),
        ("bo", False),
        ("", False),
    ):
        store = MemoryStore(MemoryRemote(), sign=signing(key(name)) if name else None)
        found = store.commit(commit(store, None, "Request-Id: one"))
        assert believes(found) is is_believed, name
        assert believer(replace(trust, key=None))(found), (
            "where it has no key nobody is asked for a signature"
        )
