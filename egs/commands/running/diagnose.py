"""`egs diagnose`: what is wrong with a workload, in sentences.

Held by tests/contract/test_running_contract.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands import output
from egs.commands.backend import Backend
from egs.commands.declare import LOOKS, declare
from egs.commands.lists import Slice
from egs.commands.options import Output, argument
from egs.commands.output import Form, Row

WORST = frozenset({"critical", "warning"})


def register(app: typer.Typer) -> None:
    declare(app, "diagnose", "Say why a workload is slow or idle.", diagnose, LOOKS)


def diagnose(
    backend: Backend,
    workload: Annotated[
        str, argument(metavar="WORKLOAD", help="SLICE/GPR, or a workload: its id, NAMESPACE/NAME or name.")
    ],
    slice_: Slice = None,
    output: Output = Form.TABLE,
) -> None:
    """Say in sentences why a workload is slow, idle or does not start, with evidence and what to do.

    \b
    Examples:
      egs diagnose vision/train
      egs diagnose vision-train/llama --slice vision

    Looks at pods, values of GPUs, checks and events. Exit 1 when something is wrong.
    """
    found = backend.diagnosis(workload, slice_)
    if output is not Form.TABLE:
        _data(found, output)
    else:
        for line in _lines(found):
            _text(line)
    raise typer.Exit(1 if any(one["severity"] in WORST for one in found["findings"]) else 0)


def _lines(found: Row) -> list[str]:
    lines: list[str] = []
    for number, one in enumerate(found["findings"], 1):
        lines.append(f"{number}. {one['severity'].upper()}: {one['sentence']}.")
        lines += [f"   {line}" for line in one["evidence"]]
        if one["cause"] != "Well":
            lines.append(f"   What to do: {one['advice']}.")
    return lines or ["Nothing is known about it."]


# Inside a command, `output` is its option and not the module.
_data, _text = output.data, output.text
