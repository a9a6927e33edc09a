"""Words by keys: whose counts, whose does not, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.court import Acting, Bench, Case, person
from tests.support.machinekeys import key, line
from tests.support.realkeys import Key

PROJECT = {
    "admins": [
        {"email": "ada@example.com"},
        {"email": "grace@example.com", "name": "grace-h"},
        {"email": "kay@example.com"},
        {"email": "rev@example.com"},
        {"email": "gia@example.com"},
        {"email": "yet@example.com"},
        {"email": "rsa@example.com"},
        {"email": "ecdsa@example.com"},
        {"email": "Ada@Example.com", "name": "ada-two"},
        {"email": "tom@example.com"},
        {"email": "twin@example.com"},
        person("mal"),
    ],
    "limits": {"nodesPerRequest": 1000, "deletionsAtOnce": 1000},
    "maxExtension": "20m",
    "approval": {"twoAdminsAbove": {"nodes": 20}},
}
"""`mal` is an admin that project.yaml alone gives a key; `ada-two` is Ada again, and Tom and his twin have one key."""


def trust_folder(rsa: Key, ecdsa: Key) -> dict[str, str]:
    """allowed_signers and revoked_keys of the operator."""
    lines = [
        line("ada@example.com", "ada"),
        line("grace@example.com", "grace"),
        line("kay@example.com", "kay", 'valid-before="20261121080000"'),
        line("rev@example.com", "rev"),
        line("gia@example.com", "gia", 'namespaces="git"'),
        line("gia@example.com", "gia-words", 'namespaces="egs-approval",valid-before="20271121"'),
        line("tom@example.com,twin@example.com", "tom"),
        line("late@example.com,grace@example.com", "late"),
        line("yet@example.com", "yet", 'valid-after="20270101"'),
        line("yet@example.com", "yet-now", 'valid-after="20260101"'),
        line("former@example.com", "former"),
        line("service:door", "door"),
        line("controller", "controller"),
        line("agent:east/*", "agents"),
        f"rsa@example.com {rsa.public}",
        f"ecdsa@example.com {ecdsa.public}",
    ]
    return {"allowed_signers": "\n".join(lines) + "\n", "revoked_keys": key("rev").public + "\n"}


def signed_by(signer: str, by: str = "ada") -> Callable[[Bench], None]:
    """A word under one name, by some key."""
    return lambda bench: bench.put(bench.word(by, signer), by)


@dataclass(frozen=True)
class Real:
    """A word by a key of `ssh-keygen`."""

    of: Callable[[], Key]
    by: str

    def __call__(self, bench: Bench) -> None:
        bench.put(bench.word(self.by, self.of()), self.by)


def keys_of_a_slice(bench: Bench) -> None:
    """The slice's owner lists a key of their own beside Ada's address."""
    from tests.support import world

    members = [person("bo"), {"email": "ada@example.com", "keys": [key("olga").public]}]
    text = world.slice_(
        bench.slice, members=members, owners=[person("olga")], quota={"gpus": 8}, limits={"maxPriority": 200}
    )
    bench.court.push({f"slices/{bench.slice}/slice.yaml": text}, "olga")
    bench.put(bench.word("ada", "olga"))


def own(bench: Bench) -> None:
    """Ada filed it, and Ada signs."""
    bench.put(bench.word())


def twice(bench: Bench) -> Acting:
    """Two handles, one key: the second word is by the same person."""
    bench.put(bench.word())
    yield
    bench.put(bench.word("ada-two", "ada"), "ada-two")


def one_key_of_two(bench: Bench) -> Acting:
    """Two addresses, one key."""
    bench.put(bench.word("tom", "tom"), "tom")
    yield
    bench.put(bench.word("twin", "tom"), "twin")


def second_by_nobody(bench: Bench) -> Acting:
    bench.put(bench.word())
    yield
    bench.put(bench.word("grace-h", "bo"), "grace-h")


def removed_admin(bench: Bench) -> None:
    bench.put(bench.word("former", "former"), "former")


FORGERIES = [
    Case("by a member's key", signed_by("bo")),
    Case("by an owner's key", signed_by("olga")),
    Case("by a stranger's key", signed_by("eve")),
    Case("by a key that was revoked", signed_by("rev", "rev")),
    Case("by a key that is over", signed_by("kay", "kay")),
    Case("by a key that is not valid yet", signed_by("yet", "yet")),
    Case("by a key that is for commits alone", signed_by("gia", "gia")),
    Case("by an admin whom project.yaml alone gives a key", signed_by("mal", "mal")),
    Case("by somebody who was an admin", removed_admin),
    Case("by the key of another admin", signed_by("grace")),
    Case("by a service's key", signed_by("door")),
    Case("by a controller's key", signed_by("controller")),
    Case("by an agent's key", signed_by("agents")),
    Case("by a key that a slice's owner gave to Ada", keys_of_a_slice),
    Case("of one's own request", own, by="ada"),
    Case("the same admin under two names", twice, spec={"nodes": 21}),
    Case("a second word by somebody who is none", second_by_nobody, spec={"nodes": 21}),
    Case("one key of two admins", one_key_of_two, spec={"nodes": 21}),
]


def genuine(rsa: Callable[[], Key], ecdsa: Callable[[], Key]) -> list[Case]:
    """By every kind of key."""
    return [
        Case("by an RSA key of ssh-keygen", Real(rsa, "rsa"), "approved"),
        Case("by an ECDSA key of ssh-keygen", Real(ecdsa, "ecdsa"), "approved"),
        Case("by a key that is for words alone, and has an end", signed_by("gia-words", "gia"), "approved"),
        Case("by a key that is valid by now", signed_by("yet-now", "yet"), "approved"),
        Case("by a key that is also somebody else's who is no admin", signed_by("late", "grace-h"), "approved"),
        Case("of another admin's request", signed_by("grace", "grace-h"), "approved", by="ada"),
    ]  # fmt: skip
