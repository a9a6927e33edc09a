"""Kueue on the newer control plane: its real resources, and its real manager where that was built.

`EGS_TEST_KUEUE` is the folder that `fetch` fills: the definitions of its resources, and after `fetch manager` the
manager. Tests that need what is not there are skipped, with the reason.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from tests.support.kube import eventually

GROUP = "/apis/kueue.x-k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = ("topologies", "resourceflavors", "clusterqueues", "localqueues")
"""Those that the controller writes."""
WHY = "needs Kueue's resources: set EGS_TEST_KUEUE to the folder that tests/support/kueue/fetch prints"
WHY_MANAGER = (
    "needs Kueue's manager: run `tests/support/kueue/fetch manager` (minutes), and set EGS_TEST_KUEUE"
)


def folder() -> Path:
    """What was fetched; skips the test if nothing was."""
    given = os.environ.get("EGS_TEST_KUEUE")
    if not given or not (Path(given) / "crds").is_dir():
        pytest.skip(WHY)
    return Path(given)


def manager() -> Path:
    """The manager; skips the test if it was not built."""
    found = folder() / "manager"
    if not found.is_file():
        pytest.skip(WHY_MANAGER)
    return found


def served(api: Api, *plurals: str, version: str | None = None) -> None:
    """The API server has these resources; `version`: only as this one."""
    for plural in plurals:
        api.create(CRDS, _definition(plural, version))
    path = f"{GROUP}/{version or 'v1beta2'}"
    # Discovery comes a moment after the resource itself, and both the driver and Kueue go by it.
    eventually(lambda: set(plurals) <= _listed(api, path), "Kueue's resources are served")


def _listed(api: Api, path: str) -> set[str]:
    return {found["name"] for found in (api.find(path) or {}).get("resources") or ()}


def everything() -> tuple[str, ...]:
    """All of Kueue's resources, by their plurals."""
    return tuple(sorted(path.stem.removeprefix("kueue.x-k8s.io_") for path in (folder() / "crds").iterdir()))


def _definition(plural: str, version: str | None) -> Json:
    text = (folder() / "crds" / f"kueue.x-k8s.io_{plural}.yaml").read_text()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = _plain(yaml.load(text, Loader=loader))
    for one in found["spec"]["versions"]:
        if version is not None:
            one["served"] = one["storage"] = one["name"] == version
    return found


def _plain(value: Any) -> Any:
    """Without descriptions: they are most of it, and the server keeps them in memory."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if not (k == "description" and isinstance(v, str))}
    return [_plain(item) for item in value] if isinstance(value, list) else value
