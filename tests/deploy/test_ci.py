"""`.ci/run` passes only where everything that it promises to test was tested."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(path: Path, text: str) -> None:
    """An executable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("build", "failing", "made"),
    [
        pytest.param("true", "none", True, id="with the new control plane everything is run"),
        pytest.param("false", "none", False, id="without it nothing counts as passed"),
        *(
            pytest.param("true", target, True, id=f"what fails beside or after the others counts: {target}")
            for target in ("check", "test")
        ),
    ],
)
def test_ci_fails_where_anything_fails_or_cannot_be_tested(
    tmp_path: Path, build: str, failing: str, made: bool
):
    told, tools = tmp_path / "told", tmp_path / "bin"
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    script(tmp_path / "tests" / "support" / "controlplane" / "kube", build)
    script(
        tools / "make", f'echo "$1 $EGS_TEST_KUBE_NEW" >> {told}; echo "this is $1"; [ "$1" != {failing} ]'
    )
    for name in ("apt-get", "sudo", "openssl", "etcd"):
        script(tools / name, "true")
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    given = ("EGS_TEST_HELM", "EGS_TEST_DEX", "EGS_TEST_KUBE")
    env |= dict.fromkeys(given, "/bin/true")
    done = subprocess.run(
        [str(tmp_path / ".ci" / "run")], env=env, capture_output=True, check=False, text=True
    )
    lines = told.read_text().splitlines() if told.exists() else []
    assert (done.returncode == 0) is (made and failing == "none"), done.stderr
    kube = tmp_path / "tests" / "support" / "controlplane" / "kube"
    run = {".venv/ready", "check", "test"}
    assert sorted(lines) == sorted(f"{target} {kube}" for target in run if made)
    assert all(f"this is {target}" in done.stdout for target in run if made)
