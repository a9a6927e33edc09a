"""Bo is a member of slice a, may push to main, and wants 100 nodes; a running controller, real Git. Issue section 5.

Whatever he tries, nobody gets more than the two nodes that a slice's quota leaves, what ran goes on, and Cy's own
request, filed afterwards, runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.facts import Facts
from reconciler.ports import Ports
from reconciler.settings import Settings, Trust
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from schemas.documents.approval import NAMESPACE, Approval, statement
from schemas.documents.cluster import ClusterSpec
from schemas.errors import UserError
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import Phase
from tests.reconciler.trust.test_policy_matrix import of_slice
from tests.support import repos
from tests.support.landing import Land, base_files, person
from tests.support.machinekeys import key
from tests.support.world import _document, at, cluster, gpr, gpr_path, parsed, project, slice_

HUGE = {gpr_path("a/huge"): gpr("a", "huge", nodes=100)}
BIG_SLICE = {"slices/a/slice.yaml": of_slice(quota={"gpus": 1600})}
BIG_PROJECT = {"project.yaml": project(admins=[person("ada", account=11)], limits={"nodesPerRequest": 100})}
ALL = {**HUGE, **BIG_SLICE, **BIG_PROJECT}
BO_ADMIN = {"project.yaml": project(admins=[person("ada"), person("bo")], limits={"nodesPerRequest": 100})}


class Siege:
    """The repository, a controller that verifies signatures, and a simulated cluster of 200 nodes."""

    def __init__(self, folder: Path) -> None:
        short = {gpr_path("b/old"): gpr("b", "old", duration="10m")}
        self.land = Land.begun(folder, base_files() | short)
        trust = folder / "trust"
        trust.mkdir()
        (trust / "allowed_signers").write_text("\n".join(self.land.lines) + "\n")
        self.folder = folder
        self.settings = Settings(
            repo=str(self.land.repo),
            state=folder / "state",
            pushes_per_minute=None,
            poll=timedelta(minutes=5),
            trust=Trust("signature", trust),
        )
        self.drivers: dict[str, EmbeddedCluster] = {}
        self.specs: dict[str, ClusterSpec] = {}
        self.now, self.events = at(0), list[str]()
        self.facts = Facts(self.now)
        self.most: dict[str, int] = {}
        self.stores: list[GitStore] = []
        self.start(adopt=True)
        self.run(1)

    def start(self, *, adopt: bool = False) -> None:
        """A controller process that remembers nothing."""
        for store in self.stores:
            store.close()
        self.stores = [GitStore(self.settings.repo, self.folder / f"mirror-{len(self.events)}.git")]
        self.controller = Reconciler(
            Ports(self.stores[0], DocumentCache(None, READER_VERSION), self._open),
            self.settings,
            f"controller-{self.now:%H%M}",
            adopt=adopt,
        )

    def _open(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        for name, spec in specs.items():
            if self.specs.get(name) != spec:
                self.drivers[name] = self.drivers.get(name) or EmbeddedCluster(name, spec, None)
                self.drivers[name].follow(spec)
                self.specs[name] = spec
        return {name: self.drivers[name] for name in specs}

    def run(self, minutes: float) -> None:
        """Cycle at every instant that matters for so long."""
        until = at((self.now - at(0)).total_seconds() / 60 + minutes)
        for _ in range(300):
            self._look(self.controller.cycle(self.now))
            if self._wake > self.now and self._wake > until:
                self.now = until
                return
            self.now = max(self.now, self._wake)
        raise AssertionError(f"no rest at {self.now}")

    def _look(self, cycle: Cycle) -> None:
        self._wake = cycle.wake
        self.facts = cycle.facts or self.facts
        self.events += [str(event.reason) for event in cycle.events]
        for name, status in self.facts.requests.items():
            held = 0 if status.assignment is None else len(status.assignment.nodes)
            self.most[name] = max(held, self.most.get(name, 0))


Attack = Callable[[Siege], None]
ATTACKS: dict[str, Attack] = {}


def attack(sentence: str) -> Callable[[Attack], Attack]:
    """One way to try it."""

    def keep(act: Attack) -> Attack:
        ATTACKS[sentence] = act
        return act

    return keep


def direct(sentence: str, files: Mapping[str, repos.FileText], by: str | None, text: str = "Change") -> None:
    """A way that is one commit, straight onto main."""
    ATTACKS[sentence] = lambda siege: void(siege.land.push(files, by, text=text))


def void(_: object) -> None:
    """Nothing."""


direct("he asks for them, beyond quota and limit", HUGE, "bo")
direct("he asks and raises the quota in one commit", ALL, "bo")
direct("he commits in the admin's name", ALL, None)
direct("he says that he acts for the admin", ALL, "bo", "Change\n\nOn-Behalf-Of: Ada <ada@example.com>")
direct("he adds a trailer of approval", ALL, "bo", "Change\n\nApproved-by: Ada <ada@example.com>")
direct("he makes himself an admin", {**ALL, **BO_ADMIN}, "bo")
direct(
    "he makes himself an owner",
    {"slices/a/slice.yaml": of_slice(owners=[person("bo")], quota={"gpus": 1600})},
    "bo",
)
direct(
    "he puts his key beside the admin's address",
    {"project.yaml": project(admins=[person("ada", keys=["bo"])], limits={"nodesPerRequest": 100}), **HUGE},
    "bo",
)
direct("he makes a slice of his own", {
    "slices/c/slice.yaml": slice_("c", members=[person("bo")], quota={"gpus": 1600}),
    gpr_path("c/huge"): gpr("c", "huge", nodes=100),
}, "bo")  # fmt: skip
direct("he asks for a workspace and uses it", {
    "requests/c.yaml": _document(
        "WorkspaceRequest", "c", {"requester": person("bo"), "clusters": ["east"], "namespaces": ["c"]}
    ),
    gpr_path("c/huge"): gpr("c", "huge", nodes=100),
}, "bo")  # fmt: skip
direct("he fills a template", {
    "templates/t.yaml": _document("GPRTemplate", "t", {"nodes": 100, "duration": "1h"}),
    gpr_path("a/huge"): _document("GPR", "huge", {"slice": "a", "template": "t", "duration": "1h"}),
}, "bo")  # fmt: skip
direct("he deletes the slice and writes it anew", {"slices/a/slice.yaml": None, **HUGE}, "bo")
direct("he deletes the project", {"project.yaml": None, **HUGE}, "bo")
direct(
    "he breaks the project's file", {"project.yaml": "a: [\n", "slices/a/slice.yaml": "{}\n", **HUGE}, "bo"
)
direct(
    "he replaces the slice's file by a folder",
    {"slices/a/slice.yaml": None, "slices/a/slice.yaml/x": "x", **HUGE},
    "bo",
)
direct("he files in another slice's folder", {gpr_path("b/huge"): gpr("b", "huge", nodes=100)}, "bo")
direct("he cancels everybody else", {gpr_path("b/old"): None, "slices/b/slice.yaml": None, **HUGE}, "bo")
direct("he signs with a key that nobody knows", ALL, "another")
direct("he makes the pool look larger", {"clusters/east.yaml": cluster(nodes=5000), **HUGE}, "bo")
direct(
    "he confirms and moves himself ahead", {gpr_path("a/huge"): gpr("a", "huge", nodes=100, move=1000)}, "bo"
)


@attack("he raises the quota first and asks afterwards")
def _in_turns(siege: Siege) -> None:
    siege.land.push({**BIG_SLICE, **BIG_PROJECT}, "bo")
    siege.run(2)
    siege.land.push(HUGE, "bo")


@attack("he opens a pull request that the forge merges")
def _pull(siege: Siege) -> None:
    land = siege.land
    land.pushed(
        land.merge(land.commit(HUGE, "bo", land.commit({**BIG_SLICE, **BIG_PROJECT}, "bo", land.at)), "forge")
    )


@attack("he hides it in an octopus")
def _octopus(siege: Siege) -> None:
    land = siege.land
    sides = [land.commit({"NEWS": f"{n}\n"}, None, land.at) for n in range(1)]
    land.pushed(land.merge([*sides, land.commit(ALL, "bo", land.at)], None))


@attack("he makes it up in a merge of the admin's own commit")
def _evil(siege: Siege) -> None:
    land = siege.land
    land.pushed(land.merge(land.commit({"NEWS": "1\n"}, "ada", land.at), None, ALL))


@attack("he makes main before the second parent")
def _foxtrot(siege: Siege) -> None:
    land = siege.land
    own = land.commit(ALL, "bo", repos.git(land.repo, "rev-list", "--max-parents=0", land.at))
    land.pushed(land.of_tree(land.tree(ALL, land.at), "bo", own, land.at))


@attack("he has the admin pull while nobody looks")
def _pulled(siege: Siege) -> None:
    land, base = siege.land, siege.land.at
    forbidden = land.push(ALL, "bo")
    land.at = land.commit({"NEWS": "1\n"}, "ada", base)
    land.pushed(land.merge(forbidden, "ada", text="Merge remote-tracking branch 'origin/main'"))


@attack("he undoes, in passing, what the admin has just taken back")
def _undone(siege: Siege) -> None:
    land = siege.land
    before = {
        path: repos.git(land.repo, "show", f"{land.at}:{path}") + "\n" for path in (*BIG_SLICE, *BIG_PROJECT)
    }
    raised = land.push({**BIG_SLICE, **BIG_PROJECT}, "ada")
    land.push(before, "ada")
    siege.run(1)
    own = land.commit(HUGE, "bo", raised)
    inner = land.of_tree(land.tree(ALL, land.at), None, land.at, own)
    land.pushed(land.of_tree(land.tree({"NEWS": "2\n"}, own), None, own, inner))


@attack("he brings the admin's branch back that was squashed, and taken back since")
def _replayed(siege: Siege) -> None:
    land = siege.land
    before = {path: base_files()[path] for path in (*BIG_SLICE, *BIG_PROJECT)}
    branch = land.commit({**BIG_SLICE, **BIG_PROJECT}, "ada", land.at)
    land.push({**BIG_SLICE, **BIG_PROJECT}, "ada", text="Raised (#7)")
    land.push(before, "ada")
    land.pushed(land.of_tree(land.tree({**BIG_SLICE, **BIG_PROJECT}, land.at), None, land.at, branch))
    siege.run(2)
    land.push(HUGE, "bo")


@attack("he rewrites main")
def _rewritten(siege: Siege) -> None:
    land = siege.land
    land.pushed(land.of_tree(land.tree(ALL, land.at), "bo"))
    siege.run(2)
    land.pushed(land.commit({}, None, land.at))


@attack("he waits for the controller to start anew in between")
def _restarted(siege: Siege) -> None:
    siege.land.push(BIG_SLICE, "bo")
    siege.run(2)
    siege.start()
    siege.run(2)
    siege.land.push(HUGE, "bo")
    siege.start()


@attack("he removes the status branch")
def _forgotten(siege: Siege) -> None:
    siege.land.push(ALL, "bo")
    repos.git(siege.land.repo, "update-ref", "-d", "refs/heads/egs/status")


@attack("he approves himself, by a file")
def _approved(siege: Siege) -> None:
    siege.land.push(HUGE, "bo")
    siege.run(2)
    for signer in (None, "bo"):
        siege.land.push(
            {"approvals/a/huge/ada.yaml": _approval(siege, signer), "approvals/a/huge/bo.yaml": None}, "bo"
        )
        siege.run(2)


@attack("he uses an approval of something smaller")
def _reused(siege: Siege) -> None:
    siege.land.push({gpr_path("a/huge"): gpr("a", "huge", nodes=3)}, "bo")
    siege.run(2)
    word = _approval(siege, "ada")
    siege.land.push(HUGE, "bo")
    siege.run(2)
    siege.land.push({"approvals/a/huge/ada.yaml": word}, "bo")


def _approval(siege: Siege, signer: str | None) -> str:
    spec: dict[str, object] = {
        "slice": "a",
        "gpr": "huge",
        "decision": "approve",
        "specDigest": siege.facts.requests["a/huge"].spec_digest,
        "limit": {"gpus": 10_000, "nodes": 1000},
        "notAfter": "2026-12-01T00:00:00Z",
    }
    text = _document("Approval", "ada", spec)
    if signer is None:
        return text
    document = parsed("approvals/a/huge/ada.yaml", text)
    assert isinstance(document, Approval)
    signature = key(signer).sign(NAMESPACE, statement("default", document))
    return _document("Approval", "ada", spec | {"signature": signature})


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Siege]:
    return lambda: Siege(tmp_path_factory.mktemp("siege"))


FREEZES = frozenset({"he rewrites main"})


@pytest.mark.parametrize("sentence", ATTACKS)
def test_nobody_gets_100_nodes(besieged: Callable[[], Siege], sentence: str) -> None:
    siege = besieged()
    ATTACKS[sentence](siege)
    siege.run(5)
    if sentence not in FREEZES:
        siege.land.push({gpr_path("b/honest"): gpr("b", "honest", nodes=2)}, "cy")
    siege.run(30)
    assert max(siege.most.values()) <= 2
    assert siege.most["b/old"] == 1
    if sentence in FREEZES:
        assert "RepositoryAlarm" in siege.events
    else:
        assert siege.facts.requests["b/honest"].phase in {Phase.PROVISIONED, Phase.RELEASING, Phase.COMPLETED}
        assert siege.most["b/honest"] == 2


def test_with_the_right_signature_they_are_given(besieged: Callable[[], Siege]) -> None:
    siege = besieged()
    siege.land.push({**BIG_SLICE, **BIG_PROJECT}, "ada")
    siege.land.push(HUGE, "bo")
    siege.run(90)
    assert siege.most["a/huge"] == 100


def test_a_new_controller_that_finds_no_status_branch_decides_nothing(besieged: Callable[[], Siege]) -> None:
    siege = besieged()
    siege.land.push(
        {**ALL, **dict.fromkeys([gpr_path("a/old"), gpr_path("a/moved"), gpr_path("b/old")])}, "bo"
    )
    siege.land.push(dict.fromkeys(HUGE), "bo")  # a repository without a request looks like a new one
    repos.git(siege.land.repo, "update-ref", "-d", "refs/heads/egs/status")
    siege.start()
    with pytest.raises(UserError, match="egs-reconciler adopt"):
        siege.run(1)


def test_a_controller_elsewhere_that_meets_a_rewritten_main_goes_on_as_before(
    besieged: Callable[[], Siege],
) -> None:
    siege = besieged()
    siege.land.pushed(siege.land.of_tree(siege.land.tree(ALL, siege.land.at), "bo"))
    siege.start()
    siege.run(30)
    assert max(siege.most.values()) == siege.most["b/old"] == 1
    assert "RepositoryAlarm" in siege.events


def test_where_the_server_forgot_what_counted_nothing_is_decided(besieged: Callable[[], Siege]) -> None:
    siege = besieged()
    siege.land.pushed(siege.land.of_tree(siege.land.tree(ALL, siege.land.at), "bo"))
    repos.git(siege.land.repo, "update-ref", "-d", "refs/heads/scratch")
    repos.git(siege.land.repo, "gc", "--quiet", "--prune=now")
    siege.start()
    with pytest.raises(UserError, match="main was rewritten"):
        siege.run(1)


def test_what_is_held_is_told_with_commit_and_rule(besieged: Callable[[], Siege]) -> None:
    siege = besieged()
    commit = siege.land.push({gpr_path("b/old"): gpr("b", "old", nodes=50), **BIG_SLICE}, "bo")
    siege.run(2)
    assert siege.events.count("ChangeNotAuthorised") == 2
    assert siege.facts.trust is not None
    assert siege.facts.trust.main == commit
    assert {c.path: (c.rule, c.commit) for c in siege.facts.trust.held} == {
        gpr_path("b/old"): ("NotAMember", commit),
        "slices/a/slice.yaml": ("NotAnOwner", commit),
    }
    (condition,) = siege.facts.requests["b/old"].conditions
    assert (condition.type, condition.reason) == ("ChangeNotAuthorised", "NotAMember")
    text = repos.git(siege.land.repo, "show", "egs/status:problems.yaml")
    assert "NotAMember" in text
    as_before = {"slices/a/slice.yaml": base_files()["slices/a/slice.yaml"]}
    siege.land.push({gpr_path("b/old"): gpr("b", "old", duration="10m"), **as_before}, None)
    siege.run(2)
    assert siege.events.count("ChangeAuthorised") == 2
    assert siege.facts.trust is not None
    assert siege.facts.trust.held == ()
    assert siege.facts.requests["b/old"].conditions == ()
