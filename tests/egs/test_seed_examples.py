"""The examples of the documentation, as they stand there, against a live server. K1, K2.

Each runs in a program of its own, with a repository of its own in which the documentation's API key belongs to an
admin and the fleet has the documentation's cluster. The name of the documentation's server leads to ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from schemas.documents.apikey import digest_of
from schemas.reading.yaml_text import dump
from tests.support.portal import HEAD, Site
from tests.support.tls import named
from tests.support.world import cluster

HOST = "egs-core-apis.example.com"
KEY = "5067bd55-1aef-4c84-8987-3e966e917f07"
WORKSPACE = "llm-gpt-4o"


def _examples() -> dict[str, str]:
    """The code of each, by the function that it is about; lines that begin with ==== name it."""
    text = Path(__file__).with_name("seed_examples.txt").read_text()
    found = {}
    for part in text.split("==== ")[1:]:
        name, _, code = part.partition("\n")
        found[name] = code
    return found


EXAMPLES = _examples()
PHASE_AFTER = {
    "request_gpu": "Provisioning",
    "cancel_gpu_request": "Cancelled",
    "update_gpu_request_priority": "Provisioning",
    "update_gpu_request_name": None,
    "release_gpu": "Cancelled",
    "gpu_request_status": "Provisioning",
    "gpu_request_status_for_workspace": "Provisioning",
}
"""What the controller makes of the request afterwards; None: there is none."""


@pytest.fixture
def site(tmp_path):
    spec = {"sha256": digest_of(KEY), "email": "ada@example.com", "role": "Owner"}
    key = dump({**HEAD, "kind": "ApiKey", "metadata": {"name": "documented"}, "spec": spec})
    pool = {"name": "a100", "gpuShape": "A100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 2}
    fleet = {
        "clusters/worker-1.yaml": cluster("worker-1", pools=[{**pool, "instanceType": "a2-ultragpu-8g"}]),
        "keys/documented.yaml": key,
        **dict.fromkeys(
            (
                "clusters/east.yaml",
                "clusters/west.yaml",
                "slices/vision/slice.yaml",
                "slices/nlp/slice.yaml",
                "templates/small.yaml",
            )
        ),
    }
    made = Site(tmp_path, fleet, poll=timedelta(minutes=10))
    made.settle()
    yield made
    made.close()


def test_they_are_all_there():
    assert list(EXAMPLES) == list(PHASE_AFTER)
    assert all(code.startswith("import egs\n") for code in EXAMPLES.values())


@pytest.mark.parametrize("name", PHASE_AFTER)
def test_it_runs_as_it_stands(name, site, tmp_path):
    folder = tmp_path / "tls"
    folder.mkdir()
    with named(site.portal.app, HOST, folder) as environment:
        ran = subprocess.run(
            [sys.executable, "-c", EXAMPLES[name]],
            env={"PATH": os.environ["PATH"], **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ran.returncode == 0, ran.stderr
    site.settle()
    requests = {key: str(status.phase) for key, status in site.view.facts.requests.items()}
    assert list(requests.values()) == ([] if PHASE_AFTER[name] is None else [PHASE_AFTER[name]])
    if "create_workspace" in EXAMPLES[name]:
        assert "john.doe@avesha.io" in (site.main(f"slices/{WORKSPACE}/slice.yaml") or "")
        assert "ada <ada@example.com>" in site.log()[0] or "Ada" in site.log()[0]
    if name == "update_gpu_request_priority":
        assert "PriorityClamped" in ran.stderr
        assert site.view.facts.requests[next(iter(requests))].accepted_spec.priority == 300
    else:
        assert ran.stderr == ""
