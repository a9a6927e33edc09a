"""File the objects of `pytorch.yaml` with a request of their own, and wait until they run.

    EGS_SERVER=https://egs.example.com EGS_API_KEY=… python deploy_job.py vision

The workspace is the only argument. The page "Jobs" shows the job then, as `egs describe job vision/pytorch` does.
"""

import os
import sys
import time
from pathlib import Path

import egs

OBJECTS = Path(__file__).with_name("pytorch.yaml")


def main(workspace: str) -> None:
    egs.authenticate(os.environ["EGS_SERVER"], os.environ["EGS_API_KEY"], sdk_default=True)
    job = egs.deploy_job(
        "pytorch", workspace, OBJECTS, node_count=1, gpu_per_node_count=1, exit_duration="2h"
    )
    print(f"{job.name} is filed ({job.change.way}), its request is {job.request_id}")
    request = egs.wait_for(job.request_id, "Provisioned")
    print(f"it has {', '.join(request.status.nodes)} until {request.end_time}")
    while (found := egs.job(job.name)).phase == "Pending":
        time.sleep(1)
    for each in found.objects:
        print(f"{each.kind} {each.name} is {each.state} in {found.cluster}/{found.namespace}")


if __name__ == "__main__":
    main(sys.argv[1])
