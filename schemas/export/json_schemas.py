"""The JSON Schema of each kind, made from its model."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from schemas.documents.base import API_VERSION, Document
from schemas.reading.units import format_duration

_EXAMPLE_SPECS: dict[str, dict[str, Any]] = {
    "Project": {"admins": [{"email": "ada@example.com"}], "limits": {"nodesPerRequest": 16}},
    "Cluster": {
        "driver": "embedded",
        "mode": "manage",
        "pools": [
            {
                "name": "h100",
                "gpuShape": "H100-80GB",
                "gpusPerNode": 8,
                "memoryPerGpu": 80,
                "rdma": True,
                "nodes": 12,
            }
        ],
    },
    "Slice": {
        "members": [{"email": "bo@example.com"}],
        "clusters": ["east"],
        "namespaces": ["vision-train"],
        "quota": {"gpus": 32},
        "limits": {"maxDuration": "7d", "maxPriority": 200, "maxNodes": 8},
    },
    "GPR": {
        "slice": "vision",
        "nodes": 2,
        "gpusPerNode": 8,
        "gpuShape": "H100-80GB",
        "duration": "0d6h0m",
        "priority": 150,
    },
    "GPRTemplate": {"nodes": 1, "gpusPerNode": 4, "duration": "0d2h0m"},
    "Approval": {
        "slice": "vision",
        "gpr": "llama-finetune",
        "decision": "approve",
        "specDigest": f"sha256:{'0' * 64}",
        "limit": {"gpus": 64, "nodes": 8},
        "notAfter": "2026-12-01T00:00:00Z",
    },
    "Workload": {
        "slice": "vision",
        "gpr": "llama-finetune",
        "manifests": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "train"},
                "spec": {
                    "completions": 2,
                    "parallelism": 2,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "train",
                                    "image": "example.com/train:1",
                                    "resources": {"limits": {"nvidia.com/gpu": 8}},
                                }
                            ],
                        }
                    },
                },
            }
        ],
    },
    "Endpoint": {
        "slice": "vision",
        "gpr": "captions",
        "backend": "vllm",
        "versions": [
            {"name": "v1", "image": "vllm/vllm-openai:v0.11.0", "model": "Qwen/Qwen2.5-VL-7B-Instruct"},
        ],
        "weights": {"v1": 100},
        "route": {"hostnames": ["captions.example.com"]},
    },
    "WorkspaceRequest": {
        "requester": {"email": "cleo@example.com"},
        "clusters": ["east"],
        "namespaces": ["robots"],
        "quota": {"gpus": 16},
        "reason": "Grasping experiments until spring",
    },
    "GPRTemplateBinding": {
        "clusters": [{"cluster": "east", "templates": ["finetune-small"], "default": "finetune-small"}]
    },
    "ApiKey": {
        "sha256": "0" * 64,
        "email": "bo@example.com",
        "role": "Editor",
        "slices": ["vision"],
        "notAfter": "2027-03-01T00:00:00Z",
    },
    "Profile": {
        "email": "bo@example.com",
        "notifications": [{"name": "mail", "secret": "mail", "events": ["GPRProvisioned", "warnings"]}],
    },
}
"""Examples that editors offer for each kind that people write."""


class AsWritten(GenerateJsonSchema):
    """Defaults in the form used in files."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def schema_of(model: type[Document]) -> dict[str, Any]:
    """JSON Schema 2020-12 of a kind, as its files are written (camelCase, all of the head required)."""
    schema = model.model_json_schema(by_alias=True, schema_generator=AsWritten)
    schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind"})
    if model.__name__ in _EXAMPLE_SPECS:
        schema["examples"] = [_example(model.__name__)]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _example(kind: str) -> dict[str, Any]:
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "example"}}
    return {**head, "spec": _EXAMPLE_SPECS[kind]}
