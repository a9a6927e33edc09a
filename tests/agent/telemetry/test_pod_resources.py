"""Which pods use which GPUs: from a real kubelet's messages, over a real gRPC server (H1, H3)."""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Thread

import grpc
import pytest

from agent.port import GpuReading
from agent.telemetry.pod_resources import KEPT_S, METHOD, PodsOfGpus, Use, lister, pods_of, uses_from
from agent.telemetry.unary_call import unary
from reconciler.telemetry.telemetry_port import PodRef
from schemas.errors import Fault
from tests.support.podresources import claiming, container, kubelet, pod, response

GPUS = tuple(GpuReading(f"GPU-{n}aaaaaaa-0000-0000", n, "H100", 81_920, mig_enabled=n == 3) for n in range(4))
UUIDS = [gpu.uuid for gpu in GPUS]
CHAT = PodRef("nlp", "chat", "server")


def users(*pods) -> dict[int, list[str]]:
    """Number of a GPU -> its containers."""
    found = pods_of(uses_from(response(list(pods))), GPUS)
    return {
        UUIDS.index(uuid): [f"{p.namespace}/{p.pod}/{p.container}" for p in refs]
        for uuid, refs in found.items()
    }


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(container("server", UUIDS[0], UUIDS[2]), [0, 2], id="whole GPUs of the device plugin"),
        pytest.param(container("server", f"{UUIDS[1]}::3"), [1], id="a replica of a shared GPU"),
        pytest.param(
            container("server", f"{UUIDS[1]}::0", f"{UUIDS[1]}::1"),
            [1],
            id="two replicas of one GPU count once",
        ),
        pytest.param(
            container("server", UUIDS[0], resource="nvidia.com/gpu.shared"), [0], id="a renamed resource"
        ),
        pytest.param(
            container("server", f"MIG-{UUIDS[0]}/7/0", resource="nvidia.com/mig-1g.10gb"),
            [0],
            id="a MIG device that names its GPU",
        ),
        pytest.param(
            container("server", "MIG-5f6e0a0b-1c2d-5e3f", resource="nvidia.com/mig-1g.10gb"),
            [3],
            id="a MIG device without its GPU belongs to the only GPU that is cut",
        ),
        pytest.param(claiming("server", "gpu-2"), [2], id="a claimed GPU"),
        pytest.param(claiming("server", "gpu-1-mig-1g.10gb-19-0"), [1], id="a claimed part of a GPU"),
        pytest.param(container("server", "GPU-elsewhere"), [], id="a GPU that is not here"),
        pytest.param(
            container("server", UUIDS[0], resource="example.com/nic"), [], id="another vendor's device"
        ),
        pytest.param(claiming("server", "gpu-1", driver="gpu.example.com"), [], id="another driver's claim"),
        pytest.param(claiming("server", "gpu-9"), [], id="a claimed GPU that is not here"),
        pytest.param({"name": "sidecar"}, [], id="a container without devices"),
    ],
)
def test_devices_are_found_in_every_form(given, want) -> None:
    assert users(pod("chat", given)) == {number: [f"nlp/chat/{given['name']}"] for number in want}


def test_containers_of_several_pods_are_sorted() -> None:
    two = [pod(name, container("server", f"{UUIDS[0]}::{n}")) for n, name in enumerate(("web", "chat"))]
    assert users(*two) == {0: ["nlp/chat/server", "nlp/web/server"]}


def test_a_mig_device_belongs_to_the_gpu_that_the_driver_says() -> None:
    cut = [
        GpuReading(f"GPU-{n}", n, "H100", 81_920, mig_enabled=True, mig_uuids=(f"MIG-{n}a", f"MIG-{n}b"))
        for n in range(2)
    ]
    assert pods_of([Use(CHAT, device="MIG-1b")], cut) == {"GPU-1": (CHAT,)}


def test_a_mig_device_is_no_guess_where_several_gpus_are_cut() -> None:
    cut = [GpuReading(f"GPU-{n}", n, "H100", 81_920, mig_enabled=True) for n in range(2)]
    assert pods_of([Use(CHAT, device="MIG-5f6e0a0b-1c2d-5e3f")], cut) == {}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x0a\xff", id="a length beyond the end"),
        pytest.param(b"\x0b", id="a group"),
        pytest.param(b"\xff" * 12, id="a number without an end"),
        pytest.param(b"\x0a", id="a field without its length"),
    ],
)
def test_what_is_no_message_is_a_fault(data) -> None:
    with pytest.raises(Fault) as caught:
        uses_from(data)
    assert caught.value.reason == "BadMessage"


def test_cut_messages_never_break_the_reader() -> None:
    whole = response([pod("chat", container("server", *UUIDS)), pod("web", claiming("server", "gpu-1"))])
    broken = 0
    for size in range(len(whole)):
        try:
            uses_from(whole[:size])
        except Fault:
            broken += 1
    assert broken > len(whole) / 2


def test_a_real_server_is_understood(tmp_path) -> None:
    """With more pods than fit into one frame or one window of HTTP/2."""
    many = [pod(f"pod-{n}", container("server", UUIDS[n % 4]), namespace=f"team-{n}") for n in range(2000)]
    data = response(many)
    assert len(data) > 100_000
    with kubelet(tmp_path / "kubelet.sock", data):
        found = pods_of(lister(tmp_path / "kubelet.sock")(), GPUS)
    assert [len(found[uuid]) for uuid in UUIDS] == [500] * 4


def test_a_node_without_pods(tmp_path) -> None:
    with kubelet(tmp_path / "kubelet.sock", b""):
        assert lister(tmp_path / "kubelet.sock")() == ()


def test_a_refusal_says_why(tmp_path) -> None:
    with (
        kubelet(tmp_path / "kubelet.sock", grpc.StatusCode.RESOURCE_EXHAUSTED),
        pytest.raises(Fault) as caught,
    ):
        lister(tmp_path / "kubelet.sock")()
    assert "status 8: not today" in str(caught.value)


def test_a_method_that_is_not_there_is_a_fault(tmp_path) -> None:
    with kubelet(tmp_path / "kubelet.sock", b""), pytest.raises(Fault, match="status 12"):
        unary(tmp_path / "kubelet.sock", "/v1alpha1.PodResourcesLister/List", b"", 5.0)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="it hangs up"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="it speaks something else"),
        pytest.param(None, id="it says nothing"),
    ],
)
def test_a_peer_that_is_no_kubelet_costs_a_deadline_and_no_more(tmp_path: Path, answer: bytes | None) -> None:
    path = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def once() -> None:
            peer, _ = server.accept()
            with peer:
                if answer is not None:
                    peer.sendall(answer)
                    return
                peer.recv(1 << 16)
                peer.recv(1 << 16)  # until the client gives up

        thread = Thread(target=once, daemon=True)
        thread.start()
        with pytest.raises(Fault) as caught:
            unary(path, METHOD, b"", 0.2)
        thread.join(5)
    assert caught.value.reason == "CallFailed"


def test_no_socket_is_a_fault(tmp_path) -> None:
    with pytest.raises(Fault, match="did not answer"):
        lister(tmp_path / "kubelet.sock")()


def test_the_kubelet_is_asked_once_in_ten_seconds_and_its_silence_names_no_pods(caplog) -> None:
    calls: list[float] = []
    clock, broken = [0.0], [False]

    def ask() -> tuple[Use, ...]:
        calls.append(clock[0])
        if broken[0]:
            raise Fault("no answer", "CallFailed")
        return (Use(CHAT, device=UUIDS[0]),)

    pods = PodsOfGpus(ask, lambda: clock[0])
    for clock[0] in (0.0, 5.0, KEPT_S):
        assert pods(GPUS) == {UUIDS[0]: (CHAT,)}
    broken[0] = True
    for clock[0] in (KEPT_S + 1, 2 * KEPT_S, 3 * KEPT_S):
        known = pods(GPUS)
    assert known == {}
    broken[0], clock[0] = False, 4 * KEPT_S
    assert pods(GPUS) == {UUIDS[0]: (CHAT,)}
    assert calls == [0, 10, 20, 30, 40]
    assert [r.message.split(" ")[0:3] for r in caplog.records if r.levelname == "WARNING"] == [
        ["pods", "not", "known"]
    ]
