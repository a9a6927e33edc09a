"""One repository with its controller on a simulated cluster, and doors from a real API server into it."""

from __future__ import annotations

from reconciler.clusters.kubernetes.names import RELEASE
from reconciler.compose import controller
from reconciler.gpr_objects.door import DoorSettings, RequestDoor
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from schemas.reading.reader import READER_VERSION
from tests.support.kube import eventually
from tests.support.repos import bare, git
from tests.support.requests import Objects
from tests.support.world import at, cluster, project, slice_

SPEC = {"nodes": 1, "duration": "1h"}
PATH = "slices/vision/gprs/train.yaml"
FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/vision/slice.yaml": slice_("vision", namespaces=["vision-train", "vision-eval"]),
}


class Rig:
    """One repository, its controller on a simulated cluster, and doors to one real API server."""

    def __init__(self, plane, folder, via="commit"):
        self.plane, self.folder, self.via = plane, folder, via
        self.repo = bare(folder / "fleet.git", FILES)
        self.train, self.eval = Objects(plane.api, "vision-train"), Objects(plane.api, "vision-eval")
        self.controller = controller(self.settings("controller"), adopt=True)
        self.minutes, self.doors = 0.0, 0
        self.door = self.opened()

    def settings(self, name):
        return Settings(repo=str(self.repo), state=self.folder / name, pushes_per_minute=None)

    def opened(self):
        """Another process of the door, that knows nothing."""
        self.doors += 1
        settings = self.settings(f"door-{self.doors}")
        store = GitStore(settings.repo, settings.state / "mirror.git")
        door = RequestDoor(
            self.plane.connect(),
            store,
            DocumentCache(None, READER_VERSION),
            settings,
            DoorSettings("east", self.via),
        )
        door.start()
        return door

    def knows(self, look):
        """Until the door's watch has it."""
        eventually(lambda: look(self.door._objects.items()), "the door hears of it")

    def pass_(self, name="train", namespace="vision-train", *, gone=False):
        """The door has heard of the object as it is now, and has made one pass."""
        key = f"{namespace}/{name}"
        if gone:
            self.knows(lambda items: key not in items)
        else:
            item = Objects(self.plane.api, namespace).get(name)
            wanted = (
                item["metadata"].get("annotations", {}).get(RELEASE) == "true",
                item["metadata"]["generation"],
            )
            self.knows(
                lambda items: key in items and (items[key].is_released, items[key].generation) == wanted
            )
        return self.door.step(at(self.minutes))

    def cycle(self, minutes=0.0):
        """The controller looks at every instant that matters within so many minutes."""
        now, until = at(self.minutes), at(self.minutes + minutes)
        for _ in range(200):
            wake = self.controller.cycle(now).wake
            if wake > now and wake > until:
                self.minutes += minutes
                return
            now = max(now, wake)
        raise AssertionError("no rest")

    def file(self, branch="main", path=PATH):
        return git(self.repo, "show", f"{branch}:{path}")

    def files(self, branch="main"):
        return git(self.repo, "ls-tree", "-r", "--name-only", branch).splitlines()

    def log(self, shown, branch="main"):
        return git(self.repo, "log", "-1", f"--format={shown}", branch)

    def commits(self):
        return int(git(self.repo, "rev-list", "--count", "main"))

    def close(self):
        self.door.stop()
