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
    ("build", "made"),
    [
        pytest.param("true", ["check", "test", "demo"], id="with the new control plane everything is run"),
        pytest.param("false", [], id="without it nothing counts as passed"),
    ],
)
def test_ci_fails_where_the_new_control_plane_cannot_be_built(tmp_path: Path, build: str, made: list[str]):
    told, tools = tmp_path / "told", tmp_path / "bin"
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    script(tmp_path / "tests" / "support" / "controlplane" / "kube", build)
    script(tools / "make", f'echo "$1 $EGS_TEST_KUBE_NEW" >> {told}')
    for name in ("apt-get", "sudo", "openssl", "etcd"):
        script(tools / name, "true")
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    env |= {"EGS_TEST_HELM": "/bin/true", "EGS_TEST_DEX": "/bin/true", "EGS_TEST_KUBE": "/bin/true"}
    done = subprocess.run([str(tmp_path / ".ci" / "run")], env=env, capture_output=True, check=False)
    lines = told.read_text().splitlines() if told.exists() else []
    assert (done.returncode == 0) is bool(made), done.stderr
    kube = tmp_path / "tests" / "support" / "controlplane" / "kube"
    assert lines == [f"{target} {kube}" for target in made]
