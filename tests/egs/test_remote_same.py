"""The same command gives the same JSON on a repository and on the server in front of it (D2, D14, H10, H11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.egs.remote import CLIENT_ALONE, Shell
from tests.support.portal import Site

READS = [
    "get gprs",
    "get gprs --slice vision",
    "get gprs --phase Queued",
    "get gpr vision/runs",
    "get gprs vision/runs vision/waits",
    "get node east/h100-1",
    "get slices",
    "get clusters",
    "get nodes",
    "get nodes --cluster east --pool h100",
    "get requests",
    "get queue",
    "get queue --slice nlp",
    "get events",
    "get events --gpr vision/runs --limit 2",
    "get problems",
    "get workloads",
    "get workload vision/runs",
    "key list",
    "plan",
    "insights",
    "why vision/waits",
    "why vision/asks",
    "describe gpr vision/runs",
    "describe gpr vision/waits",
    "describe gpr vision/runs --checks",
    "describe slice vision",
    "describe cluster east",
    "describe node east/h100-1",
    "wait --slice vision --nodes 1 --duration 2h",
    "wait --slice nlp --nodes 4 --gpus-per-node 8 --duration 0d6h0m --cluster east --priority 200",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two requests hold all of east, one waits behind them, one waits for an admin, one is over."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/short", nodes=1, duration="30m")
    made.settle()
    made.pass_time(50)
    made.file("vision/runs", nodes=3, duration="2h", clusters=["east"])
    made.file("nlp/more", nodes=1, duration="1h")
    made.settle()
    made.file("vision/waits", nodes=3, duration="1h", clusters=["east"], displayName="Later: much")
    made.file("vision/asks", nodes=4, duration="1h", clusters=["east"], gpusPerNode=8)
    made.settle()
    made.commit({"slices/vision/gprs/bad.yaml": "kind: GPR\n", "clusters/east.yml": "x: 1\n"})
    made.settle()
    made.pass_time(40)  # it has its nodes
    made.commit({"slices/vision/gprs/worse.yaml": "kind: GPR\n"})
    made.settle()
    made.clock.set(made.view.facts.at)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as found:
        yield found


@pytest.fixture
def shell(site: Site, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(site, url, tmp_path, capsys)


@pytest.mark.parametrize("line", READS)
def test_an_admin_reads_the_same_in_both_modes(shell: Shell, line: str) -> None:
    here = shell.on_repository(f"{line} -o json")
    there = shell.on_server(f"{line} -o json")
    assert there.data == here.data
    assert there.code == here.code
    assert list(_keys(there.data)) == list(_keys(here.data)), "keys come in the same order"


def _keys(content: object) -> Iterator[str]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield name
            yield from _keys(value)
    elif isinstance(content, list):
        for one in content:
            yield from _keys(one)


@pytest.mark.parametrize("line", READS)
def test_the_client_alone_answers_in_every_form(shell: Shell, line: str) -> None:
    """K1: without the rest of the project installed."""
    shell.installed = list(CLIENT_ALONE)
    as_json = shell.on_server(f"{line} -o json").data
    assert yaml.safe_load(shell.on_server(f"{line} -o yaml").out) == as_json
    table = shell.on_server(line)
    assert table.out or table.err, "people are told something, if only that there is nothing"


@pytest.mark.parametrize(
    "line",
    ["gprs", "slices", "clusters", "nodes", "requests", "queue", "events", "problems", "workloads"],
)
@pytest.mark.parametrize("form", ["table", "wide"])
def test_the_tables_are_the_same_too(shell: Shell, line: str, form: str) -> None:
    there, here = shell.on_server(f"get {line} -o {form}"), shell.on_repository(f"get {line} -o {form}")
    assert (there.out, there.err) == (here.out, here.err)


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
def test_a_name_of_nothing_is_told_after_what_there_is(shell: Shell, on: str) -> None:
    done = getattr(shell, on)("get gprs vision/runs vision/run")
    assert done.code == 1
    assert "vision/runs" in done.out
    assert "there is no request vision/run; did you mean vision/runs" in done.err


def test_what_runs_has_cost_something_so_far(shell: Shell) -> None:
    """H17: also before it ends, with the project's currency, everywhere the same."""
    row = shell.on_repository("get gpr vision/runs -o json").data
    (load,) = [w for w in shell.on_repository("get workloads -o json").data if w["name"] == "vision/runs"]
    cost = shell.on_repository("describe gpr vision/runs -o json").data["cost"]
    assert row["phase"] == "Provisioned"
    assert (row["cost"], row["currency"]) == (cost["amount"], cost["currency"])
    assert load["cost"] == f"{row['cost']:.2f} USD"
    assert f"{row['cost']:.2f} USD" in shell.on_repository("get gprs").out
    id_ = load["gprId"]
    data = shell.site.client("ada-owner").get("/api/v1/gpr", params={"gprId": id_}).json()["data"]
    assert data["status"]["cost"] == load["cost"]


def test_the_checks_of_a_request_are_shown_each_with_value_and_log(shell: Shell) -> None:
    """F4, F5: passing or not, on a repository, on a server and in the status."""
    rows = shell.on_server("describe gpr vision/runs --checks -o json").data
    assert rows == shell.on_repository("describe gpr vision/runs -o json").data["status"]["checks"]
    assert len({row["node"] for row in rows}) == 3
    assert {"NodeHealth", "PersistentVolume", "Connectivity"} <= {row["name"] for row in rows}
    assert all(row["passed"] and row["value"] and row["log"] for row in rows)
    table = shell.on_repository("describe gpr vision/runs --checks")
    assert table.out.splitlines()[0].split() == ["STAGE", "NODE", "CHECK", "PASSED", "VALUE", "AT", "LOG"]
    assert shell.on_server("describe gpr vision/waits --checks").err == "egs: no node of it was checked yet\n"
