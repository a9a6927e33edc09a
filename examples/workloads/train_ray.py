"""Ray Train: each worker looks at the end between steps and reports a checkpoint when it is near."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch.distributed as dist
from egs_ends import said_saved, saving
from ray import train
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def agreed(wants: bool) -> bool:
    """Rank 0 decides for all: every worker reports at the same step."""
    answer = [wants]
    dist.broadcast_object_list(answer, src=0)
    return answer[0]


def loop(config: dict[str, Any]) -> None:
    before, first = train.get_checkpoint(), 0
    if before is not None:
        with before.as_directory() as folder:
            first = json.loads((Path(folder) / "step.json").read_text())["step"] + 1

    def save(step: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "step.json").write_text(json.dumps({"step": step}))  # and the model's state
            train.report({"step": step}, checkpoint=Checkpoint.from_directory(folder))

    for _ in saving(range(first, config["steps"]), save, lead_s=600, agree=agreed):
        pass  # one step of training


if __name__ == "__main__":
    trainer = TorchTrainer(
        loop,
        train_loop_config={"steps": 100_000},
        scaling_config=ScalingConfig(num_workers=int(os.environ.get("GPUS", "8")), use_gpu=True),
        run_config=RunConfig(name="train", storage_path="/checkpoints"),
    )
    trainer.fit()
    said_saved()
