"""The story of `egs demo --once` as data: who does what when. Times are minutes after the first merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from demo import questions
from demo.system import System
from reconciler.clusters.simulated.scripted_faults import GpuFails
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.store.store_port import Person
from schemas.reading.units import format_instant
from schemas.reading.yaml_text import dump

ADA = Person("Ada", "ada@example.com")
BO = Person("Bo", "bo@example.com")
DANA = Person("Dana", "dana@example.com")
FAY = Person("Fay", "fay@example.com")

Act = Callable[[System, datetime], None]
Ask = Callable[[System, datetime], Iterator[str]]
"""A question of the story, and the lines of its answer."""


@dataclass(frozen=True, slots=True)
class Step:
    """An action of a person, or an event in the fleet."""

    minutes: float
    text: str
    act: Act = lambda *_: None
    asks: tuple[Ask, ...] = ()  # what the person wants to know then
    kills: bool = False  # the controller is killed during its next hand-over, and started again


def request(slice_: str, name: str, **spec: object) -> dict[str, bytes]:
    """The file of a GPR."""
    document = {
        "apiVersion": "egs.dev/v1alpha1",
        "kind": "GPR",
        "metadata": {"name": name},
        "spec": {"slice": slice_, **spec},
    }
    return {f"slices/{slice_}/gprs/{name}.yaml": dump(document).encode()}


def push(files: dict[str, bytes], message: str, author: Person) -> Act:
    """A merge to main."""

    def act(system: System, now: datetime) -> None:
        system.push(files, message, author, now)

    return act


def change(path: str, old: str, new: str, message: str, author: Person) -> Act:
    """An edit of one line of a file on main."""

    def act(system: System, now: datetime) -> None:
        data = system.read(path, system.settings.main_branch)
        assert data is not None
        assert old.encode() in data, f"{path} has no {old!r}"
        system.push({path: data.replace(old.encode(), new.encode(), 1)}, message, author, now)

    return act


def approve(key: str) -> Act:
    """Ada approves a request as shown in its status."""

    def act(system: System, now: datetime) -> None:
        slice_, _, name = key.partition("/")
        status = system.status(key)
        document = {
            "apiVersion": "egs.dev/v1alpha1",
            "kind": "Approval",
            "metadata": {"name": "ada"},
            "spec": {
                "slice": slice_,
                "gpr": name,
                "decision": "approve",
                "specDigest": status.spec_digest,
                "limit": {"gpus": 32, "nodes": 4},
                "reason": "the robots' demonstration is on Friday",
            },
        }
        files = {f"approvals/{slice_}/{name}/ada.yaml": dump(document).encode()}
        system.push(dict(files), f"Approve {key}", ADA, now)

    return act


def gpu_fails(key: str) -> Act:
    """A GPU of a running request falls off the bus."""

    def act(system: System, now: datetime) -> None:
        held = system.status(key).assignment
        assert held is not None
        system.clusters[held.cluster].inject(GpuFails(node=held.nodes[0], gpu=3, at=now, xid=79, lost=True))

    return act


def gpu_gets_hot(key: str) -> Act:
    """A fan of a running request's node stands still for nine minutes: too short to take the node out."""

    def act(system: System, now: datetime) -> None:
        held = system.status(key).assignment
        assert held is not None
        heat = GpuFails(node=held.nodes[1], gpu=5, at=now, until=now + timedelta(minutes=9), temp_c=88)
        system.clusters[held.cluster].inject(heat)

    return act


def driver_is_upgraded(cluster: str, node: str, gpus: int) -> Act:
    """Half an hour in which the node's GPUs are gone."""

    def act(system: System, now: datetime) -> None:
        until = now + timedelta(minutes=30)
        for gpu in range(gpus):
            system.clusters[cluster].inject(GpuFails(node=node, gpu=gpu, at=now, until=until, lost=True))

    return act


BROKEN = (
    b"apiVersion: egs.dev/v1alpha1\nkind: GPR\nmetadata: {name: oops}\n"
    b"spec:\n  slice: robotics\n  nodes: 010\n  duration: 3 hours\n"
)
"""A manifest with four mistakes."""


def _window(begin: datetime, end: datetime, nodes: str, reason: str) -> str:
    """Lines of a cluster's document."""
    return (
        f'  maintenance:\n    - begin: "{format_instant(begin)}"\n      end: "{format_instant(end)}"\n'
        f"      nodes: {nodes}\n      reason: {reason}\n"
    )


UPGRADE = _window(
    datetime(2026, 3, 2, 13, tzinfo=UTC),
    datetime(2026, 3, 2, 14, tzinfo=UTC),
    "[l40s-rack2-b]",
    "driver upgrade",
)


def start_jobs(system: System, now: datetime) -> None:
    """Workloads wait in their namespaces; they run as soon as their slice has nodes."""
    day = timedelta(days=1)
    system.clusters["east"].submit(Job(namespace="vision-train", name="detector", gpus=8, duration=day), now)
    system.clusters["east"].submit(Job(namespace="nlp-train", name="llama", gpus=8, duration=day), now)
    system.clusters["east"].submit(
        Job(namespace="vision-train", name="labels-web", gpus=0, duration=day), now
    )


CHAT = {
    "apiVersion": "egs.dev/v1alpha1",
    "kind": "Endpoint",
    "metadata": {"name": "chat"},
    "spec": {
        "slice": "nlp",
        "gpr": "llama-finetune",
        "namespace": "nlp-eval",
        "versions": [
            {
                "name": name,
                "image": "vllm/vllm-openai:v0.11.0",
                "model": f"acme/{model}",
                "gpusPerReplica": 2,
            }
            for name, model in (("v1", "llama-3-8b"), ("v2", "llama-3-8b-tuned"))
        ],
        "weights": {"v1": 90, "v2": 10},
    },
}
"""Inference in two versions on half of a node; the other half is held and idle."""


def serve_chat(system: System, now: datetime) -> None:
    system.push({"slices/nlp/endpoints/chat.yaml": dump(CHAT).encode()}, "Serve the chat model", DANA, now)


def train_policy(system: System, now: datetime) -> None:
    job = Job(namespace="robotics", name="policy", gpus=8, duration=timedelta(days=1))
    system.clusters["west"].submit(job, now)


def trouble(system: System, now: datetime) -> None:
    """Heat below the limit at which a node is taken out, which only slows a GPU down, and errors of an application."""
    hour = timedelta(hours=1)
    for node in ("h100-2", "h100-5"):
        hot = GpuFails(node=node, gpu=6, at=now + hour / 4, until=now + hour, temp_c=85)
        wrong = GpuFails(node=node, gpu=1, at=now + hour / 2, until=now + hour, xid=31)
        system.clusters["east"].inject(hot, wrong)
    lost = GpuFails(node="h100-3", gpu=3, at=now + hour, xid=79, lost=True)
    system.clusters["east"].inject(lost)


def busy_week(system: System, now: datetime) -> None:
    """Enough for a full calendar: plans for days, a wish beyond a quota, a broken file, a maintenance."""
    h100 = {"gpusPerNode": 8, "gpuShape": "H100-80GB"}
    a100 = {"gpusPerNode": 8, "gpuShape": "A100-80GB"}
    l40s = {"gpusPerNode": 4, "gpuShape": "L40S-48GB"}
    for author, files in (
        (BO, request("vision", "lane-ablation", nodes=3, duration="10h", priority=140, **h100)),
        (BO, request("vision", "night-frames", nodes=4, duration="18h", priority=90, **h100)),
        (BO, request("vision", "labels-weekly", nodes=2, duration="6h", priority=60, **l40s)),
        (DANA, request("nlp", "reward-model", nodes=2, duration="12h", priority=180, **h100)),
        (DANA, request("nlp", "long-context", nodes=4, duration="1d", priority=160, **h100)),
        (DANA, request("nlp", "tokeniser-sweep", nodes=1, duration="8h", priority=50, **a100)),
        (FAY, request("robotics", "warehouse-sim", nodes=2, duration="12h", priority=110, **a100)),
        (
            FAY,
            request("robotics", "digital-twin", nodes=4, duration="6h", priority=120, **a100),
        ),  # beyond the quota
        (FAY, {"slices/robotics/gprs/quick-test.yaml": BROKEN}),
    ):
        (path,) = files
        system.push(files, f"Ask for {Path(path).stem}", author, now)
    begin = (now + timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    window = _window(begin, begin + timedelta(hours=4), "[l40s-rack2-a, l40s-rack2-b]", "rack rewiring")
    change("clusters/east.yaml", "  health:\n", f"{window}  health:\n", "Announce a maintenance", ADA)(
        system, now
    )


LIVE: tuple[Act, ...] = (start_jobs, serve_chat, train_policy, trouble, busy_week)
"""What happens in the live demo by itself, as soon as its clusters run; each is tried until it succeeds."""

STORY = (
    Step(1, "Three teams' workloads are submitted; they wait for GPUs", start_jobs),
    Step(
        10,
        "Dana merges a request of high priority; it goes before her own team's nightly evaluation",
        push(
            request(
                "nlp", "hotfix", nodes=1, gpusPerNode=8, gpuShape="H100-80GB", duration="2h", priority=280
            ),
            "Hotfix for the model in production",
            DANA,
        ),
    ),
    Step(
        20,
        "Fay merges a broken manifest; it is reported, and everything else continues",
        push(
            {"slices/robotics/gprs/oops.yaml": BROKEN},
            "Quick test, please ignore",
            FAY,
        ),
    ),
    Step(
        30,
        "Fay asks for more GPUs than her slice's quota; it waits for approval",
        push(
            request(
                "robotics", "twin", nodes=4, gpusPerNode=8, gpuShape="A100-80GB", duration="2h", priority=120
            ),
            "Digital twin",
            FAY,
        ),
    ),
    Step(50, "Ada approves it; it takes its place in the queue", approve("robotics/twin")),
    Step(91, "A GPU of the running Llama fine-tune falls off the bus", gpu_fails("nlp/llama-finetune")),
    Step(
        95, "A fan of another of its nodes stands still for nine minutes", gpu_gets_hot("nlp/llama-finetune")
    ),
    Step(
        100,
        "Dana asks what runs, which GPUs are near their limits, what alerts there are, and what is wrong with her job",
        asks=(
            questions.models,
            questions.hottest,
            questions.alerts,
            partial(questions.diagnosis, "nlp", "llama"),
        ),
    ),
    Step(
        180,
        "Bo releases his pretraining five hours early; the next one moves forward",
        change(
            "slices/vision/gprs/detector-pretrain.yaml",
            "  slice: vision",
            "  earlyRelease: true\n  slice: vision",
            "Pretraining is done",
            BO,
        ),
    ),
    Step(
        181,
        "The controller is killed while it hands nodes over, and started again",
        kills=True,
    ),
    Step(
        200,
        "Ada announces a driver upgrade of one node for 13:00",
        change("clusters/east.yaml", "  health:\n", f"{UPGRADE}  health:\n", "Driver upgrade", ADA),
    ),
    Step(
        301,
        "The driver of that node is upgraded; its GPUs are gone for half an hour",
        driver_is_upgraded("east", "l40s-rack2-b", 4),
    ),
    Step(
        320,
        "Ada asks which card failed this morning",
        asks=(partial(questions.card, "east/h100-1"),),
    ),
)
