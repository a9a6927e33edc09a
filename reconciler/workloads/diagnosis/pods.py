"""Findings about pods: why they wait, do not start, or end. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta

from reconciler.model.pod_port import Container, Pod
from reconciler.workloads.alerts import Severity
from reconciler.workloads.diagnosis.episode import Cause, Episode, Finding, clock, counted, listed

PULLS = frozenset({"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"})
STARTING_AFTER = timedelta(minutes=5)
"""A pod that has not started by then has a problem."""
CRASHES = 3
"""Restarts from which a running pod counts as crashing."""
RECENT = timedelta(hours=1)
"""A crash longer ago than this is over."""
UNPLACED: tuple[tuple[str, str, str], ...] = (
    (
        r"persistentvolumeclaim",
        "a volume that they need is not bound",
        "look at the claim with `kubectl describe pvc`: its storage class or size may not exist in this cluster",
    ),
    (
        r"untolerated taint|had taint",
        "the nodes have a taint that they do not tolerate",
        "remove selectors and tolerations from the pod: GPU pods of a slice get theirs by admission; an admin looks at "
        "foreign taints with `egs describe node`",
    ),
    (
        r"node affinity|node selector|node\(s\) didn't match",
        "their selector or affinity matches none of the request's nodes",
        "remove the selector: GPU pods of a slice get the right one by admission",
    ),
    (
        r"insufficient (cpu|memory|ephemeral-storage|hugepages\S*)",
        "the request's nodes have too little {0} left",
        "ask for less, or look with `kubectl describe node` which other pods have it",
    ),
)
"""What the scheduler says, what it means, and what to do."""


def found_in(episode: Episode) -> Iterator[Finding]:
    """What is wrong with the pods of an episode."""
    yield from _refused(episode)
    yield from _held_back(episode)
    yield from _unplaced(episode)
    yield from _not_started(episode)
    yield from _crashed(episode)
    yield from _failed(episode)
    yield from _none(episode)


def _refused(episode: Episode) -> Iterator[Finding]:
    """Objects that could not make their pods."""
    found = [t for t in episode.troubles if t.reason == "FailedCreate"]
    if found and not episode.unfinished:
        last = max(found, key=lambda one: (one.at is not None, one.at))
        is_quota = "exceeded quota" in last.message
        advice = (
            "the slice's nodes have fewer GPUs than its pods ask for together: ask for fewer, or for more nodes"
            if is_quota
            else "change the pod template as the message says"
        )
        text = "its pods were refused: " + (
            "they exceed the quota" if is_quota else "the cluster does not accept them"
        )
        yield Finding(
            Cause.PODS_REFUSED, Severity.CRITICAL, text, advice, (f"{last.object}: {last.message}",)
        )


def _held_back(episode: Episode) -> Iterator[Finding]:
    held = [pod for pod in episode.unfinished if pod.gates]
    if held:
        gates = sorted({gate for pod in held for gate in pod.gates})
        is_kueue = any(gate.startswith("kueue.") for gate in gates)
        by = "Kueue has not admitted them" if is_kueue else f"something holds them back: {listed(gates)}"
        advice = (
            "look with `kubectl get workloads` at its place in Kueue's queue"
            if is_kueue
            else "find the controller that removes this scheduling gate"
        )
        text = f"{counted(len(held), 'pod')} wait{_s(held)} before the scheduler: {by}"
        yield Finding(Cause.PODS_HELD_BACK, Severity.CRITICAL, text, advice, _names(held), _gpus(held))


def _unplaced(episode: Episode) -> Iterator[Finding]:
    waiting = [
        pod for pod in episode.unfinished if pod.phase == "Pending" and pod.node is None and not pod.gates
    ]
    if not waiting:
        return
    if not episode.request:
        promised = episode.next_start
        when = (
            f"its next one starts at {clock(promised, episode.now)}"
            if promised
            else "none is filed or none has a start"
        )
        text = f"{counted(len(waiting), 'pod')} wait{_s(waiting)} for GPUs: no request of the slice runs now; {when}"
        advice = (
            "nothing: the pods start with the request"
            if promised
            else "file a request with `egs gpr create`; `egs wait` says when it would start"
        )
        severity = Severity.INFO if promised else Severity.CRITICAL
        yield Finding(Cause.NO_LEASE, severity, text, advice, _names(waiting), _gpus(waiting))
        return
    groups: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in waiting:
        groups[_why(pod, episode)].append(pod)
    for (why, advice), pods in groups.items():
        text = f"{counted(len(pods), 'pod')} find{_s(pods)} no node: {why}"
        evidence = (*_names(pods), *dict.fromkeys(pod.unplaced for pod in pods if pod.unplaced))
        yield Finding(Cause.PODS_UNPLACED, Severity.CRITICAL, text, advice, evidence, _gpus(pods))


def _why(pod: Pod, episode: Episode) -> tuple[str, str]:
    """Why no node takes a pod, and what to do."""
    if episode.per_node and pod.gpus > episode.per_node:
        return (
            f"each asks for {pod.gpus} GPUs, and a node has {episode.per_node}",
            "spread the work over several pods, each with at most a node's GPUs",
        )
    text = pod.unplaced.lower()
    for pattern, why, advice in UNPLACED:
        if (met := re.search(pattern, text)) is not None:
            return why.format(*met.groups()), advice
    used = sum(other.gpus for other in episode.pods if other.holds_gpus)
    if "nvidia.com/gpu" in text or (not text and used + pod.gpus > episode.allocated):
        return (
            f"of the {episode.allocated} GPUs of {episode.request}, pods already use {used}",
            "delete pods that are not needed, or ask for more nodes with another request",
        )
    return pod.unplaced or "the scheduler has not said why", "look with `kubectl describe pod` at its events"


def _not_started(episode: Episode) -> Iterator[Finding]:
    pulls = _waiting_in(episode, PULLS)
    if pulls:
        images = sorted({container.image for _, container in pulls})
        whose = "its" if len(pulls) == 1 else "their"
        text = f"{counted(len(pulls), 'pod')} cannot get {whose} image {listed(images, 2)}"
        advice = "check the image's name and tag, and that the namespace has a pull secret for its registry"
        said = dict.fromkeys(c.waiting_message or c.waiting for _, c in pulls)
        pods = [pod for pod, _ in pulls]
        yield Finding(Cause.IMAGE_PULL, Severity.CRITICAL, text, advice, (*_names(pods), *said), _gpus(pods))
    slow = [
        pod
        for pod in episode.unfinished
        if pod.phase == "Pending"
        and pod.node is not None
        and pod.started is not None
        and episode.now - pod.started >= STARTING_AFTER
        and pod not in [one for one, _ in pulls]
        and not any(container.waiting in ("CrashLoopBackOff", *PULLS) for container in pod.containers)
    ]
    if slow:
        first = min(pod.started for pod in slow if pod.started is not None)
        keys = {f"Pod/{pod.name}" for pod in slow}
        said = dict.fromkeys(f"{t.reason}: {t.message}" for t in episode.troubles if t.object in keys)
        waits = dict.fromkeys(c.waiting for pod in slow for c in pod.containers if c.waiting)
        text = f"{counted(len(slow), 'pod')} still start{_s(slow)}, since {clock(first, episode.now)}"
        advice = (
            "look with `kubectl describe pod` at volumes, configuration and init containers that it waits for"
        )
        yield Finding(
            Cause.PODS_STARTING, Severity.WARNING, text, advice, (*_names(slow), *waits, *said), _gpus(slow)
        )


def _waiting_in(episode: Episode, reasons: frozenset[str]) -> list[tuple[Pod, Container]]:
    found = []
    for pod in episode.unfinished:
        stuck = next((container for container in pod.containers if container.waiting in reasons), None)
        if stuck is not None:
            found.append((pod, stuck))
    return found


def _crashed(episode: Episode) -> Iterator[Finding]:
    killed: list[tuple[Pod, Container]] = []
    crashed: list[tuple[Pod, Container]] = []
    for pod in episode.unfinished:
        bad = next((container for container in pod.containers if _is_crashing(container, episode)), None)
        if bad is not None:
            (killed if bad.ended == "OOMKilled" else crashed).append((pod, bad))
    if killed:
        pods = [pod for pod, _ in killed]
        were = "was" if len(killed) == 1 else "were"
        text = f"{counted(len(killed), 'pod')} {were} killed for using more memory than allowed"
        advice = "raise the container's memory limit; data loaders and checkpoints need host memory beside the GPU's"
        yield Finding(
            Cause.OUT_OF_MEMORY, Severity.CRITICAL, text, advice, tuple(map(_end, killed)), _gpus(pods)
        )
    if crashed:
        pods = [pod for pod, _ in crashed]
        restarts = sum(pod.restarts for pod in pods)
        crash = "crashes" if len(crashed) == 1 else "crash"
        text = f"{counted(len(crashed), 'pod')} {crash} again and again: {restarts} restarts"
        advice = "read the end of its log with `kubectl logs --previous`"
        yield Finding(
            Cause.PODS_CRASH, Severity.CRITICAL, text, advice, tuple(map(_end, crashed)), _gpus(pods)
        )


def _is_crashing(container: Container, episode: Episode) -> bool:
    if container.waiting == "CrashLoopBackOff":
        return True
    is_recent = container.ended_at is None or episode.now - container.ended_at < RECENT
    if container.ended == "OOMKilled":
        return is_recent and container.restarts > 0
    return container.restarts >= CRASHES and is_recent


def _end(one: tuple[Pod, Container]) -> str:
    pod, container = one
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    ended = f"{pod.key}: {container.name} ended with {container.ended or 'an error'}{code}"
    return f"{ended}, restarted {container.restarts} times"


def _failed(episode: Episode) -> Iterator[Finding]:
    failed = [pod for pod in episode.pods if pod.gpus and pod.phase == "Failed"]
    if failed and not episode.unfinished:
        ends = [next((one for one in ((pod, c) for c in pod.containers if c.ended)), None) for pod in failed]
        said = tuple(_end(one) for one in ends if one is not None) or _names(failed)
        text = f"{counted(len(failed), 'pod')} failed, and none runs"
        yield Finding(
            Cause.PODS_FAILED,
            Severity.CRITICAL,
            text,
            "read its log with `kubectl logs`",
            said[:4],
            _gpus(failed),
        )


def _none(episode: Episode) -> Iterator[Finding]:
    if not episode.request or episode.pods_silence or not episode.is_whole or episode.busy:
        return
    if any(pod.gpus for pod in episode.pods) or any(t.reason == "FailedCreate" for t in episode.troubles):
        return
    since = "" if episode.since is None else f" since {clock(episode.since, episode.now)}"
    text = (
        f"{counted(episode.allocated, 'GPU')} are allocated to {episode.request}{since}, and no pod uses them"
    )
    advice = "start the work in the slice's namespaces, or end the request with `egs gpr release`"
    yield Finding(Cause.NO_PODS, Severity.CRITICAL, text, advice, (), episode.allocated)


def _s(pods: Sequence[Pod]) -> str:
    return "s" if len(pods) == 1 else ""


def _names(pods: Sequence[Pod]) -> tuple[str, ...]:
    return (listed([pod.key for pod in pods]),)


def _gpus(pods: Sequence[Pod]) -> int:
    return sum(pod.gpus for pod in pods)
