#!/usr/bin/env python3
"""Measure the node that this container runs on and say what was found: one line of JSON for each check.

The image that `spec.checks.image` of a Cluster names runs this, or anything else that keeps the contract of
docs/reference/checks.md. It measures and never judges by a threshold: the controller does. A tool that is missing is
said to be missing (`"ok": null`); only what was tried and did not work is a failure.
Standard library only; Python 3.9 or later.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Env = Mapping[str, str]
Line = dict[str, Any]

RESULT = "/dev/termination-log"
"""Kubernetes hands this file to the controller: 4,096 bytes at most, so that no log needs to be read."""
LONGEST_RESULT, LONGEST_LOG = 4096, 400
MIB, VOLUME_MIB = 1 << 20, 64
HANDSHAKES = 20
KUBELET_PORT = 10250
"""Every node listens there, so the time of a TCP handshake can be measured without a server of ours."""
CONNECT_S = 3.0


class MissingError(Exception):
    """It cannot be measured here; the text says why."""


def run(command: list[str], timeout_s: float) -> str:
    """What a command printed; raises RuntimeError with its last words where it fails."""
    _must_have(command[0])
    done = subprocess.run(  # noqa: S603 - our own words
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, text=True, check=False
    )
    if done.returncode != 0:
        last = " / ".join(done.stdout.strip().splitlines()[-3:])
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {last}")
    return done.stdout


def _must_have(tool: str) -> None:
    if shutil.which(tool) is None:
        raise MissingError(f"{tool} is not in the checks' image")


def node_health(env: Env) -> Line:
    """Every GPU answers, and none had a memory error that it could not correct since it was last reset."""
    query = "--query-gpu=index,ecc.errors.uncorrected.volatile.total"
    rows = [
        row.split(", ")
        for row in run(["nvidia-smi", query, "--format=csv,noheader,nounits"], 60).strip().splitlines()
    ]
    wanted = int(env.get("EGS_GPUS") or 0)
    if len(rows) < wanted:
        return {"ok": False, "log": f"nvidia-smi shows {len(rows)} GPUs and {wanted} are wanted"}
    bad = [row[0] for row in rows if row[-1].isdigit() and int(row[-1])]
    if bad:
        return {"ok": False, "log": f"memory errors that were not corrected on GPU {', '.join(bad)}"}
    return {"ok": True, "log": f"{len(rows)} GPUs answer, without memory errors that were not corrected"}


def persistent_volume(env: Env) -> Line:
    """Write, flush, drop from the cache, read back and compare."""
    folder = env.get("EGS_VOLUME")
    if not folder:
        raise MissingError("the cluster has no storage class to ask a volume of")
    path, block = Path(folder) / "egs-check", os.urandom(MIB)
    begun = time.monotonic()
    with path.open("wb") as file:
        for _ in range(VOLUME_MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    written_s, begun = time.monotonic() - begun, time.monotonic()
    with path.open("rb") as file:
        same = all(file.read(MIB) == block for _ in range(VOLUME_MIB))
    read_s = time.monotonic() - begun
    path.unlink()
    if not same:
        return {"ok": False, "log": "what was read back is not what was written"}
    write, read = (round(VOLUME_MIB * MIB / 1e6 / max(s, 1e-6), 1) for s in (written_s, read_s))
    log = f"bound, wrote and read back {VOLUME_MIB} MiB: {write:.0f} and {read:.0f} MB/s"
    return {"ok": True, "write_mb_s": write, "read_mb_s": read, "log": log}


def connectivity(env: Env) -> Line:
    """Name resolution and the API server must answer. A registry may be behind a mirror or proxy: it is only told."""
    server = env.get("KUBERNETES_SERVICE_HOST")
    if not server:
        raise MissingError("KUBERNETES_SERVICE_HOST is not set: this does not run in a pod")
    name = env.get("EGS_DNS_NAME") or "kubernetes.default.svc"
    begun = time.monotonic()
    try:
        socket.getaddrinfo(name, None)
    except OSError as error:
        return {"ok": False, "log": f"DNS does not resolve {name}: {error}"}
    resolved_ms = (time.monotonic() - begun) * 1e3
    try:
        delay_ms = handshake_us(server, int(env.get("KUBERNETES_SERVICE_PORT") or 443), 5) / 1e3
    except OSError as error:
        return {"ok": False, "log": f"the API server at {server} does not answer: {error}"}
    log = f"API server {delay_ms:.2f} ms, DNS {resolved_ms:.1f} ms, {registry(env)}"
    return {"ok": True, "latency_ms": round(delay_ms, 3), "log": log}


def registry(env: Env) -> str:
    """Whether the registry of this very image can be reached, in words."""
    first = (env.get("EGS_IMAGE") or "").split("/")[0]
    if "." not in first and ":" not in first:
        return "the image names no registry"
    host, _, port = first.partition(":")
    try:
        socket.create_connection((host, int(port or 443)), CONNECT_S).close()
    except (OSError, ValueError) as error:
        return f"registry {host} not reached directly ({error})"
    return f"registry {host} answers"


def handshake_us(host: str, port: int, times: int) -> float:
    """Median time of a TCP handshake, microseconds."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        socket.create_connection((host, port), CONNECT_S).close()
        taken.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(taken)


def latency(env: Env) -> Line:
    """To the other nodes of the lease that were named; the slowest counts."""
    port = int(env.get("EGS_PEER_PORT") or KUBELET_PORT)
    found = {}
    for peer in filter(None, (env.get("EGS_PEERS") or "").split(",")):
        name, _, address = peer.partition("=")
        try:
            found[name] = handshake_us(address or name, port, HANDSHAKES)
        except OSError as error:
            return {"ok": False, "log": f"{name} port {port} does not answer: {error}"}
    if not found:
        raise MissingError("no peer was named, or it has no address")
    each = ", ".join(f"{name} {us:.1f} us" for name, us in sorted(found.items()))
    log = f"median of {HANDSHAKES} TCP handshakes: {each}"
    return {"ok": True, "latency_us": round(max(found.values()), 1), "log": log}


def rdma_subnet(env: Env) -> Line:
    """Every port that the pod sees is active, all in one subnet, and the first device moves data."""
    ports = rdma_ports(Path(env.get("EGS_SYSFS") or "/sys"))
    if not ports:
        raise MissingError("the pod sees no RDMA device")
    down = [port for port, (state, _) in sorted(ports.items()) if "ACTIVE" not in state]
    if down:
        return {"ok": False, "log": f"ports that are not active: {', '.join(down)}"}
    subnets = sorted({subnet for _, subnet in ports.values()})
    if len(subnets) > 1:
        return {"ok": False, "log": f"ports are in several subnets: {', '.join(subnets)}"}
    found: Line = {"ok": True, "log": f"{len(ports)} ports active in {subnets[0]}"}
    try:
        found["bandwidth_gbit_s"] = rdma_bandwidth(min(ports).split("/")[0])
    except (MissingError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        found["log"] += f"; bandwidth not measured: {error}"
    return found


def rdma_ports(sysfs: Path) -> dict[str, tuple[str, str]]:
    """device/port -> (state, subnet prefix)."""
    return {
        f"{path.parts[-3]}/{path.name}": (_first_line(path / "state"), _first_line(path / "gids" / "0")[:19])
        for path in sysfs.glob("class/infiniband/*/ports/*")
    }


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError:
        return ""


def rdma_bandwidth(device: str) -> float:
    """Gb/s from the device to itself."""
    command = ["ib_write_bw", "-d", device, "--report_gbits", "-D", "3", "-F"]
    _must_have(command[0])
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:  # noqa: S603 - our own words
        try:
            time.sleep(1)  # it listens within that, and says so nowhere
            return rdma_average(run([*command, "127.0.0.1"], 30))
        finally:
            server.kill()


def rdma_average(text: str) -> float:
    """The column `BW average` of perftest's one row."""
    for line in text.splitlines():
        cells = line.split()
        if len(cells) >= 4 and cells[0].isdigit() and cells[1].isdigit():
            return float(cells[3])
    raise RuntimeError("ib_write_bw printed no result")


def nccl_latency(env: Env) -> Line:
    """All GPUs of the node: the time of the smallest all-reduce, and the bus bandwidth of a large one."""
    gpus = env.get("EGS_GPUS") or "0"
    each_s = max(30, int(env.get("EGS_TIMEOUT") or 300) // 3)
    test = ["all_reduce_perf", "-g", gpus]
    small_us, _ = nccl_row(run([*test, "-b", "8", "-e", "8", "-w", "5", "-n", "100"], each_s))
    _, large_gb_s = nccl_row(run([*test, "-b", "4G", "-e", "4G", "-w", "2", "-n", "5"], each_s))
    log = f"all_reduce over {gpus} GPUs: {small_us:.1f} us at 8 B, {large_gb_s:.0f} GB/s at 4 GiB"
    return {"ok": True, "latency_us": small_us, "bandwidth_gb_s": large_gb_s, "log": log}


def nccl_row(text: str) -> tuple[float, float]:
    """(time in us, bus bandwidth in GB/s), out of place, of the last row of nccl-tests; wrong values raise."""
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*[0-9]+\s+[0-9]+\s+[a-z]", line)]
    if not rows:
        raise RuntimeError("all_reduce_perf printed no result")
    # size, count, type, redop, root; then out of place: time, algbw, busbw, wrong values
    time_us, _, bandwidth, wrong = rows[-1][5:9]
    if wrong not in {"0", "N/A"}:
        raise RuntimeError(f"all_reduce_perf found {wrong} wrong values")
    return float(time_us), float(bandwidth)


CHECKS: dict[str, Callable[[Env], Line]] = {
    "NodeHealth": node_health,
    "PersistentVolume": persistent_volume,
    "Connectivity": connectivity,
    "Network": connectivity,
    "RdmaSubnet": rdma_subnet,
    "NcclLatency": nccl_latency,
    "Latency": latency,
}


def measured(name: str, env: Env) -> Line:
    """One check's line; whatever goes wrong in it is its own result and stops no other."""
    try:
        if name not in CHECKS:
            raise MissingError(f"the checks' image knows no check {name}")
        found = CHECKS[name](env)
    except MissingError as why:
        found = {"ok": None, "log": str(why)}
    except Exception as error:
        found = {"ok": False, "log": f"{type(error).__name__}: {error}"}
    return {**found, "check": name, "log": found["log"][:LONGEST_LOG]}


def main(env: Env = os.environ) -> int:
    """Print every line, and leave them all where Kubernetes passes them on. Exit 0: what failed is in the lines."""
    lines = []
    for name in filter(None, (env.get("EGS_CHECKS") or "").split(",")):
        lines.append(json.dumps(measured(name, env), sort_keys=True))
        print(lines[-1], flush=True)
    try:
        Path(env.get("EGS_RESULT") or RESULT).write_text("\n".join(lines)[:LONGEST_RESULT])
    except OSError as error:
        print(f"no termination message: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
