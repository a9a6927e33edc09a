"""Whatever is committed is told as a problem, in bounded time and memory, and stops nothing else.

On real repositories, through the real command and a real controller.3.
"""

from __future__ import annotations

import json
import os
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from reconciler.compose import controller
from reconciler.model.events import EventReason
from reconciler.settings import Settings
from schemas.status.gpr_status import Phase
from tests.e2e.hostile import ATTACKS, LINK, MODULE, Attack, gpr
from tests.reconciler.cli.rig import egs
from tests.support import repos
from tests.support.world import START, cluster, project, slice_

GOOD = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(nodes=4),
    "slices/a/slice.yaml": slice_("a"),
    "slices/b/slice.yaml": slice_("b"),
    "slices/a/gprs/good.yaml": gpr("good", duration="6d").decode(),
}
MOST_S = 5.0
"""Generous: each takes a fraction of a second."""
MOST_BYTES = 64 * 2**20


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repos.bare(tmp_path / "fleet.git", GOOD)


def commit(repo: Path, *attacks: Attack) -> str:
    """Commit the attacks on top of main, names and modes as they are."""
    head = b"commit refs/heads/main\ncommitter E <e@example.com> 1767225600 +0000\ndata 1\nx\n"
    stream = bytearray(head + b"from refs/heads/main^0\n")
    for attack in attacks:
        name = b'"%s"' % b"".join(b"\\%03o" % letter for letter in attack.path)
        stream += b"M %s " % attack.mode.encode()
        if attack.mode == MODULE:
            stream += repos.tip(repo).encode() + b" " + name + b"\n"
        else:
            stream += b"inline " + name + b"\ndata %d\n" % len(attack.data) + attack.data + b"\n"
    unpack = ("-c", "fastimport.unpackLimit=0")
    repos.git(repo, *unpack, "fast-import", "--quiet", "--done", given=bytes(stream) + b"done\n")
    return repos.tip(repo)


def spent_s() -> float:
    """Seconds of CPU of this process and those that it waited for: other work on the machine must not fail a test."""
    return sum(os.times()[:4])


def problems_of(repo: Path) -> set[tuple[str, str]]:
    """File and rule of every problem that `egs validate` finds."""
    answer = egs("validate", repo, "-o", "json")
    errors = [problem for problem in answer.json["problems"] if problem["severity"] == "error"]
    assert answer.code == (1 if errors else 0), answer.err
    return {(problem["file"], problem["rule"]) for problem in answer.json["problems"]}


@pytest.mark.parametrize("why", ATTACKS)
def test_one_hostile_file_is_one_problem_in_bounded_time_and_memory(repo: Path, why: str) -> None:
    attack = ATTACKS[why]
    commit(repo, attack)
    began = spent_s()
    tracemalloc.start()
    try:
        found = problems_of(repo)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert spent_s() - began < MOST_S
    assert peak < MOST_BYTES
    assert {file for file, _ in found} == (set() if attack.rule is None else {attack.named})
    assert attack.rule is None or (attack.named, attack.rule) in found


@pytest.mark.parametrize("form", ["table", "github", "json"])
def test_what_is_told_of_them_steers_no_terminal_and_forges_no_line(repo: Path, form: str) -> None:
    commit(repo, *(attack for attack in ATTACKS.values() if attack.path != b"slices/a/gprs/bad.yaml"))
    answer = egs("validate", repo, "-o", form)
    assert all(line.isprintable() for line in answer.out.split("\n"))
    answer.out.encode()
    lines = answer.out.splitlines()
    if form == "table":
        assert all(": warning StrayFile: " in line for line in lines)
    elif form == "github":
        assert all(line.startswith("::warning file=") for line in lines)
    else:
        assert len(json.loads(answer.out)["problems"]) == sum(
            attack.rule == "StrayFile" for attack in ATTACKS.values()
        )


class Running:
    """A controller of the repository, its status as git has it."""

    def __init__(self, repo: Path, state: Path) -> None:
        self.repo = repo
        self.controller = controller(
            Settings(repo=str(repo), state=state, pushes_per_minute=None), adopt=True
        )
        self.now = START
        self.events: list[tuple[EventReason, str]] = []

    def run(self, minutes: float) -> None:
        """Cycle at every instant that matters for so long."""
        until = self.now + timedelta(minutes=minutes)
        while self.now <= until:
            cycle = self.controller.cycle(self.now)
            self.events += [(event.reason, event.message) for event in cycle.events]
            self.now = max(self.now, cycle.wake)

    def status(self, path: str) -> dict:
        """A file of the status branch, read by a reader of somebody else's."""
        return yaml.safe_load(repos.git(self.repo, "show", f"egs/status:{path}"))


@pytest.fixture
def running(repo: Path, tmp_path: Path) -> Running:
    return Running(repo, tmp_path / "state")


def by_path() -> list[list[Attack]]:
    """Every attack, in as few commits as have each path once."""
    rounds: list[dict[bytes, Attack]] = []
    for attack in ATTACKS.values():
        free = next((one for one in rounds if attack.path not in one), None)
        if free is None:
            rounds.append(free := {})
        free[attack.path] = attack
    return [list(one.values()) for one in rounds]


def test_a_controller_says_the_same_of_each_and_goes_on_with_the_rest(running: Running) -> None:
    """Every attack in turn, many at once: the controller never stops, and the good requests get their nodes."""
    running.run(5)
    assert running.status("slices/a/gprs/good.yaml")["status"]["phase"] == Phase.PROVISIONED
    for number, attacks in enumerate(by_path()):
        more = Attack("", None, f"slices/b/gprs/g{number}.yaml".encode(), gpr(f"g{number}", slice="b"))
        commit(running.repo, *attacks, more)
        running.run(1)
        assert f"b/g{number} was filed" in [message for _, message in running.events]
        said = running.status("problems.yaml").get("problems", [])
        for attack in attacks:
            rules = {row["rule"] for row in said if row["file"] == attack.named}
            assert (attack.rule in rules) if attack.rule else not rules, attack.why
    assert running.status("slices/a/gprs/good.yaml")["status"]["phase"] == Phase.PROVISIONED
    assert "slices/a/gprs/bad.yaml" not in repos.git(
        running.repo, "ls-tree", "-r", "--name-only", "egs/status"
    )


def test_a_request_turned_into_a_link_does_not_count_as_before(running: Running) -> None:
    """The same bytes under another mode: what is cached by content is judged by its mode all the same."""
    running.run(1)
    good = gpr("good", duration="6d")
    link = Attack("", None, b"slices/a/gprs/good.yaml", good, LINK)
    commit(running.repo, link, Attack("", None, b"slices/b/gprs/good.yaml", good))
    running.run(1)
    said = {(row["file"], row["rule"]) for row in running.status("problems.yaml")["problems"]}
    assert said == {("slices/a/gprs/good.yaml", "NotAFile"), ("slices/b/gprs/good.yaml", "FolderMismatch")}


def _tree(repo: Path, *entries: tuple[str, bytes, str]) -> str:
    data = b"".join(repos.tree_entry(*entry) for entry in sorted(entries, key=lambda entry: entry[1]))
    return repos.write_object(repo, "tree", data)


def _climbing(name: bytes):
    def tree(repo: Path) -> str:
        blob = repos.write_object(repo, "blob", b"x")
        return _tree(repo, ("40000", name, _tree(repo, ("100644", b"x.yaml", blob))))

    return tree


def _absolute(repo: Path) -> str:
    return _tree(repo, ("100644", b"/etc/cron.d/x", repos.write_object(repo, "blob", b"x")))


def _twice(repo: Path) -> str:
    one, two = (repos.write_object(repo, "blob", text) for text in (b"1", b"2"))
    return _tree(repo, ("100644", b"project.yaml", one), ("100644", b"project.yaml", two))


def _bomb(repo: Path) -> str:
    tree = _tree(repo, *(("100644", b"f%d" % i, repos.write_object(repo, "blob", b"x")) for i in range(10)))
    for _ in range(10):
        tree = _tree(repo, *(("40000", b"d%d" % i, tree) for i in range(10)))
    return tree


def _large_folder(repo: Path) -> str:
    blob = repos.write_object(repo, "blob", b"x")
    return _tree(repo, *(("100644", b"%0200d" % i, blob) for i in range(160_000)))


TREES = [
    pytest.param(_climbing(b".."), id="a folder that climbs"),
    pytest.param(_climbing(b"."), id="a folder that is itself"),
    pytest.param(_climbing(b".git"), id="git's own folder"),
    pytest.param(_climbing(b".GIT"), id="git's own folder in capitals"),
    pytest.param(_climbing(b"git~1"), id="git's own folder by its short name"),
    pytest.param(_climbing(".g\u200cit".encode()), id="git's own folder with a letter that nobody sees"),
    pytest.param(_absolute, id="a path from the root"),
    pytest.param(_twice, id="one name twice"),
    pytest.param(_bomb, id="ten billion paths in a kilobyte"),
    pytest.param(_large_folder, id="a folder of 35 MB"),
]


@pytest.mark.parametrize("tree", TREES)
def test_a_tree_that_no_reader_should_follow_is_an_alarm_and_the_last_good_one_stays(
    running: Running, tree
) -> None:
    running.run(1)
    assert egs("validate", running.repo).code == 0
    repos.commit_tree(running.repo, tree(running.repo), "evil")
    evil = repos.tip(running.repo, "evil")
    began = spent_s()
    (running.repo / "refs/heads/main").write_text(_on_top(running.repo, evil) + "\n")
    running.run(5)
    assert spent_s() - began < 6 * MOST_S
    assert running.status("slices/a/gprs/good.yaml")["status"]["phase"] == Phase.PROVISIONED
    assert any(reason is EventReason.ALARM and "main" in message for reason, message in running.events)
    answer = egs("validate", running.repo)
    assert answer.code != 0
    assert answer.err


def _on_top(repo: Path, evil: str) -> str:
    """A commit with the tree of `evil` whose parent is main: nothing is rewritten."""
    tree, who = repos.git(repo, "rev-parse", f"{evil}^{{tree}}"), b"E <e@example.com> 1767225600 +0000"
    parent = repos.tip(repo).encode()
    data = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n\nx\n" % (tree.encode(), parent, who, who)
    return repos.write_object(repo, "commit", data)


def test_a_commit_of_megabytes_is_not_read(running: Running) -> None:
    running.run(1)
    tree, who = repos.git(running.repo, "rev-parse", "main^{tree}"), b"E <e@example.com> 1767225600 +0000"
    head = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n\n" % (
        tree.encode(), repos.tip(running.repo).encode(), who, who,
    )  # fmt: skip
    oid = repos.write_object(running.repo, "commit", head + b"x" * 5_000_000)
    (running.repo / "refs/heads/main").write_text(oid + "\n")
    running.run(5)
    assert running.status("slices/a/gprs/good.yaml")["status"]["phase"] == Phase.PROVISIONED
