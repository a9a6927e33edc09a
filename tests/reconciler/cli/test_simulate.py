"""`egs simulate`: its JSON and CSV exactly as documented, and what can be tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import Control, egs, fleet, folder, minutes, repository, request

ROWS = """id,pool,submit,nodes,duration,priority,slice,actual
a,p,0,2,100,101,s,
b,p,10,1,50,101,t,20
c,p,20,2,50,250,u,
"""
OUT = """id,submit,first_estimate,start,end,pool,causes
a,0,0,0,100,p,
b,10,100,150,170,p,HigherRankArrived
c,20,100,100,150,p,
"""
POLICY = """apiVersion: egs.dev/v1alpha1
kind: Project
metadata: {name: default}
spec:
  admins: [{email: ada@example.com}]
  scheduling:
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    found = tmp_path / "trace.csv"
    found.write_text(ROWS)
    return found


def test_the_answer_is_as_documented(trace: Path, tmp_path: Path) -> None:
    """E11, design section 8: these keys in this order, seconds and shares; a line for each request."""
    out = tmp_path / "out.csv"
    done = egs("simulate", trace, "--pool", "p=2", "--fairness", "off", "--requests-out", out, "-o", "json")
    assert (done.code, done.err) == (0, "")
    assert out.read_text() == OUT
    assert done.json == {
        "requests": 3,
        "wait": {"mean": 73.3333, "p50": 80.0, "p90": 128.0, "p99": 138.8},
        "utilisation": 0.9412,
        "boundedSlowdown": 3.8667,
        "estimate": {
            "meanAbsoluteError": 16.6667,
            "p50": 0.0,
            "p90": 40.0,
            "within10min": 1.0,
            "within1h": 1.0,
        },
        "slipped": 1,
        "slipsWithTrueCause": 1,
    }


def test_a_table_has_a_line_for_each_band_and_one_for_all(trace: Path) -> None:
    done = egs("simulate", trace, "--pool", "p=2")
    assert [line.split()[:2] for line in done.out.splitlines()[1:]] == [
        ["high", "1"],
        ["medium", "2"],
        ["all", "3"],
    ]
    assert "utilisation 94.1%" in done.err


def test_a_policy_file_counts(trace: Path, tmp_path: Path) -> None:
    """E11: the same trace under another policy."""
    rows = "id,pool,submit,nodes,duration,priority\na,p,0,2,7200,101\nb,p,1,2,72000,101\nc,p,2,2,7200,101\n"
    trace.write_text(rows)
    policy = tmp_path / "project.yaml"
    policy.write_text(POLICY + "    order: shortest-service\n")
    usual = egs("simulate", trace, "--pool", "p=2", "-o", "json").json
    shortest = egs("simulate", trace, "--pool", "p=2", "--policy", policy, "-o", "json").json
    assert usual["wait"]["mean"] == pytest.approx((7200 - 1 + 79200 - 2) / 3)
    assert shortest["wait"]["mean"] == pytest.approx((14400 - 1 + 7200 - 2) / 3)


def test_preemption_in_a_policy_sends_lower_bands_away(trace: Path, tmp_path: Path) -> None:
    """E7: the victim goes on later for the rest of its time."""
    trace.write_text("id,pool,submit,nodes,duration,priority\na,p,0,2,36000,50\nb,p,7200,2,3600,250\n")
    policy, out = tmp_path / "project.yaml", tmp_path / "out.csv"
    policy.write_text(POLICY + "    preemption: {guaranteed: 1h, notice: 10m}\n")
    done = egs("simulate", trace, "--pool", "p=2", "--policy", policy, "--requests-out", out)
    assert done.code == 0
    assert out.read_text().splitlines()[1:] == ["a,0,0,0,39600,p,", "b,7200,7800,7800,11400,p,"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["--arrivals", "4"], "", id="faster arrivals"),
        pytest.param(["--early-release", "0.5"], "", id="early releases"),
        pytest.param(["--failures", "1h", "--mended", "10m"], "", id="failing nodes"),
    ],
)
def test_what_is_varied_is_the_same_for_the_same_seed(trace: Path, args: list[str], says: str) -> None:
    one, other = (egs("simulate", trace, "--pool", "p=2", *args, "-o", "json") for _ in range(2))
    assert (one.code, one.out) == (other.code, other.out) == (0, one.out)
    assert one.err == says


def test_a_request_that_never_starts_is_told_and_makes_the_answer_no(trace: Path) -> None:
    done = egs("simulate", trace, "--pool", "p=1", "-o", "json")
    assert done.code == 1
    assert "egs: a: it asks for 2 nodes but no pool that it may use has so many" in done.err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param([], "name the CSV of a trace", id="no trace"),
        pytest.param(["FILE"], "--instance needs pools", id="no pools"),
        pytest.param(["FILE", "--pool", "q=2"], "pool 'p' is not declared", id="another pool"),
        pytest.param(
            ["FILE", "--pool", "p=2", "--since", "2026-11-21T08:00:00Z"], "--since", id="no history"
        ),
        pytest.param(["FILE", "--history"], "leave out FILE and --pool", id="both"),
        pytest.param(["FILE", "--pool", "p=2", "--failures", "often"], "--failures often", id="no time"),
        pytest.param(["FILE", "--pool", "p=2", "--policy", "FILE"], "is not a Project", id="no policy"),
        pytest.param(
            ["FILE", "--pool", "p=2", "--policy", "FILE", "--fairness", "off"], "--fairness off", id="neither"
        ),
        pytest.param(["nowhere.csv", "--pool", "p=2"], "nowhere.csv cannot be read", id="no file"),
    ],
)
def test_wrong_use_says_what_to_do(trace: Path, args: list[str], says: str) -> None:
    done = egs("simulate", *(str(trace) if arg == "FILE" else arg for arg in args))
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_the_repository_s_own_requests_are_replayed(tmp_path: Path) -> None:
    """E11, F15: what people asked for last month, under the policy that a pull request proposes."""
    files = fleet(
        **request("b/first", nodes=4, duration="1h"), **request("b/second", nodes=2, duration="30m")
    )
    repo = repository(tmp_path / "r.git", files)
    Control(repo, tmp_path / "state").run(minutes(120))
    out = tmp_path / "out.csv"
    done = egs("simulate", "--history", "--repo", repo, "--requests-out", out, "-o", "json")
    assert (done.code, done.err) == (0, "")
    assert done.json["requests"] == 2
    names = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    assert names == ["b/first", "b/second"]


def test_without_a_status_there_is_no_history(tmp_path: Path) -> None:
    done = egs("simulate", "--history", "--repo", folder(tmp_path / "f", fleet()))
    assert done.code == 1
    assert "no history" in done.err
