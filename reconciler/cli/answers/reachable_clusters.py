"""Clusters that a person only looks at: by their own kubeconfigs, by reports, by a copy."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from reconciler.clusters.kubernetes.api.connection import Keys
from reconciler.clusters.kubernetes.driver import Home, KubernetesCluster
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.open_cluster import DriverOptions, open_cluster
from reconciler.clusters.pulled_cluster import PATTERN, PullCluster, ReportBranches
from reconciler.model.cluster_port import ClusterDriver
from reconciler.sources.believed_keys import believed
from reconciler.sources.command_errors import NotAllowed
from reconciler.sources.source import Source
from schemas.documents.cluster import Access, ClusterSpec
from schemas.errors import UserError

MISSING = "ClusterAccessMissing"


@dataclass(frozen=True, slots=True)
class Ways:
    """How the person can reach clusters."""

    kubeconfigs: Path | None = None  # folder of files by the names that manifests give
    kubeconfig: Path | None = None  # of the one cluster that is looked at
    context: str | None = None  # of that kubeconfig
    state: Path | None = None  # folder of a controller with simulated clusters
    home: Home = field(default_factory=Home)


class Reach:
    """Opens clusters one by one; `stack` closes them."""

    def __init__(self, source: Source, ways: Ways, stack: contextlib.ExitStack) -> None:
        self._source, self._ways, self._stack = source, ways, stack
        self._reports: ReportBranches | None = None

    def open(self, name: str, spec: ClusterSpec) -> ClusterDriver:
        """A driver for looking. If there is no way, raises `EgsError` that says what to give."""
        driver = self._opened(name, spec)
        self._stack.callback(driver.close)
        return driver

    def _opened(self, name: str, spec: ClusterSpec) -> ClusterDriver:
        access = spec.access or Access(in_cluster=True)
        if self._ways.kubeconfig is not None and spec.driver == "kubernetes":
            door = member_tokens.opened(str(self._ways.kubeconfig), self._ways.context)
            return KubernetesCluster(name, spec, member_tokens.connected(door, name), self._ways.home)
        if access.pull:
            return PullCluster(name, spec, partial(self._branches(name).read, name, spec))
        if spec.driver == "embedded":
            return open_cluster(name, spec, DriverOptions(self._copied(name)))
        folder = None if self._ways.kubeconfigs is None else self._ways.kubeconfigs.expanduser()
        keys = Keys(folder, self._ways.home.namespace)
        try:
            return open_cluster(name, spec, DriverOptions(keys=keys, home=self._ways.home))
        except UserError as error:
            if error.reason != MISSING:
                raise
            files = f"--kubeconfigs DIR with a file {access.kubeconfig}, or " if access.kubeconfig else ""
            text = f"cluster {name}: give {files}--cluster {name} --kubeconfig FILE, a kubeconfig of your own"
            raise NotAllowed(text, MISSING) from error

    def _branches(self, name: str) -> ReportBranches:
        if self._reports is None:
            status = self._source.status()
            if status is None:
                raise NotAllowed(
                    f"cluster {name} reports to the repository, but there is no status here", MISSING
                )
            status[0].fetch([PATTERN])
            self._reports = ReportBranches(status[0], believed())
        return self._reports

    def _copied(self, name: str) -> Path:
        """A folder with a copy of the cluster's state: looking at a simulation would let its time pass."""
        if self._ways.state is None:
            text = f"cluster {name} is simulated and lives in its controller's folder; name that with --state DIR"
            raise NotAllowed(text, MISSING)
        file = self._ways.state.expanduser() / "clusters" / f"{name}.json"
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="egs-diff-")))
        try:
            shutil.copy(file, folder)
        except OSError as error:
            text = f"cluster {name}: {file} cannot be read ({error.strerror}); --state names the controller's folder"
            raise NotAllowed(text, MISSING) from error
        return folder


def home_of(project: str | None, namespace: str | None) -> Home:
    """Whose marks are looked for; None: a controller's default."""
    usual = Home()
    return Home(project or usual.project, namespace or usual.namespace)
