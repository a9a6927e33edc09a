"""Documents of endpoints; what a test does not care about is left out."""

from __future__ import annotations

from typing import Any

import yaml

from schemas.documents.endpoint import Endpoint, EndpointSpec
from schemas.reading.reader import read_document


def version(name: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"name": name, "image": "example.com/vllm:1", "model": "acme/small", **spec}


def document(name: str = "chat", slice_: str = "a", **spec: Any) -> str:
    """An endpoint on request x with one version, v1."""
    told = {"slice": slice_, "gpr": "x", "versions": [version()], "weights": {"v1": 100}, **spec}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Endpoint", "metadata": {"name": name}}
    return yaml.safe_dump({**head, "spec": told}, sort_keys=False)


def spec_of(**spec: Any) -> EndpointSpec:
    """As the reader reads it."""
    read = read_document("slices/a/endpoints/chat.yaml", document(**spec).encode())
    assert isinstance(read, Endpoint), read
    return read.spec
