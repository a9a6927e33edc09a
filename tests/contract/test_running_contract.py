"""One contract for the commands about what runs, on a repository and on a server (H1-H7, H16, H18).

The same command gives the same JSON, the same table and the same exit code. The clusters are simulated: a server asks
the controller's own, a command on the repository a copy of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.egs.remote import CLIENT_ALONE, Shell
from tests.support.portal import Site

READS = [
    "get workloads",
    "get workloads --slice vision",
    "get workload vision/train",
    "get gpus",
    "get gpus --slice nlp",
    "get gpus --cluster west",
    "get gpus --hot",
    "get gpus --grep finetune",
    "get gpus --node east/h100-1",
    "get alerts",
    "get alerts --slice vision --cluster east",
    "top gpus --slice vision",
    "top workloads",
    "top slices",
    "diagnose vision/train",
    "diagnose vision/finetune",
    "diagnose finetune --slice vision",
    "diagnose vision/waits",
    "diagnose nlp/more",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision trains on one node and has a pod that waits, nlp's request does nothing, and one request waits."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/train", nodes=1, duration="4h", clusters=["east"], model={"name": "llama"})
    made.file("nlp/more", nodes=1, duration="4h")
    made.settle()
    made.file("vision/waits", nodes=1, duration="1h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 6, made.now)
    made.running.submit("east", "vision", "too-large", 4, made.now)
    made.pass_time(40)
    made.file("nlp/later", nodes=1, duration="1h")  # a commit, so that the newest status is of now
    made.settle()
    made.clock.set(made.view.facts.at)
    yield made
    made.close()


@pytest.mark.parametrize("line", READS)
def test_the_same_on_both(shell: Shell, line: str) -> None:
    here, there = shell.on_repository(f"{line} -o json"), shell.on_server(f"{line} -o json")
    assert there.data == here.data
    assert there.code == here.code
    table_here, table_there = shell.on_repository(line), shell.on_server(line)
    assert (table_there.code, table_there.out, table_there.err) == (
        table_here.code,
        table_here.out,
        table_here.err,
    )


@pytest.mark.parametrize("line", READS)
def test_the_client_alone_answers_too(shell: Shell, line: str) -> None:
    shell.installed = list(CLIENT_ALONE)
    done = shell.on_server(line)
    assert done.out or done.err


def test_what_waits_and_what_rests_is_told(shell: Shell) -> None:
    """H18."""
    done = shell.on_repository("diagnose vision/train")
    assert done.code == 1
    assert "1 pod finds no node: of the 8 GPUs of vision/train, pods already use 6" in done.out
    assert "8 GPUs are allocated, 6 work" in done.out
    assert "What to do:" in done.out
    waits = shell.on_server("diagnose vision/waits")
    assert waits.code == 0
    assert "vision/waits has no nodes yet: it starts at" in waits.out


def test_top_sums_up_gpus(shell: Shell) -> None:
    by_slice = {row["slice"]: row for row in shell.on_server("top slices -o json").data}
    assert by_slice["vision"]["gpus"] == 8
    assert by_slice["vision"]["idleGpus"] == 2
    works = shell.on_repository("top workloads -o json").data
    assert {(row["workload"], row["gpus"]) for row in works} >= {("Job/finetune", 6), (None, 2)}


def test_without_a_way_into_clusters_the_rows_say_so(shell: Shell) -> None:
    """Nothing fails: the repository alone knows requests and health."""
    at = shell.site.view.facts.at.strftime("%Y-%m-%dT%H:%M:%SZ")
    done = shell("get", "workloads", "--repo", str(shell.site.repo), "--now", at, "-o", "json")
    row = next(row for row in done.data if row["name"] == "vision/train")
    assert "name that with --state DIR" in row["podsUnknown"]
    assert row["summary"]["averageUtilisationPercent"] is None


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
def test_an_unknown_workload_is_told_with_those_that_there_are(shell: Shell, on: str) -> None:
    done = getattr(shell, on)("diagnose vision/trian")
    assert done.code == 1
    assert "there is no workload vision/trian" in done.err
    assert "vision/train" in done.err


def test_ones_own_kubeconfig_reaches_one_cluster(shell: Shell) -> None:
    """It must not show one cluster's pods as those of another."""
    done = shell("get", "gpus", "--repo", str(shell.site.repo), "--kubeconfig", "mine")
    assert done.code == 2
    assert "--kubeconfig reaches one cluster, and there are 0 to reach; give --kubeconfigs DIR" in done.err
