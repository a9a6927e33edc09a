"""What main's trailers say of earlier writes; there is no other memory (K1)."""

from __future__ import annotations

from datetime import timedelta

from portal.idempotency import History, digest_of, made_in, since, trailer_of
from reconciler.store.memory import MemoryRemote, MemoryStore
from reconciler.store.port import Draft, Person
from tests.support.world import START

BO = Person("Bo", "bo@example.com")


def commit(store: MemoryStore, parent: str | None, *trailers: str) -> str:
    """A commit with these trailers."""
    message = "\n".join(["A change", "", *trailers, ""])
    changes = {"file": f"{parent}{trailers}".encode()}
    return store.write(Draft(changes, message, BO, START + timedelta(seconds=1), parent, parent))


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
    found = history.of_key(digest)
    assert found is not None
    assert (found.commit, found.email, found.print) == (first, BO.email, "a" * 16)
    assert history.of_id("two") == made_in(store.commit(second))
    assert history.of_id("three") is None
    third = commit(store, second, "Request-Id: three")
    history.follow(third)
    assert history.of_id("three") is not None


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
