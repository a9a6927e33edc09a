"""What a type checker makes of programs that use the client: the package is typed for them, too. A7."""

from __future__ import annotations

import re

from mypy import api

PROGRAM = """
import asyncio
from datetime import timedelta
import egs
from egs import aio

auth = egs.authenticate("https://egs.example.com", "key", sdk_default=True)
reveal_type(auth)  # AuthenticatedSession
reveal_type(egs.request_gpu("a", "b", "c", 1, 1, 80, "", "", timedelta(hours=1), 101, auth))  # str
reveal_type(egs.request_gpu("a", "b", "c", 1, 1, 80, "", "", "1h", 101, "30m", True, True, True, auth))  # str
reveal_type(egs.request_gpu(request_name="a", workspace_name="b", node_count=1, gpu_per_node_count=1, exit_duration="1h"))  # str
reveal_type(egs.inventory(None, auth)[0])  # Inventory
reveal_type(egs.gpu_request_status("gpr-1").status.nodes)  # list[str]
reveal_type(egs.gpu_request_status_for_workspace("vision").items[0])  # GpuRequestData
for request in egs.watch("gpr-1"):
    reveal_type(request)  # GpuRequestData
reveal_type(egs.exceptions.Unauthorized)  # Unauthorized


async def main() -> None:
    reveal_type(await aio.wait_for("gpr-1", "Provisioned"))  # GpuRequestData
    async for event in aio.watch_events("vision"):
        reveal_type(event)  # EventRow
    await asyncio.gather(asyncio.create_task(aio.inventory(auth)), aio.queue())


asyncio.run(main())
reveal_type(egs.gpu_request_status("gpr-1").to_dict())  # dict[str, Any]
egs.update_gpu_request("gpr-1", node_count=2, not_before="2026-11-21T08:00:00Z", model={"name": "llama"})
egs.update_gpu_request("gpr-1", node_count="2")  # error
egs.cancel_gpu_request(3)  # error
egs.wait_for("gpr-1", timeout="soon")  # error
"""  # noqa: E501 - a program, as somebody writes it


def test_a_program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    out, err, _ = api.run(
        ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(file)]
    )
    assert err == ""
    told = {int(line): text for line, text in re.findall(r"program\.py:(\d+): (.*)", out)}
    for number, line in enumerate(PROGRAM.splitlines(), start=1):
        want = line.partition("  # ")[2]
        if want:
            assert want.removeprefix("error") in told.pop(number), line
    assert told == {}
