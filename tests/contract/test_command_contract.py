"""One contract for the commands (`egs.commands`), on both backends: a repository, and the server in front of it.

The same command gives the same JSON, the same table and the same exit code, and a change leaves the same file (D2, D14,
H10, H11, K1). What a server does not carry out it says in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from egs.commands.questions import LONGEST_COUNTED_S
from egs.remote import asking
from reconciler.accounts.insights import MARKS_S
from tests.egs.remote import CLIENT_ALONE, Done, Shell
from tests.support.endpoints import document as endpoint
from tests.support.endpoints import version
from tests.support.portal import Site
from tests.support.world import gpr

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
    "get capacity",
    "get capacity --shape H100-80GB --hours 3 --cluster east",
    "get calendar",
    "get calendar --from 2026-11-21T07:00:00Z --hours 6 --cluster east --slice vision",
    "get calendar --from 2026-11-21t07:00:00z --hours 6",
    "get calendar --shape H100-80GB --pool h100 --free",
    "get requests",
    "get jobs",
    "get jobs --slice vision",
    "get job vision/finetune",
    "job list --slice vision",
    "describe job vision/finetune",
    "describe job vision/later",
    "get endpoints",
    "get endpoint vision/chat",
    "endpoint list --slice vision",
    "describe endpoint vision/chat",
    "endpoint describe vision/chat",
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
    "advise vision",
    "advise vision --hours 3 --gpus-per-node 8 --shape H100-80GB --patience 30m",
    "promises",
    "blame vision/runs",
    "blame vision/runs --field spec.nodes",
    "blame vision/waits --field status.phase",
    "blame clusters/east.yaml --limit 1",
    "why vision/waits",
    "why vision/asks",
    "describe gpr vision/runs",
    "describe gpr vision/waits",
    "describe gpr vision/runs --checks",
    "describe slice vision",
    "describe cluster east",
    "describe node east/h100-1",
    "wait --slice vision --nodes 1 --duration 2h",
    "wait --slice vision --nodes 99 --duration 2h",
    "wait --slice nlp --nodes 4 --gpus-per-node 8 --duration 0d6h0m --cluster east --priority 200",
]


JOBS = {"finetune": "runs", "later": "nothing"}
"""Workloads and their requests."""


ENDPOINT = "slices/vision/endpoints/chat.yaml"


def workload(name: str, gpr: str) -> str:
    """A workload with one Job, as a file."""
    spec = {"template": {"spec": {"containers": [{"name": "main", "image": "example.com/train"}]}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload", "metadata": {"name": name}}
    return yaml.safe_dump({**head, "spec": {"slice": "vision", "gpr": gpr, "manifests": [job]}})


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
    made.commit({f"slices/vision/workloads/{name}.yaml": workload(name, gpr) for name, gpr in JOBS.items()})
    made.commit({ENDPOINT: endpoint("chat", "vision", gpr="runs", versions=[version("v1"), version("v2")])})
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
    """K1: without the rest of the project."""
    shell.installed = list(CLIENT_ALONE)
    as_json = shell.on_server(f"{line} -o json").data
    assert yaml.safe_load(shell.on_server(f"{line} -o yaml").out) == as_json
    table = shell.on_server(line)
    assert table.out or table.err, "people are told something, if only that there is nothing"


KINDS = ["gprs", "slices", "clusters", "nodes", "requests", "queue", "events", "problems", "workloads"]


@pytest.mark.parametrize("line", [*READS, *(f"get {kind} -o wide" for kind in KINDS)])
def test_the_tables_are_the_same_too(shell: Shell, line: str) -> None:
    there, here = shell.on_server(line), shell.on_repository(line)
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err)


def test_a_long_calendar_comes_in_windows_of_one_state(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: as many rows as there are nodes, whatever the server gives at once."""
    monkeypatch.setattr(asking, "_ROWS", 2)
    whole = shell.on_repository("get calendar -o json").data
    assert len(whole["rows"]) > 2
    assert shell.on_server("get calendar -o json").data == whole


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
def test_the_calendar_draws_each_node(shell: Shell, on: str) -> None:
    """G3: a lease, and what follows it on the same node."""
    done = getattr(shell, on)("get calendar --cluster east --hours 12")
    head, ruler, *strips = done.out.splitlines()
    assert head.startswith("east/h100: 8 x H100-80GB, ")
    assert ruler.split()[:1] == [shell.site.now.astimezone().strftime("%d")]
    assert [line.split()[0] for line in strips[:4]] == ["h100-1", "h100-2", "h100-3", "h100-4"]
    assert (done.out.count("<runs="), done.out.count("|waits-")) == (3, 3)


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


# -- changes -----------------------------------------------------------------------------------------------------------


@dataclass
class Backend:
    """One of the two, over a site of its own: runs a line as ada, an admin who is a member of everything here."""

    name: str
    shell: Shell

    def __call__(self, line: str, *more: str) -> Done:
        """Run it; the portal and the controller have seen what it did then."""
        site = self.shell.site
        if self.name == "server":
            done = self.shell.on_server(line, *more)
        else:
            author = () if line.split()[0] in _READS else ("--author", "Ada <ada@example.com>")
            done = self.shell(*line.split(), *more, "--repo", str(site.repo), *author)
        site.settle()
        return done

    def spec(self, path: str) -> dict[str, Any]:
        """What main says there; empty: nothing."""
        found: dict[str, Any] = yaml.safe_load(self.shell.site.main(path) or "{}").get("spec", {})
        return found


_READS = {"get", "describe", "plan"}


@pytest.fixture(scope="module", params=["repository", "server"])
def changed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Site]]:
    made = Site(tmp_path_factory.mktemp("changed"))
    made.settle()
    yield request.param, made
    made.close()


@pytest.fixture(scope="module")
def address(changed: tuple[str, Site]) -> Iterator[str]:
    with changed[1].server() as found:
        yield found


@pytest.fixture
def egs(
    changed: tuple[str, Site], address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Backend:
    name, site = changed
    return Backend(name, Shell(site, address, tmp_path, capsys))


LATER = "2027-06-01T00:00:00Z"
FILED = ["slice", "name", "path", "commit", "branch", "pullRequest", "dryRun", "estimate"]


def test_a_request_is_tried_and_filed(egs: Backend) -> None:
    line = (
        "gpr create vision/train --nodes 2 --gpus-per-node 8 --shape H100-80GB --duration 6h --rdma --model m"
    )
    assert egs(f"{line} --dry-run").code == 1, "no node here has RDMA, so it has no start"
    line = line.replace(" --rdma", "")
    tried, before = egs(f"{line} --dry-run -o json"), egs.shell.site.log()
    assert (tried.code, tried.data["dryRun"], tried.data["commit"]) == (0, True, None)
    assert egs.shell.site.log() == before
    done = egs(f"{line} -o json", "--display-name", "Try 1: small")
    assert (done.code, list(done.data), done.data["dryRun"]) == (0, FILED, False), done.err
    assert done.data["estimate"]["cluster"] == "east"
    assert "committed to main as" in done.err
    spec = egs.spec("slices/vision/gprs/train.yaml")
    assert (spec["nodes"], spec["displayName"], spec["model"]["name"]) == (2, "Try 1: small", "m")
    author, _, subject = egs.shell.site.log()[0].split("|")
    assert (author.partition(" ")[2], subject) == ("<ada@example.com>", "Create vision/train")
    assert egs(f"{line} -o json").code == 1, "its name is taken"


OBJECTS = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/train}]}}}
"""


def test_a_workload_is_tried_filed_and_deleted(egs: Backend, tmp_path: Path) -> None:
    """A9, D14."""
    file = tmp_path / "tune.yaml"
    file.write_text(OBJECTS)
    new = f"job run {file} --slice vision --nodes 1 --gpus-per-node 8 --duration 1h"
    before = egs.shell.site.log()
    tried = egs(f"{new} --dry-run")
    assert (tried.code, "not filed" in tried.err) == (0, True), tried.err
    assert [each["kind"] for each in yaml.safe_load_all(tried.out)] == ["GPR", "Workload"]
    assert egs.shell.site.log() == before
    done = egs(new)
    assert (done.code, "Run vision/tune: committed to main as" in done.err) == (0, True), done.err
    assert (egs.spec("slices/vision/gprs/tune.yaml")["nodes"], egs.spec(PATH)["gpr"]) == (1, "tune")
    assert egs(f"{new} --dry-run").code == 1, "its name is taken"
    assert egs(f"job run {file} --slice vision --name more --gpr tune").code == 0
    assert egs.spec(PATH.replace("tune", "more"))["manifests"] == [yaml.safe_load(OBJECTS)]
    assert egs(f"job run {file} --slice vision --name other --gpr none").code == 1
    assert egs(f"job run {file} --nodes 1 --duration 1h").code == 2, "there are two slices"
    file.write_text("a: [b")
    assert "is not YAML" in egs(new).err
    assert egs("job delete vision/tune").code == 0
    assert egs.shell.site.main(PATH) is None
    assert egs("job delete vision/tune").code == 1


PATH = "slices/vision/workloads/tune.yaml"


def test_an_endpoint_is_tried_and_filed(egs: Backend) -> None:
    """J2, D14: one version with all the traffic."""
    site, path = egs.shell.site, "slices/vision/endpoints/captions.yaml"
    if site.main("slices/vision/gprs/serves.yaml") is None:
        site.file("vision/serves", nodes=1, duration="1h", notBefore=LATER, gpusPerNode=8)
        site.settle()
    new = "endpoint create vision/captions --gpr serves --model acme/m --image acme/vllm:1 --hostname c.example.com"
    before = site.log()
    tried = egs(f"{new} --dry-run")
    assert (tried.code, "not filed" in tried.err) == (0, True), tried.err
    assert site.log() == before
    done = egs(f"{new} --replicas 2 --arg=--max-model-len --arg 8192")
    assert (done.code, "Serve vision/captions: committed to main as" in done.err) == (0, True), done.err
    served = {"name": "v1", "image": "acme/vllm:1", "model": "acme/m"}
    want = {"slice": "vision", "gpr": "serves", "versions": [served], "weights": {"v1": 100}}
    want["route"] = {"hostnames": ["c.example.com"]}
    assert yaml.safe_load(tried.out)["spec"] == want
    more = {"args": ["--max-model-len", "8192"], "replicas": {"min": 2, "max": 2}}
    assert egs.spec(path) == {**want, "versions": [served | more]}
    assert egs(new).code == 1, "its name is taken"
    assert egs(new.replace("captions", "other").replace("serves", "none")).code == 1, "no such request"
    assert egs(new.replace("captions", "other") + " --version Bad").code in (1, 2)
    site.commit({path: None})


def test_a_version_is_promoted_and_rolled_back(egs: Backend) -> None:
    """J2: the file changes, and nothing else in it does."""
    site = egs.shell.site
    site.commit({ENDPOINT: endpoint("chat", "vision", gpr="runs", versions=[version("v1"), version("v2")])})
    site.settle()
    done = egs("endpoint promote vision/chat v2 --weight 25")
    assert (done.code, "Promote v2 of vision/chat to 25 %: committed to main as" in done.err) == (0, True), (
        done.err
    )
    assert egs.spec(ENDPOINT)["weights"] == {"v1": 75, "v2": 25}
    for wrong in ("promote vision/chat v9", "promote vision/none v1", "rollback vision/none"):
        assert egs(f"endpoint {wrong}").code == 1, wrong
    assert egs("endpoint promote vision/chat v2 --weight 0").code == 2


def test_what_waits_is_edited_and_cancelled(egs: Backend) -> None:
    assert egs(f"gpr create vision/later --nodes 1 --duration 1h --not-before {LATER}").code == 0
    path = "slices/vision/gprs/later.yaml"
    for line, field, value in (
        ("gpr edit vision/later nodes=2 network.rdma=false", "nodes", 2),
        ("gpr priority vision/later 150", "priority", 150),
        ("gpr extend vision/later 0d0h30m", "extend", "0d0h30m"),
        ("gpr rename vision/later Second", "displayName", "Second"),
        ("gpr edit vision/later displayName=", "displayName", None),
    ):
        done = egs(line)
        assert done.code == 0, done.err
        assert "committed to main as" in done.err
        assert egs.spec(path).get(field) == value, line
    assert egs("gpr edit vision/later nodes").code == 2
    assert egs("gpr edit vision/later nope=1").code == 1
    assert egs("gpr cancel vision/later").code == 0
    assert egs.spec(path)["earlyRelease"] is True
    assert egs("gpr cancel vision/later").code == 1


def test_what_runs_is_stopped_started_and_released(egs: Backend) -> None:
    assert egs("gpr create nlp/runs --nodes 1 --duration 6h").code == 0
    egs.shell.site.pass_time(10)
    path = "slices/nlp/gprs/runs.yaml"
    assert egs("gpr cancel nlp/runs").code == 1
    assert egs("gpr stop nlp/runs").code == 0
    assert egs.spec(path)["stopped"] is True
    egs.shell.site.pass_time(20)
    assert egs("gpr start nlp/runs").code == 0
    assert not egs.spec(path).get("stopped")
    egs.shell.site.pass_time(20)
    egs.shell.site.commit({path: None})
    egs.shell.site.settle()
    assert egs("gpr restore nlp/runs").code == 0
    assert egs.spec(path)["nodes"] == 1
    assert egs("gpr release nlp/runs").code == 0
    assert egs.spec(path)["earlyRelease"] is True


def test_an_admin_decides(egs: Backend) -> None:
    egs.shell.site.file("vision/big", nodes=4, duration="1h", gpusPerNode=8, notBefore=LATER, priority=250)
    egs.shell.site.file("vision/other", nodes=1, duration="1h", notBefore=LATER)
    egs.shell.site.settle()
    done = egs("reject vision/other --reason", "not now")
    assert done.code == 0, done.err
    assert egs.spec("approvals/vision/other/ada.yaml")["decision"] == "reject"
    assert egs("get gpr vision/other -o json").data["phase"] == "Rejected"


def test_a_change_is_only_asked_about(egs: Backend, tmp_path: Path) -> None:
    """E4, D14: the same answer by file and by field, and nothing is written."""
    site = egs.shell.site
    site.file("vision/asked", nodes=2, duration="1h", notBefore=LATER)
    site.settle()
    file = tmp_path / "new.yaml"
    file.write_text(gpr("vision", "new", nodes=2, duration="2h"))
    before = site.log()
    done = egs(f"whatif {file} --edit vision/asked:duration=2h -o json")
    assert done.code == 0, done.err
    told = {row["name"]: (row["change"], row["gpus"]) for row in done.data["requests"]}
    assert told == {"asked": ("changed", 16), "new": ("new", 16)}
    assert done.data["actor"] == "ada@example.com"
    (ended,) = egs("whatif --end vision/asked -o json").data["requests"]
    assert (ended["change"], ended["costBefore"] is None) == ("cancelled", False)
    table = egs(f"whatif {file} --end vision/asked")
    assert table.out.splitlines()[0].startswith("Good to merge: vision/new starts")
    file.write_text("kind: GPR")
    assert "make its path" in egs(f"whatif {file}").err
    assert egs("whatif").code == 2
    assert egs("whatif --edit vision/asked").code == 2
    assert egs("whatif --end vision/nothing").code == 1
    assert site.log() == before


AS_ADA = ("--author", "Ada <ada@example.com>")


def test_what_a_change_would_do_is_the_same_in_both_modes(shell: Shell, tmp_path: Path) -> None:
    """E4, D14."""
    file = tmp_path / "urgent.yaml"
    file.write_text(gpr("vision", "urgent", nodes=4, clusters=["east"], priority=200))
    for line in (f"whatif {file}", "whatif --end vision/runs", "whatif --edit vision/waits:priority=20"):
        here = shell.on_repository(f"{line} -o json", *AS_ADA)
        assert shell.on_server(f"{line} -o json").data == here.data
        assert len(here.data["requests"]) == 1
        assert shell.on_server(line) == shell.on_repository(line, *AS_ADA)


def test_slices_come_and_go_with_their_members(egs: Backend) -> None:
    asked = egs("slice request speech --quota 8 --cluster east --reason sound")
    assert asked.code == 0, asked.err
    made = egs("slice create audio --cluster east --member dee@example.com --quota 8 --description", "a: b")
    assert made.code == 0, made.err
    assert egs.spec("slices/audio/slice.yaml")["description"] == "a: b"
    for line, code in (("add", 0), ("add", 1), ("remove", 0), ("remove", 1)):
        assert egs(f"slice members {line} audio eve@example.com").code == code, line
        has_eve = "eve@example.com" in (egs.shell.site.main("slices/audio/slice.yaml") or "")
        assert has_eve is (line == "add")
    told = egs("slice delete audio -o json")
    assert (told.code, list(told.data)) == (0, ["slice", "files", "clusters", "namespaces"])
    assert (told.data["clusters"], told.data["namespaces"]) == (["east"], ["audio"])
    assert "nothing is deleted yet" in told.err
    assert egs("slice delete audio").out.splitlines()[0].split() == [
        "SLICE",
        "FILES",
        "NAMESPACES",
        "CLUSTERS",
    ]
    assert egs("slice delete audio --yes").code == 0
    assert egs.shell.site.main("slices/audio/slice.yaml") is None


def test_a_key_is_made_once_listed_and_revoked(egs: Backend) -> None:
    made = egs("key create robot --role Viewer --slice vision --expires 30d --description bot")
    assert (made.code, len(made.out.splitlines())) == (0, 1), made.err
    assert made.out.startswith("egs_")
    assert made.out.strip() not in (egs.shell.site.main("keys/robot.yaml") or "")
    assert "shown only once" in made.err
    assert egs.spec("keys/robot.yaml")["role"] == "Viewer"
    assert egs("key create robot --role Viewer").code == 1
    assert egs("key revoke robot").code == 0
    assert egs.spec("keys/robot.yaml")["revoked"] is True


ALONE = [
    "codeowners",
    "diff",
    "forecast --shape H100-80GB --target-p90 4h",
    "pr status",
    "prune",
    "resubmit vision/runs",
    "gpr move vision/waits --first",
    "slice edit vision paused=true",
    "get gprs --now 2026-11-21T08:00:00Z",
    "plan --ref main",
    "watch --every 7",
    "gpr stop vision/runs --push",
    "gpr edit vision/runs nodes=1 --author ada",
    "approve vision/asks --as ada",
    "slice create new --max-nodes 2",
    "slice members add vision a@b.c --forge a:1",
    "key create new --role Viewer --dry-run",
    "kubeconfig vision --cluster east --static",
]


@pytest.mark.parametrize("line", ALONE)
def test_what_a_server_does_not_carry_out_is_one_sentence(shell: Shell, line: str) -> None:
    done = shell.on_server(line)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert "works on a repository and not on a server" in done.err


def test_the_bounds_of_counted_waits_are_the_same() -> None:
    assert MARKS_S[-1] == LONGEST_COUNTED_S
