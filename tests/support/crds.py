"""Definitions of other projects' custom resources, as published: from the Go module proxy, by exact version.

`go mod download` fetches a module once and keeps it in Go's cache. Without Go or without a way to the proxy the tests
that need one are skipped, and say so. Descriptions and conversions by webhook are left out: no webhook runs here.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from tests.support.kube import eventually

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FETCH_S = 120


@dataclass(frozen=True, slots=True)
class Published:
    """A Go module, and where its definitions are inside it."""

    module: str
    version: str
    folder: str  # or one file: of some modules reading all definitions takes seconds

    def files(self, inside: str) -> Iterator[bytes]:
        """The YAML files whose paths in the module begin so; skips the test where they cannot be had."""
        root = f"{self.module}@{self.version}/"
        with ZipFile(_fetched(self)) as module:
            for name in sorted(module.namelist()):
                if name.startswith(root + inside) and name.endswith(".yaml"):
                    yield module.read(name)


GATEWAY_API = Published(
    "sigs.k8s.io/gateway-api", "v1.7.0", "config/crd/standard/gateway.networking.k8s.io_httproutes"
)
JOBSET = Published("sigs.k8s.io/jobset", "v0.12.0", "config/components/crd/bases")
CLUSTER_API = Published("sigs.k8s.io/cluster-api", "v1.14.2", "core/config/crd/bases")
KARPENTER = Published("sigs.k8s.io/karpenter", "v1.15.0", "pkg/apis/crds")
KEDA = Published("github.com/kedacore/keda/v2", "v2.21.0", "config/crd/bases/keda.sh_scaledobjects")
KSERVE = Published(
    "github.com/kserve/kserve", "v0.20.0", "config/crd/full/serving.kserve.io_inferenceservices"
)
LWS = Published("sigs.k8s.io/lws", "v0.9.0", "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets")
KUBERAY = Published(
    "github.com/ray-project/kuberay/ray-operator", "v1.6.1", "config/crd/bases/ray.io_rayjobs"
)
TRAINING_OPERATOR = Published(
    "github.com/kubeflow/training-operator", "v1.9.3", "manifests/base/crds/kubeflow.org_pytorchjobs"
)
TRAINER = Published(
    "github.com/kubeflow/trainer/v2", "v2.2.1", "manifests/base/crds/trainer.kubeflow.org_trainjobs"
)
MCS = Published("sigs.k8s.io/mcs-api", "v0.5.2", "config/crd/multicluster.x-k8s.io_serviceexports")
CILIUM = Published(
    "github.com/cilium/cilium", "v1.18.4", "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies"
)
KUEUE = Published("sigs.k8s.io/kueue", "v0.18.2", "config/components/crd/bases")


def install_crds(api: Api, published: Published, *plurals: str, version: str | None = None) -> None:
    """All of them, or these; as the version that is stored, or as this one alone. Returns once they are served."""
    for definition in map(copy.deepcopy, definitions(published)):
        spec = definition["spec"]
        if plurals and spec["names"]["plural"] not in plurals:
            continue
        if version is not None:
            for one in spec["versions"]:
                one["served"] = one["storage"] = one["name"] == version
        api.create(PATH, definition)
        served = next(one["name"] for one in spec["versions"] if one["storage"])
        place, plural = f"/apis/{spec['group']}/{served}", spec["names"]["plural"]
        # Discovery comes a moment after the resource itself.
        eventually(lambda place=place, plural=plural: plural in _listed(api, place), f"{plural} are served")


def _listed(api: Api, place: str) -> set[str]:
    return {found["name"] for found in (api.find(place) or {}).get("resources") or ()}


@cache
def definitions(published: Published) -> tuple[Json, ...]:
    """All definitions of the module; skips the test where they cannot be had."""
    found = [yaml.load(text, yaml.CSafeLoader) for text in published.files(published.folder)]
    assert found, f"{published.module} {published.version} has no definition in {published.folder}"
    for definition in found:
        definition["spec"].pop("conversion", None)
    return tuple(_without_descriptions(definition) for definition in found)


def _fetched(published: Published) -> Path:
    """The module's archive: one that asks for a newer Go is not unpacked, but it is there."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip(f"needs the definitions of {published.module}: install Go")
    words = [go, "mod", "download", "-json", f"{published.module}@{published.version}"]
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=FETCH_S, check=False, env=environment, cwd="/"
    )
    fetched = json.loads(done.stdout or "{}")
    if "Zip" not in fetched:
        pytest.skip(f"needs the definitions of {published.module}: the Go module proxy does not answer")
    return Path(str(fetched["Zip"]))


def _without_descriptions(part: Any) -> Any:
    """A text named `description` says something; a map of that name is a field of the resource."""
    if isinstance(part, dict):
        kept = {k: v for k, v in part.items() if k != "description" or not isinstance(v, str)}
        return {key: _without_descriptions(value) for key, value in kept.items()}
    return [_without_descriptions(each) for each in part] if isinstance(part, list) else part
