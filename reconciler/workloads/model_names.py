"""Which model a workload runs, in which framework, with which parameters, and where each was found. Pure.

The first place that says it counts: the request's `model`, the workload's own annotations, the spec of an
InferenceService, `--served-model-name`, `--model` or `vllm serve X`, an environment variable, the image's name.

Only flags on the list below are shown, and of an address only its path: command lines of people contain tokens.

Held by tests/reconciler/workloads/test_model_names.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.pod_port import Container, Json, OwnerObject, Pod
from schemas.documents.gpr import ModelInfo

ANNOTATION = "egs.dev/model"
FRAMEWORK_ANNOTATION = "egs.dev/framework"
PARAMETER_ANNOTATION = "egs.dev/model-parameter."
"""Followed by the parameter's name."""
LONGEST = 120
"""Characters of a name or value that are kept."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value, and where it stands."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class ModelFound:
    """What is known about a workload's model; None: nothing says it."""

    name: Said | None = None
    framework: Said | None = None
    parameters: Mapping[str, Said] = field(default_factory=dict)


SERVED = ("--served-model-name", "--served_model_name", "--model_name")
MODEL = (
    "--model",
    "--model-path",
    "--model_path",
    "--model-id",
    "--model_id",
    "--model_name_or_path",
    "--model-name-or-path",
    "--pretrained_model_name_or_path",
    "--base_model",
    "--ckpt_dir",
)
ENV = ("MODEL_NAME", "SERVED_MODEL_NAME", "MODEL_ID", "HF_MODEL_ID", "NIM_MODEL_NAME", "MODEL", "MODEL_PATH")
SHOWN: Mapping[str, str] = {
    "tensor-parallel-size": "tensorParallel",
    "tp": "tensorParallel",
    "tp-size": "tensorParallel",
    "pipeline-parallel-size": "pipelineParallel",
    "pp": "pipelineParallel",
    "data-parallel-size": "dataParallel",
    "expert-parallel-size": "expertParallel",
    "max-model-len": "maxModelLength",
    "context-length": "maxModelLength",
    "max-num-seqs": "maxSequences",
    "gpu-memory-utilization": "gpuMemoryUtilisation",
    "mem-fraction-static": "gpuMemoryUtilisation",
    "dtype": "dtype",
    "quantization": "quantisation",
    "kv-cache-dtype": "kvCacheDtype",
    "nnodes": "nodes",
    "nproc-per-node": "processesPerNode",
    "num-processes": "processes",
    "num-machines": "nodes",
    "per-device-train-batch-size": "batchSize",
    "micro-batch-size": "microBatchSize",
    "global-batch-size": "globalBatchSize",
    "batch-size": "batchSize",
    "gradient-accumulation-steps": "gradientAccumulation",
    "learning-rate": "learningRate",
    "lr": "learningRate",
    "epochs": "epochs",
    "num-train-epochs": "epochs",
    "max-steps": "maxSteps",
    "seq-length": "sequenceLength",
    "lora-rank": "loraRank",
}
"""Flags that are shown, without dashes and with `-` for `_`, and the names under which they are."""

KINDS: Mapping[str, str] = {
    "PyTorchJob": "pytorch",
    "TFJob": "tensorflow",
    "JAXJob": "jax",
    "XGBoostJob": "xgboost",
    "PaddleJob": "paddle",
    "MPIJob": "mpi",
    "RayJob": "ray",
    "RayCluster": "ray",
    "RayService": "ray",
    "DynamoGraphDeployment": "dynamo",
}
WORDS: tuple[tuple[str, str], ...] = (
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("text-generation-launcher", "tgi"),
    ("text-generation-inference", "tgi"),
    ("tritonserver", "triton"),
    ("trtllm", "tensorrt-llm"),
    ("tensorrt", "tensorrt-llm"),
    ("/nim/", "nim"),
    ("megatron", "megatron"),
    ("nemo", "nemo"),
    ("deepspeed", "deepspeed"),
    ("accelerate", "pytorch"),
    ("torchrun", "pytorch"),
    ("torch.distributed", "pytorch"),
    ("pytorch", "pytorch"),
    ("torchserve", "pytorch"),
    ("tensorflow", "tensorflow"),
    ("jax", "jax"),
    ("rayproject", "ray"),
    ("xgboost", "xgboost"),
    ("ollama", "ollama"),
)
"""Words of command lines and images, the more special first, and their framework."""
BASES = frozenset(
    (
        *(
            "python",
            "pytorch",
            "tensorflow",
            "cuda",
            "ubuntu",
            "debian",
            "ray",
            "ray-ml",
            "vllm-openai",
            "vllm",
        ),
        *(
            "sglang",
            "tritonserver",
            "base",
            "jax",
            "alpine",
            "busybox",
            "notebook",
            "jupyter",
            "nemo",
            "pause",
        ),
        *("text-generation-inference", "huggingfaceserver", "ollama", "llm-d"),
    )
)
"""Images that are named after their software: they say nothing about a model."""


def model_of(asked: ModelInfo, kind: str, chain: Sequence[OwnerObject], pods: Sequence[Pod]) -> ModelFound:
    """The model of a workload: `asked` in its request, `chain` of its owners, its pods in their order."""
    containers = [container for pod in pods for container in _main_first(pod.containers)]
    words = [list(_words(container)) for container in containers]
    return ModelFound(
        name=_first(_names(asked, chain, pods, containers, words)),
        framework=_first(_frameworks(asked, kind, chain, pods, containers, words)),
        parameters=_parameters(asked, chain, pods, words),
    )


def _first(found: Iterable[Said]) -> Said | None:
    for said in found:
        value = " ".join(said.value.split())[:LONGEST]
        if value:
            return Said(value, said.source)
    return None


def _main_first(containers: Sequence[Container]) -> list[Container]:
    """Those with GPUs first: a sidecar's flags do not tell the model."""
    return sorted(containers, key=lambda container: -container.gpus)


# -- names -------------------------------------------------------------------------------------------------------------


def _names(
    asked: ModelInfo,
    chain: Sequence[OwnerObject],
    pods: Sequence[Pod],
    containers: Sequence[Container],
    words: Sequence[list[str]],
) -> Iterator[Said]:
    yield Said(asked.name, "request")
    yield from _annotated(ANNOTATION, chain, pods)
    for owner in chain:
        if (name := _in_spec(owner)) is not None:
            yield Said(name, f"{owner.ref.kind} spec")
    for line in words:
        yield from _flags(line, SERVED)
    for line in words:
        yield from _flags(line, MODEL)
        yield from _vllm_serve(line)
    for container in containers:
        for name in ENV:
            yield Said(_short(container.env.get(name, "")), f"env {name}")
    for container in containers:
        yield Said(_image_name(container.image), "image")


def _annotated(name: str, chain: Sequence[OwnerObject], pods: Sequence[Pod]) -> Iterator[Said]:
    """The highest object speaks first: people write there."""
    for owner in reversed(chain):
        yield Said(owner.annotations.get(name, ""), f"annotation of {owner.ref.kind}")
    for pod in pods:
        yield Said(pod.annotations.get(name, ""), "annotation of Pod")


def _in_spec(owner: OwnerObject) -> str | None:
    """The name in the spec of KServe's kinds."""
    spec = owner.spec
    if owner.ref.kind == "LLMInferenceService":
        model = _inner(spec, "model")
        return str(model.get("name") or "") or _short(str(model.get("uri") or ""))
    if owner.ref.kind == "InferenceService":
        model = _inner(spec, "predictor", "model")
        args = [str(one) for one in model.get("args") or ()]
        served = _first(_flags(args, SERVED))
        return served.value if served is not None else _short(str(model.get("storageUri") or ""))
    return None


def _inner(found: Json, *names: str) -> Json:
    for name in names:
        inner = found.get(name)
        found = inner if isinstance(inner, Mapping) else {}
    return found


def _flags(line: Sequence[str], names: Sequence[str]) -> Iterator[Said]:
    """Values of these flags: `--model X` and `--model=X`."""
    for place, word in enumerate(line):
        flag, equals, value = word.partition("=")
        if flag not in names:
            continue
        if not equals:
            value = line[place + 1] if place + 1 < len(line) else ""
        if value and not value.startswith("-"):
            yield Said(_short(value), flag)


def _vllm_serve(line: Sequence[str]) -> Iterator[Said]:
    for before, serve, model in zip(line, line[1:], line[2:], strict=False):
        if before.rpartition("/")[2] == "vllm" and serve == "serve" and not model.startswith("-"):
            yield Said(_short(model), "vllm serve")


def _words(container: Container) -> Iterator[str]:
    """The words of its command line; those of a shell's script one by one, with variables of the pod filled in."""
    for part in container.command:
        for word in _split(part):
            yield _filled(word, container.env)


def _split(part: str) -> list[str]:
    if not any(space in part for space in " \n\t"):
        return [part]
    try:
        return shlex.split(part, comments=True)
    except ValueError:
        return part.split()


_VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)")


def _filled(word: str, env: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: env.get(found[1] or found[2] or found[3], found[0]), word)


def _short(value: str) -> str:
    """A model's name in a path or an address: `org/name` of a hub, the last part of anything else.

    An address may have a password in it, so nothing of it but the path is kept.
    """
    value = value.strip().strip("'\"")
    if "://" not in value:
        return value.rstrip("/").rpartition("/")[2] if value.startswith(("/", ".")) else value
    scheme, _, rest = value.partition("://")
    host, _, path = rest.partition("?")[0].partition("#")[0].partition("/")
    path = path.strip("/")
    if scheme == "hf":  # hf://org/name:revision
        return f"{host.rpartition('@')[2]}/{path.partition(':')[0]}"
    return path.rpartition("/")[2]


def _image_name(image: str) -> str:
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return "" if name in BASES else name


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_,:-]{0,39}")
"""A number or a word: all that these flags take, and too short for a token."""


# -- framework and parameters ------------------------------------------------------------------------------------------


def _frameworks(
    asked: ModelInfo,
    kind: str,
    chain: Sequence[OwnerObject],
    pods: Sequence[Pod],
    containers: Sequence[Container],
    words: Sequence[list[str]],
) -> Iterator[Said]:
    yield Said(asked.framework, "request")
    yield from _annotated(FRAMEWORK_ANNOTATION, chain, pods)
    lines = [" ".join(line).lower() for line in words]
    for line in lines:
        yield from (Said(framework, "command") for word, framework in WORDS if word in line)
    for owner in chain:
        if owner.ref.kind == "InferenceService":
            form = _inner(owner.spec, "predictor", "model", "modelFormat").get("name")
            yield Said(str(form or ""), "InferenceService spec")
    yield Said(KINDS.get(kind, ""), kind)
    for container in containers:
        image = container.image.lower()
        yield from (Said(framework, "image") for word, framework in WORDS if word in image)


def _parameters(
    asked: ModelInfo, chain: Sequence[OwnerObject], pods: Sequence[Pod], words: Sequence[list[str]]
) -> dict[str, Said]:
    """By name; the request's come before annotations, and those before flags."""
    found = {name: Said(value, "request") for name, value in sorted(asked.parameters.items())}
    holders = [(owner.annotations, owner.ref.kind) for owner in reversed(chain)]
    holders += [(pod.annotations, "Pod") for pod in pods[:1]]
    for notes, kind in holders:
        for key, value in sorted(notes.items()):
            if key.startswith(PARAMETER_ANNOTATION):
                name = key.removeprefix(PARAMETER_ANNOTATION)
                found.setdefault(name, Said(value[:LONGEST], f"annotation of {kind}"))
    for line in words:
        for place, word in enumerate(line):
            flag, equals, value = word.partition("=")
            name = SHOWN.get(flag.lstrip("-").replace("_", "-"), "") if flag.startswith("-") else ""
            value = value if equals else (line[place + 1] if place + 1 < len(line) else "")
            if name and _PLAIN.fullmatch(value):
                found.setdefault(name, Said(value, flag))
    return found
