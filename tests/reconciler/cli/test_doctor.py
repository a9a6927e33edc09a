"""`egs doctor`: what is well, what is not, and what to do about it. K1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reconciler.cli.rig import egs
from tests.support.kube import Plane, gpu_node


def told(*words: object) -> dict[tuple[str, str], dict[str, Any]]:
    """Findings by part and check; the exit says whether one is bad."""
    done = egs("doctor", *words, "-o", "json")
    assert done.code == int(any(found["result"] == "bad" for found in done.json))
    return {(found["part"], found["check"]): found for found in done.json}


def test_a_machine_is_looked_at_alone_where_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a repository nor a server is missed where none is asked for."""
    monkeypatch.chdir(tmp_path)
    found = told()
    assert {part for part, _ in found} == {"machine"}
    assert found["machine", "author"]["result"] == "look"
    assert found["machine", "git"]["result"] == "ok"


@pytest.mark.parametrize(
    ("break_it", "check", "result", "words"),
    [
        pytest.param("", "documents", "ok", "", id="valid documents"),
        pytest.param("kind: [", "documents", "bad", "egs validate", id="a broken one"),
        pytest.param("", "status", "look", "egs-reconciler run", id="no controller yet"),
    ],
)
def test_a_repository(tmp_path: Path, break_it: str, check: str, result: str, words: str) -> None:
    folder = tmp_path / "g"
    assert egs("init", folder, "--admin", "ada@example.com").code == 0
    if break_it:
        (folder / "templates" / "a.yaml").write_text(break_it)
    found = told("repository", "--repo", folder)["repository", check]
    assert (found["result"], words in found["do"]) == (result, True)


@pytest.mark.parametrize(
    ("words", "key", "said"),
    [
        pytest.param(("server",), ("server", "named"), "no server", id="no server is named"),
        pytest.param(
            ("repository", "--repo", "/nowhere"), ("repository", "answers"), "neither", id="no folder"
        ),
        pytest.param(
            ("cluster", "--kubeconfig", "/nowhere"), ("cluster", "answers"), "cannot be read", id="no file"
        ),
    ],
)
def test_what_does_not_answer_is_bad_and_hides_nothing(
    words: tuple[str, ...], key: tuple[str, str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EGS_CONFIG", str(tmp_path / "none"))
    found = told("machine", *words)
    assert (found[key]["result"], said in found[key]["message"]) == ("bad", True)
    assert ("machine", "git") in found


def test_a_cluster(kube: Plane) -> None:
    """B3: with the context that is named; what needs a person's look is said."""
    bare = gpu_node("gpu-9")
    del bare["metadata"]["labels"]["nvidia.com/gpu.product"]
    for item in (gpu_node("gpu-1"), bare):
        kube.api.create("/api/v1/nodes", item)
    context = yaml.safe_load(kube.kubeconfig.read_text())["current-context"]
    done = egs("doctor", "cluster", "--kubeconfig", kube.kubeconfig, "--context", context, "-o", "json")
    assert done.code == 0
    nodes = [found for found in done.json if found["check"] == "nodes"]
    assert [found["result"] for found in nodes] == ["ok", "look"]
    assert "gpu-9 is left out" in nodes[1]["message"]
