"""The default image's script: what it says of tools, in the words of docs/reference/checks.md."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path

import pytest

from reconciler.clusters.kubernetes.checks.measurements import parsed

SCRIPT = Path(__file__).parents[2] / "deploy" / "checks" / "egs_checks.py"
NCCL = """\
# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 1048576(bytes) warmup iters: 5 iters: 100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
           8             2     float     sum      -1    21.35    0.00    {busbw}      {wrong}    20.9  0.00  0.00  0
# Out of bounds values : 0 OK
"""
PERFTEST = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1086900          0.00               379.93             0.724653
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("egs_checks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Puts a program on an otherwise empty PATH that prints the text given."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()

    def put(name: str, text: str, code: int = 0) -> None:
        (tmp_path / "said").write_text(text)
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{text.rstrip()}\nEND\nexit {code}\n")
        program.chmod(0o755)

    return put


@pytest.fixture
def listener():
    """Something that accepts connections, as an API server or a kubelet does."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield str(server.getsockname()[1])


@pytest.mark.parametrize("name", ["NodeHealth", "NcclLatency"])
def test_a_missing_tool_is_said_to_be_missing_and_is_no_failure(script, tool, name):
    line = script.measured(name, {"EGS_GPUS": "8"})
    assert line["ok"] is None
    assert line["log"].endswith("is not in the checks' image")


@pytest.mark.parametrize(
    ("rows", "ok", "log"),
    [
        pytest.param("0, 0\n1, 0\n", True, "2 GPUs answer", id="all well"),
        pytest.param("0, 0\n1, [N/A]\n", True, "2 GPUs answer", id="a GPU without ECC"),
        pytest.param("0, 0\n", False, "nvidia-smi shows 1 GPUs and 2 are wanted", id="a GPU is gone"),
        pytest.param("0, 0\n1, 4\n", False, "not corrected on GPU 1", id="memory errors"),
    ],
)
def test_gpus_are_counted_and_asked_for_memory_errors(script, tool, rows, ok, log):
    tool("nvidia-smi", rows)
    line = script.measured("NodeHealth", {"EGS_GPUS": "2"})
    assert line["ok"] is ok
    assert log in line["log"]


def test_a_tool_that_fails_is_a_failure_with_its_last_words(script, tool):
    tool("nvidia-smi", "Unable to determine the device handle: GPU is lost.", 15)
    line = script.measured("NodeHealth", {})
    assert (line["ok"], line["log"]) == (
        False,
        "RuntimeError: nvidia-smi ended with 15: Unable to determine the device handle: GPU is lost.",
    )


def test_nccl_is_read_from_its_row(script, tool):
    tool("all_reduce_perf", NCCL.format(busbw="471.20", wrong="0"))
    line = script.measured("NcclLatency", {"EGS_GPUS": "8"})
    assert (line["ok"], line["latency_us"], line["bandwidth_gb_s"]) == (True, 21.35, 471.2)


@pytest.mark.parametrize(
    ("text", "log"),
    [
        pytest.param(NCCL.format(busbw="471.20", wrong="3"), "found 3 wrong values", id="wrong sums"),
        pytest.param("# nothing\n", "printed no result", id="no row"),
    ],
)
def test_nccl_that_computes_wrong_or_nothing_fails(script, tool, text, log):
    tool("all_reduce_perf", text)
    line = script.measured("NcclLatency", {"EGS_GPUS": "8"})
    assert line["ok"] is False
    assert log in line["log"]


def test_a_volume_is_written_and_read_back(script, tmp_path):
    line = script.measured("PersistentVolume", {"EGS_VOLUME": str(tmp_path)})
    assert line["ok"] is True
    assert line["write_mb_s"] > 0
    assert line["read_mb_s"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_volume_that_cannot_be_written_fails(script, tmp_path):
    line = script.measured("PersistentVolume", {"EGS_VOLUME": str(tmp_path / "gone")})
    assert line["ok"] is False
    assert "FileNotFoundError" in line["log"]


def test_connectivity_is_measured_to_the_api_server(script, listener):
    where = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": listener}
    line = script.measured("Connectivity", {**where, "EGS_DNS_NAME": "localhost", "EGS_IMAGE": "checks"})
    assert line["ok"] is True
    assert line["latency_ms"] > 0


@pytest.mark.parametrize(
    ("env", "log"),
    [
        pytest.param({"EGS_DNS_NAME": "no.such.invalid"}, "DNS does not resolve", id="no DNS"),
        pytest.param(
            {"EGS_DNS_NAME": "localhost"}, "API server at 127.0.0.1 does not answer", id="no API server"
        ),
    ],
)
def test_what_does_not_answer_is_named(script, env, log):
    nobody = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    line = script.measured("Connectivity", {**nobody, **env})
    assert line["ok"] is False
    assert log in line["log"]


def test_latency_is_measured_to_each_peer(script, listener):
    """F8."""
    env = {"EGS_PEERS": "h100-2=127.0.0.1", "EGS_PEER_PORT": listener}
    line = script.measured("Latency", env)
    assert line["ok"] is True
    assert 0 < line["latency_us"] < 1e6
    assert "h100-2" in line["log"]


@pytest.mark.parametrize(
    ("ports", "ok", "log"),
    [
        pytest.param(
            {"mlx5_0": ("4: ACTIVE", "a"), "mlx5_1": ("4: ACTIVE", "a")}, True, "2 ports active", id="well"
        ),
        pytest.param(
            {"mlx5_0": ("4: ACTIVE", "a"), "mlx5_1": ("1: DOWN", "a")}, False, "mlx5_1/1", id="one down"
        ),
        pytest.param(
            {"mlx5_0": ("4: ACTIVE", "a"), "mlx5_1": ("4: ACTIVE", "b")}, False, "several", id="two subnets"
        ),
        pytest.param({}, None, "no RDMA device", id="none"),
    ],
)
def test_rdma_ports_must_be_active_in_one_subnet(script, tool, tmp_path, ports, ok, log):
    """F4; the bandwidth is a figure of its own, and here its tool is missing."""
    for device, (state, subnet) in ports.items():
        port = tmp_path / "sys/class/infiniband" / device / "ports/1"
        (port / "gids").mkdir(parents=True)
        (port / "state").write_text(f"{state}\n")
        (port / "gids/0").write_text(f"fe80:0000:0000:000{subnet}:0000:0000:0000:0001\n")
    line = script.measured("RdmaSubnet", {"EGS_SYSFS": str(tmp_path / "sys")})
    assert line["ok"] is ok
    assert log in line["log"]
    assert "bandwidth_gbit_s" not in line


def test_rdma_bandwidth_is_read_from_perftests_row(script):
    assert script.rdma_average(PERFTEST) == 379.93


def test_what_it_leaves_for_kubernetes_is_what_the_controller_reads(script, tmp_path, capsys):
    """The two halves of the contract: this script and `measured.parsed`."""
    left = tmp_path / "result"
    names = "PersistentVolume,RdmaSubnet,Nonsense"
    env = {
        "EGS_CHECKS": names,
        "EGS_VOLUME": str(tmp_path),
        "EGS_SYSFS": str(tmp_path),
        "EGS_RESULT": str(left),
    }
    assert script.main(env) == 0
    found = parsed(left.read_text())
    assert found == parsed(capsys.readouterr().out)
    assert {name: said.ok for name, said in found.items()} == {
        "PersistentVolume": True,
        "RdmaSubnet": None,
        "Nonsense": None,
    }
    assert found["PersistentVolume"].figures["write_mb_s"] > 0
    assert all(json.loads(line)["check"] for line in left.read_text().splitlines())
