"""Manifests in the docs are what they say: each is read as the check and the controller read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from schemas.reading.reader import read_document

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHORTENED = re.compile(r"…|metadata: \{.*namespace: ")
"""What is left out, and objects of a cluster, which are no files."""
PATHS = {
    "Project": "project.yaml",
    "Cluster": "clusters/{name}.yaml",
    "Slice": "slices/{name}/slice.yaml",
    "GPR": "slices/{slice}/gprs/{name}.yaml",
    "GPRTemplate": "templates/{name}.yaml",
    "WorkspaceRequest": "requests/{name}.yaml",
    "Workload": "slices/{slice}/workloads/{name}.yaml",
    "Endpoint": "slices/{slice}/endpoints/{name}.yaml",
    "GPRTemplateBinding": "bindings/{name}.yaml",
    "ApiKey": "keys/{name}.yaml",
    "Profile": "people/{name}.yaml",
    "Approval": "approvals/{slice}/{gpr}/{name}.yaml",
}
"""Where a manifest of each kind lies; what other documents say about it is not looked at."""


def manifests() -> Iterator[object]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for i, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), start=1):
            for j, text in enumerate(re.split(r"^---\n", block, flags=re.MULTILINE), start=1):
                if "apiVersion: egs.dev/" in text and "\nkind: " in text and not SHORTENED.search(text):
                    yield pytest.param(text, id=f"{page.relative_to(ROOT)} block {i}.{j}")


def examples() -> Iterator[object]:
    for file in sorted(
        file
        for room in ("endpoints", "queues", "services")
        for file in (ROOT / "examples" / room).glob("*.yaml")
    ):
        text = file.read_text(encoding="utf-8")
        if "apiVersion: egs.dev/" in text:
            yield pytest.param(text, id=str(file.relative_to(ROOT)))


@pytest.mark.parametrize("text", [*manifests(), *examples()])
def test_a_manifest_in_the_docs_is_valid(text: str) -> None:
    content = yaml.safe_load(text)
    names = {**content["spec"], **content["metadata"]}
    read = read_document(PATHS[content["kind"]].format(**names), text.encode())
    assert not isinstance(read, tuple), "; ".join(f"{p.line}: {p.message}; {p.fix}" for p in read)
