"""A real control plane for tests: API server, controller manager and scheduler, but no kubelet.

`EGS_TEST_KUBE` is a script with `up DIR` (starts one, prints its kubeconfig's path) and `wipe DIR`; or
`EGS_TEST_KUBECONFIG` is the kubeconfig of a cluster that tests may do anything to. It may be as old as the oldest
that is supported, and most tests see that one (fixtures `plane` and `kube`). `EGS_TEST_KUBE_NEW` is a script of the
same kind whose API server is of 1.36 or newer: it serves custom resources and admission policies that change objects
(fixtures `new_plane` and `new_kube`); `tests/support/controlplane/kube` is one, after `kube build`.

Without them the tests that need one are skipped, and say so. One control plane of each kind serves all tests of one
pytest process; each test finds it empty.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rate
from reconciler.clusters.kubernetes.api.connection import from_text
from tests.support import profile
from tests.support.emptied import Emptied, wipe_by_requests
from tests.support.etcd import Etcd, Listings, store_in
from tests.support.in_memory import memory_folder

T = TypeVar("T")

WHY = "needs a Kubernetes control plane: set EGS_TEST_KUBE (a script that starts one) or EGS_TEST_KUBECONFIG"
NEW = "EGS_TEST_KUBE_NEW"
WHY_NEW = f"needs a control plane of 1.36 or newer: set {NEW} to tests/support/controlplane/kube, after `kube build`"
ON_OLD, ON_NEW = pytest.mark.xdist_group("plane"), pytest.mark.xdist_group("new_plane")
"""Marks of parameters that need one; `tests/conftest.py` marks the tests whose fixtures say it."""
FAST = Rate(qps=2000, burst=4000)
UP_S = 180
THRIFTY = {"GOGC": "500"}
"""Memory is cheaper than a quarter of the API server's time."""
AGGREGATED = "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin"
"""Its rules are put together by a controller, a moment after the start."""


class Plane:
    """One running control plane."""

    def __init__(self, kubeconfig: Path, store: Etcd | None = None) -> None:
        """At rest and empty. Without its store a wipe takes longer."""
        self.kubeconfig = kubeconfig
        self.api = self.connect()
        self._emptied = Emptied(self.api, store) if store else None
        self._listings = Listings(self.api, store)

    def connect(self, rate: Rate = FAST) -> Api:
        """Another client of it, as its admin."""
        return from_text("east", self.kubeconfig.read_text(), None, rate)

    def items(self, path: str) -> list[Json]:
        """A whole collection, to be read only; it costs little while nothing changes."""
        return self._listings.items(path)

    def wipe(self) -> None:
        """Back to what it was when it started: no node, no namespace, no object of a test."""
        if self._emptied:
            self._emptied.wipe()
        else:
            wipe_by_requests(self.api)


@contextlib.contextmanager
def control_plane(variable: str = "EGS_TEST_KUBE", why: str = WHY) -> Iterator[Plane]:
    """The one given, or one started by the script that `variable` names for as long as it is needed."""
    if profile.PROFILE == "quick":
        pytest.skip("the quick profile starts no control plane")
    given = os.environ.get("EGS_TEST_KUBECONFIG") if variable == "EGS_TEST_KUBE" else None
    script = os.environ.get(variable)
    if given:
        yield Plane(Path(given))
        return
    if not script:
        pytest.skip(why)
    place = memory_folder()
    with tempfile.TemporaryDirectory(prefix="egs-kube-", dir=place, ignore_cleanup_errors=True) as folder:
        try:
            _certificate(Path(folder) / "certs")
            done = subprocess.run(
                [script, "up", folder],
                stdout=subprocess.PIPE,
                timeout=UP_S,
                check=True,
                text=True,
                env={**THRIFTY, **os.environ},
            )
            kubeconfig = Path(done.stdout.strip().splitlines()[-1])
            api = Plane(kubeconfig).api
            eventually(lambda: api.find("/api/v1/namespaces/default"), "the namespace default")
            eventually(lambda: (api.find(AGGREGATED) or {}).get("rules"), "its controllers at work")
            yield Plane(kubeconfig, store_in(Path(folder)))
        finally:
            subprocess.run([script, "wipe", folder], check=False, timeout=UP_S)


class Lent:
    """A control plane that may end before the session does: beside the tests, as its end takes seconds."""

    def __init__(self, starts: AbstractContextManager[Plane]) -> None:
        self._held = contextlib.ExitStack()
        self.running = self._held.enter_context(starts)
        self._ends = threading.Thread(target=self._held.close)

    def __enter__(self) -> Lent:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ends.ident:
            self.end_soon()
        self._ends.join()

    def end_soon(self) -> None:
        self._ends.start()


def _certificate(folder: Path) -> None:
    """Of an elliptic curve: with the RSA key that an API server makes, each connection takes it two milliseconds."""
    folder.mkdir()
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = (
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:kubernetes.default.svc",
    )
    files = ("-keyout", str(folder / "apiserver.key"), "-out", str(folder / "apiserver.crt"))
    subprocess.run(["openssl", "req", "-x509", *curve, *names, *files], check=True, capture_output=True)


def eventually(look: Callable[[], T | None], what: str, within_s: float = 120) -> T:
    """The first true answer; other processes need their time, so this is the one place where tests wait.

    Kubernetes' scheduler looks again at a pod that fitted nowhere at the moment when a node came after 60 to
    90 s only, so that less than two minutes of patience is no proof of a fault.
    """
    end, pause_s = time.monotonic() + within_s, 0.01
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"never seen within {within_s:g} s: {what}; last: {found!r}")
        time.sleep(pause_s)
        pause_s = min(0.05, 1.5 * pause_s)


def gpu_node(name: str, gpus: int = 8, product: str = "NVIDIA-H100-80GB-HBM3", **labels: str) -> Json:
    """A Ready GPU node as GPU feature discovery labels it; in the names of further labels `__` stands for a slash."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "nvidia.com/gpu.product": product,
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": "81559",
                **{key.replace("__", "/"): value for key, value in labels.items()},
            },
        },
        "status": {
            "capacity": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)},
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def await_new_nodes(api: Api) -> None:
    """Until every node has lost the taint with which it begins.

    The node controller takes it off by writing all taints as it saw them: those that came in between are lost.
    """
    eventually(lambda: not any(map(_is_new, api.items("/api/v1/nodes"))), "nodes to be at rest")


def _is_new(node: Json) -> bool:
    return any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints") or ())


def cpu_node(name: str) -> Json:
    """A Ready node without a GPU."""
    node = gpu_node(name)
    node["metadata"]["labels"] = {"kubernetes.io/hostname": name}
    for counted in (node["status"]["capacity"], node["status"]["allocatable"]):
        del counted["nvidia.com/gpu"]
    return node
