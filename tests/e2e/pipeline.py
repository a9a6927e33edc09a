"""A pipeline, as somebody would write it who knows nothing of Git: SDK calls alone. Run by tests/e2e/test_pipeline.py.

EGS_SERVER and EGS_API_KEY say where and who; prints what it lived through as JSON.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import egs

auth = egs.authenticate(os.environ["EGS_SERVER"], os.environ["EGS_API_KEY"], sdk_default=True)
quote = egs.wait_time("vision", node_count=1, gpu_per_node_count=8, exit_duration="0d0h30m")[0]
request_id = egs.request_gpu(
    request_name="nightly",
    workspace_name="vision",
    cluster_name=quote.cluster_name,
    gpu_shape=quote.gpu_shape,
    node_count=1,
    gpu_per_node_count=8,
    exit_duration="0d0h30m",
    priority=150,
)
started = egs.wait_for(request_id, "Provisioned", timeout=240)
seen = [request.phase for request in egs.watch(request_id)]
ended = egs.gpu_request_status(request_id)
print(
    json.dumps(
        {
            "client": str(Path(egs.__file__).parent),
            "quoted": quote.estimated_start_time,
            "started": started.status.start_timestamp,
            "nodes": started.status.nodes,
            "seen": seen,
            "status": ended.status.provisioning_status,
            "completed": ended.status.completion_timestamp,
            "cost": ended.cost,
            "events": [event.reason for event in egs.events(request_id=request_id)],
        }
    )
)
