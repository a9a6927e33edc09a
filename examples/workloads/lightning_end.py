"""A callback for Lightning, and so for NeMo 2: saves at the next step boundary once the lease is near its end.

trainer = Trainer(callbacks=[SaveBeforeEnd("/checkpoints/last.ckpt", lead_s=600)])
trainer.fit(model, ckpt_path="/checkpoints/last.ckpt" if Path("/checkpoints/last.ckpt").exists() else None)
"""

from __future__ import annotations

import time
from typing import Any

from egs_ends import due, said_saved
from lightning.pytorch.callbacks import Callback


class SaveBeforeEnd(Callback):
    """Once when the end is near, then every minute; rank 0 decides for all."""

    def __init__(self, path: str, lead_s: float, every_s: float = 60.0) -> None:
        self.path, self.lead_s, self.every_s = path, lead_s, every_s
        self.last = float("-inf")

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        wants = due(self.lead_s) and time.monotonic() - self.last >= self.every_s
        if trainer.strategy.broadcast(wants):
            trainer.save_checkpoint(self.path)
            self.last = time.monotonic()
            if trainer.is_global_zero:
                said_saved()
