"""`egs plan`: its JSON exactly as documented, on folders, work trees and bare repositories; and the bare engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import NOW, Control, egs, fleet, folder, minutes, repository, request, worktree
from tests.support.repos import commit, git, tip

THREE = fleet(
    **request("a/first", nodes=2, duration="1h", priority=150),
    **request("a/second", nodes=1, duration="2h"),
    **request("b/large", nodes=3, duration="1h", priority=50),
)


def _row(slice_: str, name: str, **more: object) -> dict[str, object]:
    base = {
        "slice": slice_,
        "name": name,
        "phase": "Queued",
        "rank": None,
        "position": None,
        "estimatedStartTime": None,
        "estimatedWaitSeconds": None,
        "estimatedEndTime": None,
        "cluster": None,
        "pool": None,
        "gpuShape": None,
        "nodes": None,
        "reason": None,
    }
    return base | more


def _waiting(slice_: str, name: str, place: int, start: str, wait: int, end: str) -> dict[str, object]:
    where = {"cluster": "east", "pool": "h100", "gpuShape": "H100-80GB"}
    times = {
        "estimatedStartTime": f"2026-11-21T{start}Z",
        "estimatedWaitSeconds": wait,
        "estimatedEndTime": f"2026-11-21T{end}Z",
    }
    return _row(slice_, name, rank=place, position=place, **times, **where)


PLANNED = [
    _waiting("a", "first", 1, "08:02:00", 120, "09:02:00"),
    _waiting("a", "second", 2, "09:02:00", 3720, "11:02:00"),
    # Nodes are cleaned for five minutes after an end and checked for two before a start.
    _waiting("b", "large", 3, "09:09:00", 4140, "10:09:00"),
]


def test_a_plain_folder_is_planned_from_nothing(tmp_path: Path) -> None:
    """D15, E3: every key is there, waiting requests by rank, times in UTC."""
    done = egs("plan", "--repo", folder(tmp_path / "f", THREE), "--now", NOW, "-o", "json")
    assert (done.code, done.err) == (0, "")
    assert done.json == {"now": NOW, "commit": None, "requests": PLANNED, "refused": []}


def test_a_bare_repository_names_its_commit(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", THREE)
    done = egs("plan", "--repo", repo, "--now", NOW, "-o", "json")
    assert done.json == {"now": NOW, "commit": tip(repo), "requests": PLANNED, "refused": []}


def test_who_holds_nodes_comes_first_and_who_waits_for_approval_last(tmp_path: Path) -> None:
    """D14, E5: a running request has its nodes' names; one beyond its quota has no rank and no estimate."""
    files = fleet(**request("a/run", nodes=1), **request("a/over", nodes=3), **request("b/next", nodes=4))
    repo = repository(tmp_path / "r.git", files)
    Control(repo, tmp_path / "state").run(minutes(10))
    done = egs("plan", "--repo", repo, "--now", "2026-11-21T08:12:00Z", "-o", "json").json
    first, second, last = done["requests"]
    assert first == _row(
        "a", "run", phase="Provisioned", cluster="east", pool="h100", gpuShape="H100-80GB", nodes=["h100-1"],
        estimatedStartTime="2026-11-21T08:02:00Z", estimatedWaitSeconds=0, estimatedEndTime="2026-11-21T09:02:00Z",
    )  # fmt: skip
    assert (second["name"], second["rank"], second["estimatedStartTime"]) == (
        "next",
        1,
        "2026-11-21T09:09:00Z",
    )
    assert last == _row("a", "over", phase="PendingApproval", reason="NeedsApproval")


@pytest.mark.parametrize(
    ("spec", "reason", "would_fit"),
    [
        pytest.param(
            {"nodes": 9}, "FitsNowhere", "east/h100 has up to 4 nodes", id="too many nodes for any pool"
        ),
        pytest.param({"gpuShape": "B200"}, "FitsNowhere", "8 H100-80GB of 80 GB", id="a shape nobody has"),
        pytest.param({"priority": 250}, "LimitExceeded", "priority at most 200", id="beyond a hard limit"),
    ],
)
def test_a_request_that_can_never_start_is_refused_with_what_would_fit(
    tmp_path: Path, spec: dict[str, object], reason: str, would_fit: str
) -> None:
    """D18: the refusal is stable for machines and says what to ask for."""
    repo = folder(tmp_path / "f", fleet(**request("a/odd", **{"nodes": 1, **spec})))  # type: ignore[arg-type]
    done = egs("plan", "--repo", repo, "--now", NOW, "-o", "json")
    assert done.code == 0
    (refused,) = done.json["refused"]
    assert (refused["slice"], refused["name"], refused["reason"]) == ("a", "odd", reason)
    assert would_fit in refused["wouldFit"]


def test_an_observed_cluster_is_planned_and_says_so(tmp_path: Path) -> None:
    from tests.support.world import cluster

    files = fleet(**{"clusters/east.yaml": cluster(mode="observe")}, **request("b/x"))
    done = egs("plan", "--repo", folder(tmp_path / "f", files), "--now", NOW, "-o", "json").json
    assert [(row["estimatedStartTime"], row["reason"]) for row in done["requests"]] == [
        ("2026-11-21T08:02:00Z", "ClusterObserved")
    ]


def test_against_says_what_a_change_does_to_everyone(tmp_path: Path) -> None:
    """G3: earlier, later with its cause, new, gone and refused, each once."""
    repo = repository(tmp_path / "r.git", THREE)
    git(repo, "branch", "change", "main")
    edited = request("b/urgent", nodes=4, priority=300) | request("b/bad", nodes=9)
    commit(repo, {**edited, "slices/a/gprs/second.yaml": None}, "change")
    done = egs("plan", "--repo", repo, "--ref", "change", "--against", "main", "--now", NOW, "-o", "json")
    assert done.json["commit"] == tip(repo, "change")
    start = "2026-11-21T{}Z".format
    changes = {change["name"]: change for change in done.json["changes"]}
    assert changes["urgent"] == {
        "slice": "b", "name": "urgent", "change": "new",
        "was": None, "now": start("08:02:00"), "cause": None, "by": None,
    }  # fmt: skip
    assert changes["first"] == {
        "slice": "a", "name": "first", "change": "later",
        "was": start("08:02:00"), "now": start("09:09:00"), "cause": "HigherRankArrived", "by": "b/urgent",
    }  # fmt: skip
    assert changes["second"] == {
        "slice": "a", "name": "second", "change": "gone",
        "was": start("09:02:00"), "now": None, "cause": None, "by": None,
    }  # fmt: skip
    assert changes["bad"] == {
        "slice": "b", "name": "bad", "change": "refused", "was": None, "now": None, "cause": None, "by": None,
    }  # fmt: skip
    assert len(done.json["changes"]) == 5


def test_a_broken_edit_is_refused_and_a_new_excess_waits_without_an_estimate(tmp_path: Path) -> None:
    """E5: who is in no plan any more is not gone: the file still lies there."""
    repo = repository(tmp_path / "r.git", THREE)
    git(repo, "branch", "change", "main")
    bad = request("a/first", nodes=2, duration="1h", priority=201) | request("a/over", nodes=3)
    commit(repo, bad, "change")
    done = egs(
        "plan", "--repo", repo, "--ref", "change", "--against", "main", "--now", NOW, "-o", "json"
    ).json
    changes = {change["name"]: change for change in done["changes"]}
    assert (changes["first"]["change"], changes["first"]["cause"]) == ("refused", "RequestChanged")
    assert (changes["over"]["change"], changes["over"]["now"]) == ("new", None)
    assert [(r["name"], r["reason"], r["wouldFit"]) for r in done["refused"]] == [
        ("first", "LimitExceeded", "priority at most 200")
    ]


def test_a_work_tree_is_compared_with_any_commit_of_it(tmp_path: Path) -> None:
    """Files as they lie there, against what is committed."""
    tree = worktree(tmp_path / "w", THREE)
    folder(tree, request("b/large", nodes=1, duration="1h", priority=50))
    done = egs("plan", "--repo", tree, "--against", "HEAD", "--now", NOW, "-o", "json").json
    assert done["commit"] is None
    assert [(c["name"], c["change"], c["now"]) for c in done["changes"]] == [
        ("large", "earlier", "2026-11-21T08:02:00Z")
    ]


def test_a_plain_folder_has_nothing_to_compare_with(tmp_path: Path) -> None:
    done = egs("plan", "--repo", folder(tmp_path / "f", THREE), "--against", "main")
    assert (done.code, done.out) == (2, "")
    assert "plain folder" in done.err


def test_an_unknown_ref_is_wrong_use(tmp_path: Path) -> None:
    done = egs("plan", "--repo", repository(tmp_path / "r.git", THREE), "--ref", "nope")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_without_a_project_the_answer_is_no(tmp_path: Path) -> None:
    files = {path: text for path, text in THREE.items() if path != "project.yaml"}
    done = egs("plan", "--repo", folder(tmp_path / "f", files))
    assert done.code == 1
    assert "egs init" in done.err


def test_the_table_has_a_line_for_each_request(tmp_path: Path) -> None:
    done = egs("plan", "--repo", folder(tmp_path / "f", THREE), "--now", NOW)
    head, *rows = done.out.splitlines()
    assert head.split() == ["RANK", "REQUEST", "PHASE", "START", "WAIT", "END", "WHERE", "NODES", "REASON"]
    assert [row.split()[1] for row in rows] == ["a/first", "a/second", "b/large"]


# -- the bare engine, design section 8 ---------------------------------------------------------------------------

ROWS = """id,pool,submit,nodes,duration,priority,slice,running
r,a,0,6,50,100,,1
x,a|b,0,5,100,100,,
y,a,5,4,10,200,,
z,b,0,9,10,100,,
"""


def _instance(tmp_path: Path, text: str, *args: str) -> tuple[int, str, str]:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    done = egs("plan", "--instance", file, "--fairness", "off", *args)
    return done.code, done.out, done.err


def test_the_bare_engine_prints_the_csv_in_input_order(tmp_path: Path) -> None:
    """Running rows start now, ties go to the first pool, a row without a place makes the exit 1."""
    pools = ("--pool", "a=10", "--pool", "b=8", "--now", "0")
    code, out, err = _instance(tmp_path, ROWS, *pools, "-o", "csv")
    assert out == "id,pool,start,end,wait\nr,a,0,50,0\nx,b,0,100,0\ny,a,5,15,0\nz,,,,\n"
    assert code == 1
    assert err.startswith("egs: z: ")
    assert _instance(tmp_path, ROWS, *pools)[1] == out, "csv is what --instance answers by default"


def test_the_bare_engine_answers_as_json_too(tmp_path: Path) -> None:
    done = _instance(
        tmp_path, "id,pool,submit,nodes,duration,priority\nx,a,3,1,4,1\n", "--pool", "a=1", "-o", "json"
    )
    import json

    assert done[0] == 0
    assert json.loads(done[1]) == [
        {"id": "x", "pool": "a", "start": 3, "end": 7, "wait": 0, "reason": None, "message": None}
    ]


@pytest.mark.parametrize(
    ("text", "args"),
    [
        pytest.param("id,pool\n", ["--pool", "a=1"], id="a header that lacks columns"),
        pytest.param(ROWS[: ROWS.index("z,")], ["--pool", "a=10"], id="a pool that is not declared"),
        pytest.param(ROWS, ["--pool", "a=99999999", "--pool", "b=8"], id="a pool beyond all bounds"),
        pytest.param(ROWS, ["--pool", "a=5", "--pool", "b=8"], id="more running than the pool has"),
        pytest.param(ROWS.replace("50", "fifty"), ["--pool", "a=10", "--pool", "b=8"], id="a bad row"),
        pytest.param(ROWS, ["--pool", "a"], id="a pool without a size"),
        pytest.param(ROWS, [], id="no pool"),
        pytest.param(ROWS, ["--pool", "a=10", "--pool", "b=8", "--now", NOW], id="a time that is no number"),
        pytest.param(
            ROWS, ["--pool", "a=10", "--pool", "b=8", "--against", "main"], id="a ref beside an instance"
        ),
    ],
)
def test_a_bad_instance_is_wrong_use(tmp_path: Path, text: str, args: list[str]) -> None:
    code, out, err = _instance(tmp_path, text, *args)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_every_bad_row_is_told(tmp_path: Path) -> None:
    text = ROWS.replace("50", "fifty").replace("z,b,0,9", "z,b,0,0")
    code, out, err = _instance(tmp_path, text, "--pool", "a=10", "--pool", "b=8")
    assert (code, out) == (2, "")
    assert ["line 2: " in err, "line 5: " in err, err.count("\n")] == [True, True, 2]
    assert "give a whole number from 1 to 1125899906842624" in err


def test_a_file_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    assert egs("plan", "--instance", tmp_path / "none.csv", "--pool", "a=1").code == 2
