"""The real Helm, where there is one: `EGS_TEST_HELM` is its binary. Tests without it are skipped, and say so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
NAMESPACE = "egs-system"
Json = dict[str, Any]


class Helm:
    """Calls of it, in a folder of its own."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._binary, self._folder = binary, folder

    def run(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One call; the text of its failure is shown."""
        own = {
            key: str(self._folder / key.lower())
            for key in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        }
        done = subprocess.run(
            [self._binary, *args], capture_output=True, text=True, env={**os.environ, **own}
        )
        if check and done.returncode:
            raise AssertionError(f"helm {args[0]}: {done.stderr[-2000:]}")
        return done

    def values(self, given: Json) -> str:
        """A file with them."""
        path = self._folder / "values.yaml"
        path.write_text(yaml.safe_dump(given))
        return str(path)

    def template(self, given: Json, *more: str) -> list[Json]:
        """The objects."""
        text = self.run(
            "template", "egs", str(CHART), "-n", NAMESPACE, "-f", self.values(given), *more
        ).stdout
        return [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """It, or a skip."""
    binary = os.environ.get("EGS_TEST_HELM")
    if not binary:
        pytest.skip("needs Helm: set EGS_TEST_HELM to its binary")
    return Helm(binary, tmp_path)
