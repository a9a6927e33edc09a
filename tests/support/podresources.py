"""A kubelet's pod-resources API: real protobuf messages, and a real gRPC server on a unix socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STRING, INT64, MESSAGE = 9, 3, 11
ONE_TOPOLOGY = ("NUMATopology",)  # a message that is not repeated

FIELDS = {  # k8s.io/kubelet/pkg/apis/podresources/v1/api.proto, release 1.34
    "ListPodResourcesResponse": [("pod_resources", 1, "PodResources")],
    "PodResources": [("name", 1, STRING), ("namespace", 2, STRING), ("containers", 3, "ContainerResources")],
    "ContainerResources": [
        ("name", 1, STRING),
        ("devices", 2, "ContainerDevices"),
        ("cpu_ids", 3, [INT64]),
        ("memory", 4, "ContainerMemory"),
        ("dynamic_resources", 5, "DynamicResource"),
    ],
    "ContainerMemory": [("memory_type", 1, STRING), ("size", 2, INT64)],
    "ContainerDevices": [
        ("resource_name", 1, STRING),
        ("device_ids", 2, [STRING]),
        ("topology", 3, ONE_TOPOLOGY),
    ],
    "NUMATopology": [("nodes", 1, "NUMANode")],
    "NUMANode": [("ID", 1, INT64)],
    "DynamicResource": [
        ("class_name", 1, STRING),
        ("claim_name", 2, STRING),
        ("claim_namespace", 3, STRING),
        ("claim_resources", 4, "ClaimResource"),
    ],
    "ClaimResource": [
        ("cdi_devices", 1, "CDIDevice"),
        ("driver_name", 2, STRING),
        ("pool_name", 3, STRING),
        ("device_name", 4, STRING),
    ],
    "CDIDevice": [("name", 1, STRING)],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            repeated = isinstance(kind, list | str)
            kind = kind[0] if isinstance(kind, list | tuple) else kind
            made = message.field.add(name=field, number=number, label=3 if repeated else 1)
            made.type = MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                made.type_name = f".v1.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{n}")) for n in FIELDS}


CLASSES = _classes()


def response(pods: list[dict[str, Any]]) -> bytes:
    """The bytes of a ListPodResourcesResponse with these pods."""
    return CLASSES["ListPodResourcesResponse"](pod_resources=pods).SerializeToString()


def pod(name: str, *containers: dict[str, Any], namespace: str = "nlp") -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "containers": list(containers)}


def container(name: str, *ids: str, resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    """With devices of a device plugin, and everything beside them that a kubelet tells."""
    return {
        "name": name,
        "cpu_ids": [0, 1, 300],
        "memory": [{"memory_type": "memory", "size": 1 << 33}],
        "devices": [{"resource_name": resource, "device_ids": list(ids), "topology": {"nodes": [{"ID": 1}]}}],
    }


def claiming(name: str, *devices: str, driver: str = "gpu.nvidia.com") -> dict[str, Any]:
    """With devices of Dynamic Resource Allocation."""
    claims = [
        {
            "cdi_devices": [{"name": f"k8s.gpu.nvidia.com/device={device}"}],
            "driver_name": driver,
            "pool_name": "h100-1",
            "device_name": device,
        }
        for device in devices
    ]
    resource = {"claim_name": "gpus", "claim_namespace": "nlp", "claim_resources": claims}
    return {"name": name, "dynamic_resources": [resource]}


@contextmanager
def kubelet(socket: Path, answer: bytes | grpc.StatusCode) -> Iterator[None]:
    """A server that answers List with these bytes, or refuses with a status."""

    def listed(_: bytes, context: grpc.ServicerContext) -> bytes:
        if isinstance(answer, grpc.StatusCode):
            context.abort(answer, "not today")
        return answer

    methods = {"List": grpc.unary_unary_rpc_method_handler(listed)}  # bytes in, bytes out
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", methods),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(None)
