"""`egs kubeconfig` as people type it, and the kubeconfig in the hands of the real kubectl (B6)."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.reconciler.cli.rig import egs, fleet, folder, worktree
from tests.reconciler.clusters.kubernetes.tenants import BO, CY, ensured, opened, terms
from tests.support.world import cluster, slice_

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


@pytest.fixture
def repo(tmp_path):
    """A slice of two members and two namespaces, in a real cluster and a simulated one."""
    real = cluster("real", driver="kubernetes")
    both = [{"email": BO}, {"email": CY}]
    vision = slice_("vision", ("real", "east"), namespaces=["vision", "vision-dev"], members=both)
    return folder(
        tmp_path / "repo", fleet(**{"clusters/real.yaml": real, "slices/vision/slice.yaml": vision})
    )


@pytest.fixture
def slices(kube):
    found = opened(kube.api)
    ensured(found, terms("vision", "vision", "vision-dev"))
    yield found
    found.stop()


def ask(repo, *more: object):
    return egs("kubeconfig", "vision", "--repo", repo, "--member", BO, *more)


def real(repo, kube, *more: object):
    return ask(repo, "--cluster", "real", "--kubeconfig", kube.kubeconfig, *more)


def kubectl(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The real one, with this project's `egs` in its path and nothing else of ours."""
    path_of_egs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path_of_egs, "HOME": str(path.parent)}
    command = ["kubectl", "--kubeconfig", str(path), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@needs_kubectl
def test_kubectl_works_with_it_and_has_no_secret_in_it(kube, slices, repo, tmp_path):
    """The default: a plugin gets a token whenever kubectl needs one."""
    out = tmp_path / "vision.yaml"
    answer = real(repo, kube, "--out", out)
    assert (answer.code, answer.out) == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    document = yaml.safe_load(out.read_text())
    assert [c["name"] for c in document["contexts"]] == ["real-vision-vision", "real-vision-vision-dev"]
    assert all(list(user["user"]) == ["exec"] for user in document["users"])
    done = kubectl(out, "create", "configmap", "mine")
    assert done.returncode == 0, done.stderr
    assert kubectl(out, "get", "configmap", "mine", "-o", "name").stdout == "configmap/mine\n"
    other = kubectl(out, "--context", "real-vision-vision-dev", "get", "pods")
    assert other.returncode == 0, other.stderr
    refused = kubectl(out, "get", "pods", "-n", "kube-system")
    assert "Forbidden" in refused.stderr
    real(repo, kube)
    ended = kubectl(out, "get", "pods")
    assert ended.returncode == 1
    assert "this kubeconfig of namespace vision is no longer valid" in ended.stderr


@needs_kubectl
def test_a_static_one_needs_nothing_else(kube, slices, repo, tmp_path):
    out = tmp_path / "static.yaml"
    answer = real(repo, kube, "--static", "--expires", "10m", "--namespace", "vision", "--out", out)
    assert answer.code == 0
    assert "the token of namespace vision ends at" in answer.err
    document = yaml.safe_load(out.read_text())
    assert [list(user["user"]) for user in document["users"]] == [["token"]]
    assert document["users"][0]["user"]["token"] not in answer.err
    assert kubectl(out, "get", "pods").returncode == 0


def test_it_goes_to_stdout_alone_and_an_old_kubectl_gets_its_protocol(kube, slices, repo):
    answer = real(repo, kube, "--plugin-api", "v1beta1")
    plugin = yaml.safe_load(answer.out)["users"][0]["user"]["exec"]
    assert plugin["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert "interactiveMode" not in plugin


def test_the_plugin_answers_in_the_protocol_it_is_asked_in(kube, slices, repo, monkeypatch):
    args = yaml.safe_load(real(repo, kube).out)["users"][0]["user"]["exec"]["args"]
    for version in ("v1", "v1beta1"):
        asked = f"client.authentication.k8s.io/{version}"
        monkeypatch.setenv("KUBERNETES_EXEC_INFO", json.dumps({"apiVersion": asked}))
        credential = egs(*args).json
        assert (credential["apiVersion"], credential["kind"]) == (asked, "ExecCredential")
        assert set(credential["status"]) == {"token", "expirationTimestamp"}


def test_a_slice_that_is_not_in_the_cluster_yet_is_said_plainly(kube, repo):
    answer = real(repo, kube)
    assert answer.code == 1
    assert "has no ServiceAccount" in answer.err


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        pytest.param(
            ("--cluster", "west"), 1, "no cluster of slice vision called west", id="not its cluster"
        ),
        pytest.param(("--cluster", "east"), 1, "simulated", id="a simulated cluster"),
        pytest.param(
            ("--cluster", "real", "--namespace", "kube-system"),
            1,
            "no namespace of slice",
            id="not its namespace",
        ),
        pytest.param(
            ("--cluster", "real", "--member", "eve@example.com"),
            1,
            "not a member of slice vision",
            id="no member",
        ),
        pytest.param(
            ("--cluster", "real", "--static", "--expires", "8d"), 2, "10 minutes to 7 days", id="too long"
        ),
        pytest.param(
            ("--cluster", "real", "--static", "--expires", "9m"), 2, "10 minutes to 7 days", id="too short"
        ),
        pytest.param(("--cluster", "real", "--plugin-api", "v2"), 2, "v1 or v1beta1", id="no such protocol"),
        pytest.param(
            ("--cluster", "real", "--kubeconfig", "/nowhere"), 1, "/nowhere cannot be read", id="no file"
        ),
        pytest.param(
            ("--cluster", "real", "--kubeconfig", "{kube}", "--context", "x"),
            1,
            "no such context",
            id="no context",
        ),
    ],
)
def test_what_cannot_be_is_said_before_any_cluster_is_asked(repo, tmp_path, more, code, said):
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"contexts": [], "clusters": [], "current-context": "a"}))
    answer = ask(repo, *(word.replace("{kube}", str(own)) for word in more))
    assert answer.code == code
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_it_is_never_written_where_it_may_get_into_a_commit(repo, tmp_path):
    tree = worktree(tmp_path / "tree", {"a": "b"})
    answer = ask(repo, "--cluster", "real", "--out", tree / "deep.yaml")
    assert answer.code == 1
    assert "inside of a Git work tree" in answer.err
    assert not (tree / "deep.yaml").exists()


def test_nobodys_own_kubeconfig_is_written_over_or_mistaken(repo, tmp_path):
    """Its plugin would call itself."""
    own = tmp_path / "own.yaml"
    args = ["kubeconfig-token", "--namespace", "vision"]
    entry = {"name": "a", "context": {"cluster": "c", "user": "u"}}
    text = yaml.safe_dump(
        {
            "current-context": "a",
            "contexts": [entry],
            "clusters": [{"name": "c", "cluster": {"server": "https://example.com"}}],
            "users": [{"name": "u", "user": {"exec": {"command": "egs", "args": args}}}],
        }
    )
    own.write_text(text)
    answer = ask(repo, "--cluster", "real", "--kubeconfig", own, "--out", own)
    assert (answer.code, own.read_text()) == (2, text)
    assert "your own kubeconfig" in answer.err
    answer = ask(repo, "--cluster", "real", "--kubeconfig", own)
    assert answer.code == 1
    assert "was made by `egs`" in answer.err


def test_several_kubeconfigs_at_once_are_not_guessed_from(repo, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/a:/b")
    answer = ask(repo, "--cluster", "real")
    assert answer.code == 1
    assert "--kubeconfig FILE" in answer.err
