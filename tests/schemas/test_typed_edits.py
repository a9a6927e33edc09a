"""Edits of models are typed: mypy knows each name and each type, and nothing goes round it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from mypy import api

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PRODUCT = ("schemas", "scheduler", "reconciler", "portal", "agent", "egs", "demo")
BY_FIELD_LISTS = {
    "schemas/documents/gpr.py",  # the fields that a template gives
    "reconciler/accounts/insights.py",  # every field of a tally, added up
    "reconciler/lifecycle/file_changes.py",  # the fields that are free to change while nodes are held
}
"""Copies whose fields are taken from a model's own list of them."""

PROGRAM = """
from datetime import datetime
from portal.vendor.gpr_models import GprData
from schemas.status.gpr_status import GPRStatus, Phase

def edits(status: GPRStatus, at: datetime, data: GprData) -> GPRStatus:
    reveal_type(data.edited(rank=1).edited(rank=None))  # GprData
    reveal_type(status.edited(phase=Phase.QUEUED, reason=None, end_time=at, checks=()))  # GPRStatus
    status.edited(phasis=Phase.QUEUED)  # Unexpected keyword argument "phasis"
    status.edited(phase="Queued")  # incompatible type "str"
    status.edited(filed_at=None)  # incompatible type "None"
    status.accepted_spec.edited(nodes="2")  # incompatible type "str"
    data.edited(rank="1")  # incompatible type "str"
    return status.edited(retry_count=at)  # incompatible type "datetime"
"""


def test_mypy_checks_the_fields_of_an_edit(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    # The product's own cache: `make check` has filled it, and the types of the product are not found out again.
    out, err, _ = api.run([*options, "--cache-dir", str(ROOT / ".mypy_cache"), str(file)])
    assert err == ""
    told = {
        int(line): text for line, text in re.findall(r"program\.py:(\d+): (error.*|note: Revealed.*)", out)
    }
    for number, line in enumerate(PROGRAM.splitlines(), start=1):
        if want := line.partition("  # ")[2]:
            assert want in told.pop(number), line
    assert told == {}


def test_the_product_edits_models_by_named_fields():
    untyped = set()
    for package in PRODUCT:
        for file in (ROOT / package).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    spread = any(keyword.arg is None for keyword in call.keywords)
                    if call.func.attr == "model_copy" or (call.func.attr == "edited" and spread):
                        untyped.add(file.relative_to(ROOT).as_posix())
    assert untyped == BY_FIELD_LISTS
