"""docs/reference/sdk.md runs from first block to last, in one program, against a site that lives. A7, D2, H17."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import egs
from tests.support.living import living
from tests.support.portal import KEYS

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs/reference/sdk.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_runs(tmp_path):
    with living(tmp_path / "site") as url:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", "\n".join(BLOCKS)],
            env={"PATH": os.environ["PATH"], "EGS_SERVER": url, "EGS_API_KEY": KEYS["bo-editor"]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    for words in ("pushed", "Completed 10.00 USD", "Complete 10.00 USD", "GPRDuration75", "404", "6 0"):
        assert words in ran.stdout


def test_it_names_what_there_is():
    """Every function and exception is on the page, and no name of a function there is none."""
    named = set(re.findall(r"`([a-z_]+|[A-Z][A-Za-z]+)`", PAGE))
    families = ("gpr_template", "auto_", "manual_selection")
    functions = {name for name in egs.aio.__all__ if not any(part in name for part in families)}
    assert functions - named == set()
    errors = {
        name
        for name, kind in vars(egs.exceptions).items()
        if isinstance(kind, type) and issubclass(kind, Warning | egs.EgsApplicationException)
    }
    assert errors - named == set()
