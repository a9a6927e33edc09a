"""Save work before a lease ends. Standard library only: copy it, or mount it from a ConfigMap.

The controller keeps the annotation `egs.dev/ends-at` of a GPU pod right; a downward-API volume shows it as a file
(`/etc/egs/ends-at`), which follows every extension, eviction and replacement within the kubelet's sync period, about a
minute. A file reaches the process that trains; a signal is often swallowed by its launcher.

In a training loop, which it leaves as it is but for saving at the boundaries of steps:

    for step in saving(range(first, last), save, lead_s=600):
        train(step)

As a command:

    egs_ends.py due --lead 600       exit status 0 if the end is at most 600 seconds away, else 1
    egs_ends.py open --lead 120      the opposite: a readiness probe that takes no new requests near the end
    egs_ends.py wait --lead 600      returns when it is due
    egs_ends.py drain --metrics URL --within 50     returns when a vLLM server has no request, or after so long
    egs_ends.py saved                says on this pod that its work was saved now (`egs.dev/checkpointed-at`)
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

FILE = os.environ.get("EGS_ENDS_AT", "/etc/egs/ends-at")
ACCOUNT = Path(os.environ.get("EGS_SERVICE_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting")


def ends_at(file: str = FILE) -> float | None:
    """When this pod must have stopped, in seconds since 1970; None: unknown, for example outside of a lease."""
    try:
        text = Path(file).read_text(encoding="ascii").strip()
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (OSError, ValueError):
        return None


def due(lead_s: float, file: str = FILE) -> bool:
    """Whether the end is at most `lead` seconds away."""
    end = ends_at(file)
    return end is not None and time.time() >= end - lead_s


def saving(
    steps: Iterable[int],
    save: Callable[[int], None],
    *,
    lead_s: float,
    every_s: float = 1800.0,
    last_every_s: float = 60.0,
    agree: Callable[[bool], bool] = lambda wants: wants,
) -> Iterator[int]:
    """The steps; between them `save(step)`: every `every_s`, at once when the end is near, then every `last_every_s`.

    `agree` makes one answer of those of several ranks, for example a broadcast of rank 0: each must save at the same
    step.
    """
    last, was_near = time.monotonic(), False
    for step in steps:
        yield step
        near = due(lead_s)
        waited_s = time.monotonic() - last
        wants = (near and not was_near) or waited_s >= (last_every_s if near else every_s)
        if agree(wants):
            save(step)
            said_saved()
            last, was_near = time.monotonic(), near


def said_saved(at: float | None = None) -> str:
    """Says on this pod when its work was saved; returns why it could not, which harms nothing.

    Needs POD_NAME and POD_NAMESPACE, and the right to patch pods (checkpoint-rights.yaml).
    """
    pod, namespace = os.environ.get("POD_NAME"), os.environ.get("POD_NAMESPACE")
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not (pod and namespace and host):
        return "not in a pod that knows its name"
    text = datetime.fromtimestamp(time.time() if at is None else at, timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    body = json.dumps({"metadata": {"annotations": {"egs.dev/checkpointed-at": text}}}).encode()
    try:
        headers = {
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        }
        url = f"https://{host}:{port}/api/v1/namespaces/{namespace}/pods/{pod}"
        asked = urllib.request.Request(url, body, headers, method="PATCH")
        trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        with urllib.request.urlopen(asked, timeout=5, context=trusted):
            return ""
    except OSError as error:
        return f"not said: {error}"


def requests_left(metrics: str) -> int:
    """Requests that a vLLM server answers or has queued; none if it does not answer any more."""
    try:
        with urllib.request.urlopen(metrics, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return 0
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(GAUGES)))


def drain(metrics: str, within_s: float) -> bool:
    """Waits until no request is left; False: the time was over before."""
    until = time.monotonic() + within_s
    while requests_left(metrics):
        if time.monotonic() >= until:
            return False
        time.sleep(min(0.5, max(0.0, until - time.monotonic())))
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Save work before a lease ends.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("due", "open", "wait"):
        commands.add_parser(name).add_argument(
            "--lead", type=float, required=True, help="seconds before the end"
        )
    draining = commands.add_parser("drain")
    draining.add_argument("--metrics", required=True)
    draining.add_argument("--within", type=float, required=True, help="seconds")
    commands.add_parser("saved")
    given = parser.parse_args()
    if given.command == "due":
        return 0 if due(given.lead) else 1
    if given.command == "open":
        return 1 if due(given.lead) else 0
    if given.command == "drain":
        return 0 if drain(given.metrics, given.within) else 1
    if given.command == "saved":
        trouble = said_saved()
        print(trouble or "said", file=sys.stderr)
        return 1 if trouble else 0
    while not due(given.lead):
        time.sleep(1.0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
