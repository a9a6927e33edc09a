"""Words at other times: used up, taken back, brought back, and their keys revoked later."""

from __future__ import annotations

from tests.support.court import LONG, Acting, Bench, Case
from tests.support.machinekeys import key


def used_up(bench: Bench) -> Acting:
    """It ran, its file went, the same was filed again; the approval lay there all the time."""
    bench.put(bench.word())
    yield
    assert bench.is_let_in
    yield from _gone(bench)
    yield from _again(bench)


def used_up_and_brought_back(bench: Bench) -> Acting:
    """The same, with the approval's file deleted and put back."""
    word = bench.word()
    bench.put(word)
    yield
    assert bench.is_let_in
    bench.court.push({bench.path: None, bench.file(): None}, "ada")
    yield
    yield from _again(bench)
    bench.put(word)
    yield


def taken_back(bench: Bench) -> Acting:
    """Ada reverts her word before it is used; Bo takes it out of the history."""
    word = bench.word()
    bench.put(word)
    yield
    assert bench.is_let_in
    bench.court.push({bench.file(): None}, "ada")
    yield
    bench.from_now()
    bench.put(word)
    yield


def replaced(bench: Bench) -> Acting:
    """A larger limit was replaced by one that is too low; the larger one comes back."""
    word = bench.word()
    bench.put(word)
    yield
    bench.put(bench.word(limit={"gpus": 8, "nodes": 1}), pusher="ada")
    yield
    bench.from_now()
    bench.put(word)
    yield


def filed_anew(bench: Bench) -> Acting:
    """The request was approved and taken back while it waited; the same is filed again."""
    bench.put(bench.word())
    yield
    assert bench.is_let_in
    yield from _gone(bench)
    yield from _again(bench)


def half_of_two(bench: Bench) -> Acting:
    """One word of two was seen and taken back; it comes back beside the second."""
    word = bench.word()
    bench.put(word)
    yield
    bench.court.push({bench.file(): None}, "ada")
    yield
    files = {bench.file(): word, bench.file("grace-h"): bench.word("grace-h", "grace")}
    bench.court.push(files, "ada" if bench.court.courier == "ada" else "bo")
    yield


def revoked_later(bench: Bench) -> Acting:
    """The admin's key is revoked while the request waits: see `revoke`."""
    bench.put(bench.word("grace-h", "late"), "grace-h")
    yield
    assert bench.is_let_in
    revoke(bench, "late")
    yield
    bench.from_now()
    yield


def rejected_and_overridden(bench: Bench) -> None:
    """Ada rejects in a newer word; the older one comes back before anybody looked."""
    older = bench.word()
    bench.court.push({bench.file(): bench.word(decision="reject", limit=None)}, "ada")
    bench.court.push({bench.file(): older}, "bo")


def rejected_deleted_and_overridden(bench: Bench) -> None:
    """The same in two commits: the rejection is deleted first."""
    older = bench.word()
    bench.court.push({bench.file(): older}, "bo")
    bench.court.push({bench.file(): bench.word(decision="reject", limit=None)}, "ada")
    bench.court.push({bench.file(): None}, "bo")
    bench.court.push({bench.file(): older}, "bo")


def after_a_rejection(bench: Bench) -> Acting:
    """An approval that comes after the rejection: that request never runs again."""
    bench.put(bench.word(decision="reject", limit=None))
    yield
    bench.put(bench.word("grace-h", "grace"), "grace-h")
    yield


def revoke(bench: Bench, name: str) -> None:
    """The operator adds a key to revoked_keys."""
    assert bench.court.trust is not None
    file = bench.court.trust / "revoked_keys"
    text = file.read_text()
    if key(name).public not in text:
        file.write_text(text + key(name).public + "\n")


def _gone(bench: Bench) -> Acting:
    bench.court.push({bench.path: None}, "bo")
    yield


def _again(bench: Bench) -> Acting:
    bench.court.push({bench.path: bench.request()}, "bo")
    bench.from_now()
    yield


def new_word_after_the_old(bench: Bench) -> Acting:
    """What was used up does not count, what is signed anew does."""
    yield from used_up(bench)
    bench.put(bench.word(notAfter="2026-12-21T00:00:00Z"), pusher="ada")
    yield


def new_word_after_taking_back(bench: Bench) -> Acting:
    yield from taken_back(bench)
    bench.put(bench.word(notAfter="2026-12-21T00:00:00Z"), pusher="ada")
    yield


def before_its_request(bench: Bench) -> Acting:
    """Approved with the very commit that files it."""
    twin = next(
        b for b in bench.court.benches.values() if b is not bench and b.case.id == "signed in this process"
    )
    digest = _digest_like(twin, bench)
    bench.court.push({bench.path: bench.request()}, "bo")
    bench.put(bench.word(specDigest=digest))
    yield


def _digest_like(twin: Bench, bench: Bench) -> str:
    assert twin.status is not None
    spec = twin.status.accepted_spec.model_copy(update={"slice": bench.slice})
    return spec.digest(200)


def unsigned_first(bench: Bench) -> Acting:
    """An unsigned file does nothing; signed it does."""
    from schemas.reading.yaml_text import dump

    bench.put(dump(bench.content()), pusher="ada")
    yield
    assert bench.verdict == "waiting"
    bench.put(bench.word())
    yield


def grace(bench: Bench) -> Acting:
    """An admin allows more grace than the project does, for a request that runs."""
    yield
    word = bench.word(rule="extension", limit={"gpus": 8, "nodes": 1, "extend": "2h"})
    bench.put(word)
    yield


def too_little_grace(bench: Bench) -> Acting:
    yield
    bench.put(bench.word(rule="extension", limit={"gpus": 8, "nodes": 1, "extend": "1h"}))
    yield


def grace_by_a_word_for_the_request(bench: Bench) -> Acting:
    yield
    bench.put(bench.word(limit={"gpus": 8, "nodes": 1, "extend": "2h"}))
    yield


def grace_by_a_member(bench: Bench) -> Acting:
    yield
    bench.put(bench.word("ada", "bo", rule="extension", limit={"gpus": 8, "nodes": 1, "extend": "2h"}))
    yield


RUNNING = {"nodes": 1, "duration": "4h", "extend": "2h"}

FORGERIES = [
    Case("used up by a request that ran", used_up),
    Case("used up, deleted and brought back", used_up_and_brought_back),
    Case("taken back and brought back", taken_back, spec={"notBefore": LONG}),
    Case("replaced and brought back", replaced, spec={"notBefore": LONG}),
    Case("given to a request that was filed anew since", filed_anew, spec={"notBefore": LONG}),
    Case("half of two, taken back and brought back", half_of_two, spec={"nodes": 21, "notBefore": LONG}),
    Case("by a key that is revoked later", revoked_later, spec={"notBefore": LONG}),
    Case("after a rejection", after_a_rejection, "rejected"),
    Case("in place of a rejection that nobody saw", rejected_and_overridden, "rejected"),
    Case("in place of a rejection, deleted before", rejected_deleted_and_overridden, "rejected"),
    Case("grace by a limit that is less", too_little_grace, "not extended", spec=RUNNING),
    Case("grace by a word for the request", grace_by_a_word_for_the_request, "not extended", spec=RUNNING),
    Case("grace by a member's key", grace_by_a_member, "not extended", spec=RUNNING),
]

GENUINE = [
    Case("a new word after the old one was used up", new_word_after_the_old, "approved"),
    Case("a new word after one was taken back", new_word_after_taking_back, "approved", spec={"notBefore": LONG}),
    Case("signed after it was there unsigned", unsigned_first, "approved"),
    Case("grace beyond the project's bound", grace, "extended", spec=RUNNING),
]  # fmt: skip
