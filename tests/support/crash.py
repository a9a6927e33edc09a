"""A controller that is killed: a fixed story on a real bare repository and a cluster on disk, in simulated time.

`Walk` plays the story once, without a fault. At every call that writes it stands still: the folder is copied, a fork
of the controller makes that very call in the copy and is killed (SIGKILL) before it or after it, a new controller is
started there at the next instant, and the story goes on to its end. Then the copy is thrown away and the walk goes on.
Each kill so costs what comes after it, not what came before, and the walk itself is the run that nothing befell.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.ports import Ports
from reconciler.settings import Settings
from reconciler.status.parse import request_status
from reconciler.status.render import request_path
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Outcome
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import TERMINAL
from tests.support import repos
from tests.support.witness import Hold, RecordedState, Verdict, judge
from tests.support.world import approval, at, cluster, gpr, gpr_path, project, slice_

T = TypeVar("T")

BRANCH = "egs/status"
PAUSE = timedelta(seconds=1)
"""A new controller is there this long after the old one was killed."""
OVER = at(180)
WRITES = ("ensure_slice", "remove_slice", "check", "add", "evict", "remove", "isolate", "restore")

FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(nodes=3, notice="0d0h1m"),
    "slices/a/slice.yaml": slice_("a"),
    "slices/b/slice.yaml": slice_("b"),
    "slices/c/slice.yaml": slice_("c", quota={"gpus": 4}),
    gpr_path("a/train"): gpr("a", "train", nodes=2, duration="40m"),
    gpr_path("b/eval"): gpr("b", "eval", nodes=2, duration="20m"),
    gpr_path("c/big"): gpr("c", "big", duration="12m"),
}
"""Two requests for two of three nodes each, and one for the third that is beyond its slice's quota."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Everything that outlives a process."""

    root: Path

    @property
    def fleet(self) -> Path:
        """The bare repository."""
        return self.root / "fleet.git"

    @property
    def holds(self) -> Path:
        """What the cluster wrote down about itself, one pickled `Hold` after the other."""
        return self.root / "holds"

    def tip(self) -> str | None:
        """Where the status branch stands, without a process."""
        ref = self.fleet / "refs" / "heads" / BRANCH
        return ref.read_text().strip() if ref.exists() else None

    def note(self, hold: Hold) -> None:
        """Write one change of hands down."""
        with self.holds.open("ab") as file:
            pickle.dump(hold, file)

    def history(self) -> list[Hold]:
        """All changes of hands."""
        found = []
        if self.holds.exists():
            with self.holds.open("rb") as file:
                while file.peek(1):
                    found.append(pickle.load(file))
        return found


Act = Callable[["Stage"], None]


def _approve(stage: Stage) -> None:
    status = request_status(
        repos.git(stage.folder.fleet, "show", f"{BRANCH}:{request_path('c/big')}").encode()
    )
    stage.commit({"approvals/c/big/ada.yaml": approval("c", "big", status.spec_digest)})


def _release(stage: Stage) -> None:
    stage.commit({gpr_path("a/train"): gpr("a", "train", nodes=2, duration="40m", earlyRelease=True)})


def _job(stage: Stage) -> None:
    stage.clusters["east"].submit(Job("trainer", "a", 8), stage.now)


def _report(healthy: bool) -> Act:
    def act(stage: Stage) -> None:
        text = (
            f"apiVersion: egs.dev/v1alpha1\nkind: AgentReport\nmetadata: {{name: {NODE}}}\ncluster: east\n"
            f"node: {NODE}\nat: {stage.now:%Y-%m-%dT%H:%M:%SZ}\nhealthy: {str(healthy).lower()}\n"
        )
        repos.commit(stage.folder.fleet, {"report.yaml": text}, f"egs/agents/east/{NODE}")

    return act


NODE = "h100-1"
STORY: tuple[tuple[datetime, Act], ...] = (
    (at(3), _job),
    (at(4), _report(False)),
    (at(6), _report(True)),
    (at(7), _approve),
    (at(15), _release),
)
"""A job waits for its node, a node goes bad and is replaced, comes back, an admin approves, and one ends early."""


@dataclass(slots=True)
class Points:
    """Every call that writes passes here; `visit` is told its number, its kind and how to make it."""

    kinds: list[str] = field(default_factory=list)
    visit: Callable[[int, str, Callable[[], Any]], None] = lambda *_: None

    def around(self, kind: str, call: Callable[[], T]) -> T:
        """Count the call, let it be visited, make it."""
        self.kinds.append(kind)
        self.visit(len(self.kinds) - 1, kind, call)
        return call()


class WatchedStore:
    """A store whose writes are counted; a late push of a dead controller may land before one of them."""

    def __init__(self, store: GitStore, points: Points, late: Late | None = None) -> None:
        self._store, self._points, self._late = store, points, late
        self.pushed: tuple[str, str, str | None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, draft: Draft) -> str:
        """See `port.Store.write`."""
        return self._points.around("write", lambda: self._store.write(draft))

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        """See `port.Store.push`."""
        self.pushed = (branch, new, expected)
        if self._late is not None:
            self._late.countdown()
        return self._points.around("push", lambda: self._store.push(branch, new, expected))


@dataclass(slots=True)
class Late:
    """A push that was under way when its controller died; it arrives just before the next life's n-th push."""

    mirror: Path
    fleet: Path
    push: tuple[str, str, str | None]
    before: int

    def countdown(self) -> None:
        """One more push of the new life is about to be made."""
        self.before -= 1
        if self.before == 0:
            branch, new, expected = self.push
            ref = f"refs/heads/{branch}"
            words = [
                "push",
                "--quiet",
                f"--force-with-lease={ref}:{expected or ''}",
                str(self.fleet),
                f"{new}:{ref}",
            ]
            subprocess.run(
                ["git", *words], cwd=self.mirror, env=repos.ENVIRONMENT, capture_output=True, check=False
            )


class WatchedState(RecordedState):
    """A state file whose replacement is counted; a half-written draft lies beside it at that moment."""

    def __init__(self, path: Path, folder: Folder, points: Points) -> None:
        super().__init__(path, folder.tip, folder.note)
        self._file, self._points = path, points

    def save(self, world: Any) -> None:
        """See `StateFile.save`."""
        if world is self._world:
            return
        self._file.with_name(self._file.name + ".new").write_bytes(b'{"format": 1, "wor')
        self._points.around("state", lambda: super(WatchedState, self).save(world))


class WatchedCluster:
    """A driver whose writes are counted."""

    def __init__(self, driver: EmbeddedCluster, points: Points) -> None:
        self._driver, self._points = driver, points

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if name not in WRITES:
            return found
        return lambda *args: self._points.around(name, lambda: found(*args))


class Stage:
    """One process life on a folder: the clusters, a controller, and the story as far as it is still to come."""

    def __init__(
        self,
        folder: Folder,
        life: int,
        now: datetime,
        story: tuple[tuple[datetime, Act], ...] = STORY,
        *,
        kind: type[Reconciler] = Reconciler,
        late: Late | None = None,
    ) -> None:
        self.folder, self.now, self.points, self.story = folder, now, Points(), story
        self.clusters: dict[str, EmbeddedCluster] = {}
        mirror = folder.root / ("mirror.git" if late is None else "mirror-2.git")
        self.store = WatchedStore(GitStore(str(folder.fleet), mirror), self.points, late)
        settings = Settings(
            str(folder.fleet), folder.root, poll=timedelta(minutes=10), pushes_per_minute=None
        )
        cache = DocumentCache(None, READER_VERSION)
        self.controller = kind(Ports(self.store, cache, self._drivers), settings, f"life-{life}", adopt=True)  # type: ignore[arg-type]

    def _drivers(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        for name, spec in specs.items():
            if name not in self.clusters:
                path = self.folder.root / f"{name}.json"
                self.clusters[name] = EmbeddedCluster(name, spec, path)
                self.clusters[name]._state = WatchedState(path, self.folder, self.points)
        return {name: WatchedCluster(driver, self.points) for name, driver in self.clusters.items()}  # type: ignore[misc]

    def commit(self, files: Mapping[str, str]) -> None:
        """People push to main."""
        repos.commit(self.folder.fleet, files)

    def play(self) -> None:
        """The rest of the story, until everything is over and clean."""
        for _ in range(500):
            while self.story and self.story[0][0] <= self.now:
                (_, act), *rest = self.story
                self.story = tuple(rest)
                act(self)
            cycle = self.controller.cycle(self.now)
            ended = cycle.facts is not None and all(
                s.phase in TERMINAL for s in cycle.facts.requests.values()
            )
            if (ended and not self.story and cycle.wake > self.now) or self.now >= OVER:
                return
            self.now = max(self.now, min([cycle.wake, *(when for when, _ in self.story[:1])]))
        raise AssertionError(f"no rest at {self.now}")

    def verdict(self) -> Verdict:
        """What a stranger says of the run so far."""
        return judge(self.store._store, BRANCH, self.folder.history(), PAUSE + PAUSE)


@dataclass(frozen=True, slots=True)
class Kill:
    """One way to die."""

    number: int
    kind: str
    when: str  # before or after the call; or: its push lands before the 1st or 2nd push of the next life

    def __str__(self) -> str:
        return f"killed {self.when} {self.kind} (write {self.number})"


Choose = Callable[[int, str], Iterator[str]]


class Walk:
    """The story, once; with every kill that `choose` names on the way."""

    def __init__(self, root: Path, choose: Choose, kind: type[Reconciler] = Reconciler) -> None:
        self._live, self._kept = root / "live", root / "kept"
        repos.bare(self._live / "fleet.git", FILES)
        self._choose, self._kind = choose, kind
        self.stage = Stage(Folder(self._live), 1, at(0), kind=kind)
        self.stage.points.visit = self._visit
        self.verdicts: dict[Kill, Verdict] = {}

    def play(self) -> Verdict:
        """The whole walk; gives the verdict on the run that nothing befell."""
        self.stage.play()
        return self.stage.verdict()

    def _visit(self, number: int, kind: str, call: Callable[[], object]) -> None:
        for when in self._choose(number, kind):
            kill = Kill(number, kind, when)
            with self._copied():
                self._killed(call if when == "after" else lambda: None)
                self.verdicts[kill] = _forked(lambda kill=kill: self._next_life(kill))

    def _killed(self, call: Callable[[], object]) -> None:
        """A fork of this process makes the call, with the writes that it is made of, and is killed."""
        pid = os.fork()
        if pid == 0:
            self.stage.points.visit = lambda *_: None
            try:
                call()
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == signal.SIGKILL

    @contextmanager
    def _copied(self) -> Iterator[None]:
        """The folder is a copy inside; the walk's own processes keep theirs, which only changes its name."""
        self._live.rename(self._kept)
        subprocess.run(["cp", "-a", str(self._kept), str(self._live)], check=True)
        try:
            yield
        finally:
            shutil.rmtree(self._live)
            self._kept.rename(self._live)

    def _next_life(self, kill: Kill) -> Verdict:
        old, folder = self.stage, self.stage.folder
        late = None
        if kill.when.startswith("lands"):
            assert old.store.pushed is not None
            late = Late(self._live / "mirror.git", folder.fleet, old.store.pushed, int(kill.when[-1]))
        stage = Stage(folder, 2, old.now + PAUSE, old.story, kind=self._kind, late=late)
        stage.play()
        return stage.verdict()


def _forked(work: Callable[[], T]) -> T:
    """What the work gives in a process of its own; what it raises is raised here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer: object = work()
        except BaseException as error:
            answer = AssertionError(f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pickle.load(pipe)
    os.waitpid(pid, 0)
    if isinstance(answer, AssertionError):
        raise answer
    return answer  # type: ignore[return-value]
