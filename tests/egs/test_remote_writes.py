"""What people change through a server becomes commits in their names, by the same words as on a repository (A7, K1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.egs.remote import Shell
from tests.support.portal import KEYS, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as found:
        yield found


@pytest.fixture
def shell(site: Site, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(site, url, tmp_path, capsys)


def spec(site: Site, key: str) -> dict[str, object]:
    slice_, name = key.split("/")
    found: dict[str, object] = yaml.safe_load(site.main(f"slices/{slice_}/gprs/{name}.yaml") or "{}").get(
        "spec", {}
    )
    return found


ANSWER = ["slice", "name", "path", "commit", "branch", "pullRequest", "dryRun", "estimate"]


def test_a_request_is_filed_in_the_name_of_who_asks(shell: Shell, site: Site) -> None:
    line = "gpr create vision/train --nodes 2 --gpus-per-node 8 --shape H100-80GB --duration 6h --cluster east -o json"
    done = shell.on_server(line, "--display-name", "Try 1: small", who="bo-editor")
    assert done.code == 0, done.err
    assert "committed to main as" in done.err
    assert list(done.data) == ANSWER
    assert done.data["path"] == "slices/vision/gprs/train.yaml"
    assert done.data["estimate"]["cluster"] == "east"
    author, _, subject = site.log()[0].split("|")
    assert author.endswith("<bo@example.com>")
    assert subject == "Create vision/train"
    assert spec(site, "vision/train")["displayName"] == "Try 1: small"


def as_bo(shell: Shell, line: str, *more: str) -> str:
    done = shell.on_server(line, *more, who="bo-editor")
    assert done.code == 0, done.err
    return done.err


def test_what_waits_is_changed_and_released_by_cancelling_it(shell: Shell, site: Site) -> None:
    as_bo(shell, "gpr create vision/later --nodes 1 --duration 1h --not-before 2027-06-01T00:00:00Z")
    site.settle()
    assert "Set priority" in as_bo(shell, "gpr priority vision/later 150")
    site.refresh()
    as_bo(shell, "gpr edit vision/later nodes=2 network.rdma=false", "displayName=a: b")
    site.refresh()
    found = spec(site, "vision/later")
    assert (found["priority"], found["nodes"], found["displayName"]) == (150, 2, "a: b")
    as_bo(shell, "gpr edit vision/later notBefore=2027-07-01T00:00:00Z displayName=")
    site.refresh()
    assert "displayName" not in spec(site, "vision/later")
    as_bo(shell, "gpr rename vision/later", "Second try")
    site.settle()
    assert spec(site, "vision/later")["displayName"] == "Second try"
    assert "Cancel vision/later" in as_bo(shell, "gpr release vision/later")
    assert (site.main("slices/vision/gprs/later.yaml") or "").endswith("earlyRelease: true")


def as_cy(shell: Shell, line: str) -> None:
    done = shell.on_server(line, who="cy-editor")
    assert done.code == 0, done.err


def test_what_runs_is_extended_stopped_started_and_released(shell: Shell, site: Site) -> None:
    as_cy(shell, "gpr create nlp/runs --nodes 1 --duration 6h")
    site.pass_time(10)
    assert shell.on_server("gpr cancel nlp/runs", who="cy-editor").code == 1
    as_cy(shell, "gpr extend nlp/runs 0d0h30m")
    site.settle()
    as_cy(shell, "gpr stop nlp/runs")
    assert spec(site, "nlp/runs")["stopped"] is True
    site.pass_time(20)
    as_cy(shell, "gpr start nlp/runs")
    assert not spec(site, "nlp/runs").get("stopped")
    site.pass_time(20)
    as_cy(shell, "gpr release nlp/runs")
    assert spec(site, "nlp/runs")["earlyRelease"] is True


def test_what_runs_is_a_table(shell: Shell, site: Site) -> None:
    as_cy(shell, "gpr create nlp/works --nodes 1 --gpus-per-node 8 --duration 6h --model llama")
    site.pass_time(5)
    head, row = shell.on_server("get workloads --slice nlp", who="cy-editor").out.splitlines()
    assert head.split() == [
        "REQUEST",
        "PHASE",
        "RUNS",
        "MODEL",
        "USE",
        "HOTTEST",
        "WHERE",
        "NODES",
        "GPUS",
        "HEALTHY",
        "IDLE",
        "START",
        "END",
        "COST",
    ]
    words = row.split()
    assert words[:3] == ["nlp/works", "Provisioned", "llama"]
    assert "east/h100" in words
    assert "8 x H100-80GB" in row
    assert not set("{}[]'") & set(row)


def test_trying_writes_nothing(shell: Shell, site: Site) -> None:
    before = site.log()
    done = shell.on_server("gpr create vision/try --nodes 1 --duration 1h --dry-run -o json")
    assert (done.code, done.data["dryRun"], done.data["commit"]) == (0, True, None)
    assert site.log() == before


@pytest.mark.parametrize("form", ["table", "json"])
def test_trying_what_can_never_start_is_no(shell: Shell, site: Site, form: str) -> None:
    before = site.log()
    done = shell.on_server(f"gpr create vision/try --nodes 99 --duration 1h --dry-run -o {form}")
    assert done.code == 1
    assert "it fits no pool that it may use: east/h100 has up to 4 nodes" in done.err
    assert done.data["estimate"] is None if form == "json" else "no start, as things are" in done.out
    assert site.log() == before


def test_what_the_server_says_beside_its_answer_is_told(shell: Shell) -> None:
    done = shell.on_server("wait --slice vision --nodes 99 --duration 1h -o json")
    assert (done.code, done.data) == (1, [])
    assert done.err.count("it fits no pool that it may use: east/h100 has up to 4 nodes") == 1
    as_bo(shell, "gpr create vision/high --nodes 1 --duration 1h --not-before 2027-06-01T00:00:00Z")
    assert "was set to 300" in as_bo(shell, "gpr edit vision/high priority=999")


def test_an_admins_word(shell: Shell, site: Site) -> None:
    site.file("vision/other", nodes=1, duration="1h", notBefore="2027-06-01T00:00:00Z")
    site.settle()
    assert shell.on_server("reject vision/other --reason no", who="bo-editor").code == 1
    done = shell.on_server("reject vision/other --reason", "not now")
    assert done.code == 0, done.err
    assert "vision/other asks for 1 x 1 GPUs, any shape, in any cluster, for 1h0m0s" in done.err
    assert site.main("approvals/vision/other/ada.yaml") is not None


def test_slices_and_their_members(shell: Shell, site: Site) -> None:
    asked = shell.on_server("slice request speech --quota 8 --cluster east --reason sound", who="bo-owner")
    assert asked.code == 0, asked.err
    assert "requests/" in asked.err
    assert shell.on_server("slice create audio --cluster east", who="bo-owner").code == 1
    made = shell.on_server("slice create audio --cluster east --member dee@example.com --quota 8")
    assert made.code == 0, made.err
    site.refresh()
    for line, code in (("add", 0), ("add", 1), ("remove", 0), ("remove", 1)):
        assert shell.on_server(f"slice members {line} audio eve@example.com").code == code, line
        site.refresh()
        if code == 0:
            has_eve = "eve@example.com" in (site.main("slices/audio/slice.yaml") or "")
            assert has_eve is (line == "add")
    assert "nothing is deleted yet" in shell.on_server("slice delete audio").err
    assert shell.on_server("slice delete audio --yes").code == 0
    assert site.main("slices/audio/slice.yaml") is None


def test_a_key_is_made_used_and_revoked(shell: Shell, site: Site, url: str) -> None:
    made = shell.on_server("key create robot --role Viewer --slice vision --expires 30d")
    assert made.code == 0, made.err
    key = made.out.strip()
    assert key not in (site.main("keys/robot.yaml") or "")
    site.refresh()
    assert shell("get", "slices", env={"EGS_SERVER": url, "EGS_API_KEY": key}).code == 0
    assert "robot" in [row["name"] for row in shell.on_server("key list -o json").data]
    assert shell.on_server("key revoke robot").code == 0
    site.refresh()
    gone = shell("get", "slices", env={"EGS_SERVER": url, "EGS_API_KEY": key})
    assert gone.code == 1
    assert key not in gone.err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        pytest.param("gpr priority vision/nope 10", 1, "there is no", id="no such request"),
        pytest.param("gpr priority train 10", 2, "write SLICE/GPR", id="no slice"),
        pytest.param(
            "gpr edit vision/x color=red", 1, "cannot be changed on a server", id="an unknown field"
        ),
        pytest.param("gpr edit vision/x nodes", 2, "is not FIELD=VALUE", id="no value"),
        pytest.param("gpr create nope/x --nodes 1 --duration 1h", 1, "nope", id="no such slice"),
        pytest.param("gpr move vision/x --first", 2, "works on a repository", id="what no server does"),
        pytest.param("slice edit vision paused=true", 2, "works on a repository", id="nor this"),
        pytest.param("pr status", 2, "works on a repository", id="nor a group"),
        pytest.param("plan --now 2026-11-21T08:00:00Z", 2, "--now", id="the server's clock counts"),
        pytest.param(
            "kubeconfig vision --cluster east", 1, "east", id="a simulated cluster has no kubeconfig"
        ),
        pytest.param("watch --gpr train", 2, "write SLICE/GPR", id="nothing to watch"),
    ],
)
def test_what_is_refused_is_one_sentence(shell: Shell, words: str, code: int, sentence: str) -> None:
    done = shell.on_server(words)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done.err
    assert sentence in done.err
    assert KEYS["ada-owner"] not in done.err
