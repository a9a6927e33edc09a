"""A pull request in a small world: a branch from some commit of main, checked as the controller would check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.follower import Committed
from reconciler.model.evidence import Actor, Voucher
from reconciler.pulls.check import PullCheck, RequestChange
from reconciler.pulls.check_repository import PullToCheck, checked
from reconciler.pulls.proposed_change import StandingMain
from reconciler.pulls.proposed_effect import Proposed
from reconciler.pulls.queue_at_check import CommittedStatus
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome
from reconciler.trust.authority import authority_of
from reconciler.trust.keyring import Keyring
from schemas.reading.reader import READER_VERSION
from tests.support.world import BO, START, World, at, cluster, gpr, gpr_path, project, slice_

FLEET = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(nodes=4, pricePerGpuHour=2.5),
    "slices/a/slice.yaml": slice_("a", quota={"gpus": 16}, limits={"maxPriority": 200}),
    "slices/b/slice.yaml": slice_("b", members=[{"email": "cy@example.com"}]),
}


def request(key: str, nodes: int = 1, duration: str = "1h", **spec: object) -> dict[str, str | None]:
    """The file of a request."""
    slice_name, _, name = key.partition("/")
    return {gpr_path(key): gpr(slice_name, name, nodes, duration, **spec)}


@dataclass
class Pulls:
    """A world whose controller has answered `files`, and pull requests against it."""

    world: World

    @classmethod
    def on(cls, *files: Mapping[str, str | None]) -> Pulls:
        """A fleet of four nodes with these files, seen by its controller."""
        everything: dict[str, str | None] = dict(FLEET)
        for each in files:
            everything |= each
        world = World(everything)
        world.run(at(5))
        return cls(world)

    def then(self, *files: Mapping[str, str | None]) -> Pulls:
        """What people merged after that, answered too."""
        for each in files:
            self.world.commit(each)
        self.world.run(self.world.now)
        return self

    def main(self) -> str:
        """Main as it is."""
        return self.world.people.fetch(["main"])["main"]

    def branch(self, files: Mapping[str, str | None], start: str | None = None) -> str:
        """A commit on top of main, or of `start`, on a branch of its own."""
        base, people = start or self.main(), self.world.people
        changes = {path: None if text is None else text.encode() for path, text in files.items()}
        oid = people.write(Draft(changes, "a pull request", BO, START, base=base, parent=base))
        assert people.push(f"pull-{oid[:8]}", oid, None) is Outcome.COMMITTED
        return oid

    def check(
        self, files: Mapping[str, str | None], start: str | None = None, *, by: str | None = None
    ) -> PullCheck:
        """The check of a pull request with these changes, as of `by`'s (None: nobody is known)."""
        head = self.branch(files, start)
        store = MemoryStore(self.world.remote)
        tips = store.fetch(["*", "*/*"])
        vouchers = {} if by is None else {"": (Voucher("signature", email=by),)}
        asked = PullToCheck(tips["main"], head, tips.get("egs/status"), vouchers, by)
        return checked(store, asked, self.world.now)

    def proposed(self, files: Mapping[str, str | None], *, by: str = BO.email) -> Proposed:
        """The answer for the same change if it is not pushed."""
        store = MemoryStore(self.world.remote)
        store.fetch(["*", "*/*"])
        reading = Committed(
            store, DocumentCache(None, READER_VERSION), Settings(repo="x", state=Path("x")), "test"
        )
        decided = reading.read(self.world.now)
        assert decided is not None
        seen = CommittedStatus(reading.tip, decided.facts.at, decided.facts, {})
        authority = authority_of(reading.documents().repository.documents, Keyring())
        actor = authority.actor(Voucher("signature", email=by), self.world.now) or Actor(by)
        main = StandingMain(store, reading.documents(), seen, self.world.now)
        changes = {path: None if text is None else text.encode() for path, text in files.items()}
        main.proposed({"slices/a/gprs/other.yaml": b"kind: GPR"}, actor, authority)  # leaves nothing behind
        return main.proposed(changes, actor, authority)


def only_request(check: PullCheck) -> RequestChange:
    """Of a pull request about one request."""
    (found,) = check.requests
    return found
