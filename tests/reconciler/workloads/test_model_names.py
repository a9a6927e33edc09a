"""Names of models: the order of the places, and what is never shown (H1)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.pod_port import Container, OwnerObject, OwnerRef, Pod
from reconciler.workloads.model_names import model_of
from schemas.documents.gpr import ModelInfo


def found(*command: str, image: str = "python:3", env: dict[str, str] | None = None, **more: Any) -> Any:
    pod = Pod("east", "n", "p", gpus=1, containers=(Container("main", image, command, env or {}, gpus=1),))
    return model_of(more.get("asked", ModelInfo()), more.get("kind", "Job"), more.get("chain", ()), (pod,))


@pytest.mark.parametrize(
    ("command", "want"),
    [
        (("vllm", "serve", "Qwen/Qwen3-8B"), ("Qwen/Qwen3-8B", "vllm serve")),
        (("/opt/venv/bin/vllm", "serve", "x/y", "--port", "1"), ("x/y", "vllm serve")),
        (("python", "-m", "sglang.launch_server", "--model-path=/models/ours/"), ("ours", "--model-path")),
        (("serve", "--model", "hf://org/name:main"), ("org/name", "--model")),
        (("serve", "--model", "https://user:pass@host/a/b.gguf?token=x"), ("b.gguf", "--model")),
        (("serve", "--model", "a", "--served-model-name", "b"), ("b", "--served-model-name")),
        (("sh", "-c", "export A=1\nvllm serve $MODEL --tp 2 # the server"), ("from/env", "vllm serve")),
        (("sh", "-c", "python train.py --model 'broken quote"), ("broken", "--model")),
        (("serve", "--model", "--port"), ("other", "env MODEL_NAME")),
        (("serve",), ("other", "env MODEL_NAME")),
    ],
)
def test_the_first_place_that_says_it(command: tuple[str, ...], want: tuple[str, str]) -> None:
    env = {"MODEL": "from/env"} if "$MODEL" in command[-1] else {"MODEL_NAME": "other"}
    name = found(*command, env=env).name
    assert (name.value, name.source) == want


def test_an_image_named_after_its_software_says_nothing() -> None:
    assert found(image="docker.io/vllm/vllm-openai:v1").name is None
    assert found(image="nvcr.io/nim/meta/llama3-8b-instruct:1.0").name.value == "llama3-8b-instruct"
    assert found(image="registry:5000/team/ours@sha256:00").name.value == "ours"


def test_annotations_of_the_highest_object_come_first() -> None:
    low = OwnerObject(OwnerRef("batch", "Job", "j", "1"), "n", annotations={"egs.dev/model": "low"})
    high = OwnerObject(OwnerRef("x", "JobSet", "s", "2"), "n", annotations={"egs.dev/model": "high"})
    name = found("vllm", "serve", "other", chain=(low, high)).name
    assert (name.value, name.source) == ("high", "annotation of JobSet")


@pytest.mark.parametrize("flag", ["--api-key", "--hf-token", "--password", "--wandb-key"])
def test_only_flags_of_the_list_are_shown(flag: str) -> None:
    model = found(
        "train", flag, "hf_secret", f"{flag}=hf_secret", "--learning-rate", "1e-4", env={"TOKEN": "hf_secret"}
    )
    assert "hf_secret" not in repr(model)
    assert model.parameters["learningRate"].value == "1e-4"


def test_a_value_that_is_no_word_is_no_parameter() -> None:
    model = found("train", "--batch-size", "$(cat /run/secret)", "--lr", "x" * 60, "--dtype", "--tp", "8")
    assert {name: said.value for name, said in model.parameters.items()} == {"tensorParallel": "8"}


def test_a_long_name_is_cut_and_stays_on_one_line() -> None:
    name = found("serve", "--model", "a\n" + "b" * 500).name
    assert len(name.value) <= 120
    assert "\n" not in name.value
