"""Plain PyTorch, one process or several under torchrun: saves before the lease ends, continues from its checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
from egs_ends import saving

CHECKPOINT = Path(os.environ.get("CHECKPOINT", "/checkpoints/last.pt"))
STEPS = int(os.environ.get("STEPS", "100000"))
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def agreed(wants: bool) -> bool:
    """Rank 0 decides for all: ranks that save at different steps would wait for each other for ever."""
    if RANKS == 1:
        return wants
    answer = [wants]
    dist.broadcast_object_list(answer, src=0)
    return answer[0]


def main() -> None:
    device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    if RANKS > 1:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    model = torch.nn.Linear(1024, 1024).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    first = 0
    if CHECKPOINT.exists():
        kept = torch.load(CHECKPOINT, map_location=device)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"] + 1

    def save(step: int) -> None:
        if RANK == 0:
            draft = CHECKPOINT.with_suffix(".new")
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, draft
            )
            draft.replace(CHECKPOINT)  # a pod that is killed meanwhile leaves the old one whole
        if RANKS > 1:
            dist.barrier()

    for _ in saving(range(first, STEPS), save, lead_s=600, agree=agreed):
        optimizer.zero_grad()
        model(torch.randn(64, 1024, device=device)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
