"""`egs slice …`: people ask for slices, admins make them, owners say who works there (B8, B9, C2, C10, A6)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.reconciler.cli.rig import (
    BO,
    Answer,
    Control,
    egs,
    fleet,
    folder,
    main_file,
    minutes,
    repository,
    request,
)
from tests.support.repos import git, tip
from tests.support.world import slice_

ADA, CY = "Ada <ada@example.com>", "Cy <cy@example.com>"
NLP, OWN = "requests/nlp.yaml", "slices/nlp/slice.yaml"
COMMENTED = """\
# Who works on vision.
apiVersion: egs.dev/v1alpha1
kind: Slice
metadata: {name: b}
spec:
  members:
    - email: bo@example.com   # since May
    # the night shift
    - {email: cy@example.com}
  clusters: [east]
  namespaces: [b]   # one is enough
"""


def _slice(repo: Path, *args: object, author: str = ADA) -> Answer:
    return egs("slice", *args, "--repo", repo, "--author", author)


def test_asking_is_a_branch_and_an_admins_merge_makes_the_slice(tmp_path: Path) -> None:
    """B8, B9: on plain Git, from the question to nodes, in the words that the commands themselves say."""
    repo = repository(tmp_path / "r.git", fleet())
    control, before = Control(repo, tmp_path / "state"), tip(repo)
    asked = _slice(repo, "request", "nlp", "--quota", 16, "--reason", "translation", author=CY)
    assert (asked.code, tip(repo)) == (0, before), "nothing happens before an admin says yes"
    assert "Ask for slice nlp: pushed as branch requests/slice-nlp; it counts once it is merged" in asked.err
    assert "git fetch origin requests/slice-nlp && git merge --no-ff FETCH_HEAD" in asked.err
    assert git(repo, "show", f"requests/slice-nlp:{NLP}").splitlines()[4:] == [
        "spec:", "  requester:", "    email: cy@example.com", "  clusters:", "    - east", "  namespaces:", "    - nlp",
        "  quota:", "    gpus: 16", "  reason: translation",
    ]  # fmt: skip
    git(repo, "update-ref", "refs/heads/main", "requests/slice-nlp")
    control.run(minutes(1))
    shown = egs("get", "requests", "--repo", repo)
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[1].split()[:2] == ["nlp", "Ready"]
    told = egs("describe", "request", "nlp", "--repo", repo).out
    assert "egs gpr create nlp/NAME" in told
    done = egs("gpr", "create", "nlp/first", "--nodes", 1, "--duration", "1h", "--repo", repo, "--author", CY)
    assert done.code == 0, done.err
    control.run(minutes(5))
    (row,) = egs("get", "gprs", "--slice", "nlp", "--repo", repo, "-o", "json").json
    assert row["phase"] == "Provisioned"


def test_a_request_may_go_straight_to_main_where_that_is_wanted(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    done = _slice(repo, "request", "nlp", "--push", "--email", "dee@example.com", author=CY)
    assert done.code == 0, done.err
    assert "email: dee@example.com" in main_file(repo, NLP)
    rows = egs("get", "requests", "--repo", repo, "-o", "json").json
    assert [(row["name"], row["requester"], row["namespaces"], row["quotaGpus"]) for row in rows] == [
        ("nlp", "dee@example.com", ["nlp"], None)
    ]


def test_a_dry_run_shows_the_file(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet())
    done = egs("slice", "request", "nlp", "--email", "cy@example.com", "--dry-run", "--repo", repo)
    assert (done.code, (repo / NLP).exists()) == (0, False)
    assert "kind: WorkspaceRequest" in done.out
    assert done.err == "egs: dry run: requests/nlp.yaml would be:\n"


def test_a_slice_of_its_own_takes_the_place_of_the_request_for_it(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    _slice(repo, "request", "nlp", "--push", author=CY)
    done = _slice(
        repo, "create", "nlp", "--owner", "cy@example.com", "--member", "dee@example.com", "--quota", 8,
        "--max-duration", "2d", "--max-nodes", 2, "--description", "no: translation",
    )  # fmt: skip
    assert done.code == 0, done.err
    files = git(repo, "ls-tree", "-r", "--name-only", "main").split()
    assert (NLP in files, OWN in files) == (False, True)
    spec = egs("describe", "slice", "nlp", "--repo", repo, "-o", "json").json["spec"]
    assert (spec["description"], spec["quota"]["gpus"], spec["limits"]["maxNodes"]) == (
        "no: translation",
        8,
        2,
    )
    assert [person["email"] for person in spec["owners"]] == ["cy@example.com"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(
            ["request", "a", "--push"], 1, "egs slice members add a", id="it exists: ask to be let in"
        ),
        pytest.param(["request", "Not_a_name"], 2, "is not a valid name", id="a bad name"),
        pytest.param(
            ["request", "new", "--cluster", "wst"], 1, "there is no cluster wst", id="no such cluster"
        ),
        pytest.param(
            ["request", "new", "--namespace", "a"], 1, "NamespaceTaken", id="a namespace that is taken"
        ),
        pytest.param(
            ["request", "new", "--max-duration", "soon"], 2, "--max-duration soon", id="a bad duration"
        ),
        pytest.param(["create", "new"], 2, "--member MAIL", id="a slice needs people"),
        pytest.param(["create", "a", "--member", "x@y.z"], 1, "exists already", id="it exists"),
        pytest.param(["edit", "a", "quta=3"], 1, "did you mean quota", id="a field that is near"),
        pytest.param(["edit", "nope", "weight=2"], 1, "there is no slice nope", id="no such slice"),
        pytest.param(["edit", "a", "weight=4000"], 2, "1000", id="a value beyond bounds"),
        pytest.param(["members", "add", "a", "dee"], 2, "is not an e-mail address", id="no address"),
        pytest.param(
            ["members", "add", "a", "bo@example.com"], 1, "is in slice a already", id="there already"
        ),
        pytest.param(["members", "add", "a", "d@e.f", "--forge", "dee"], 2, "LOGIN:ID", id="no number"),
        pytest.param(["members", "remove", "a", "x@y.z"], 1, "members here: bo@example.com", id="not there"),
        pytest.param(["members", "remove", "a", "bo@example.com"], 1, "the last member", id="the last one"),
        pytest.param(["delete", "nope"], 1, "there is no slice nope", id="nothing to delete"),
    ],
)
def test_what_cannot_be_says_why_and_changes_nothing(
    tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    before = git(repo, "for-each-ref")
    done = _slice(repo, *words)
    assert (done.code, git(repo, "for-each-ref")) == (code, before), done.err
    assert says in done.err
    assert done.err.count("\n") == 1


def test_members_come_and_go_and_every_other_line_stays(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**{"slices/b/slice.yaml": COMMENTED}))
    key = tmp_path / "dee.pub"
    key.write_text(f"ssh-ed25519 {'A' * 68} dee@laptop\n")
    done = _slice(repo, "members", "add", "b", "dee@example.com", "--key", key, "--forge", "dee:4711")
    assert done.code == 0, done.err
    added = main_file(repo, "slices/b/slice.yaml").splitlines()
    assert [line for line in added if line not in COMMENTED.splitlines()] == [
        "    - email: dee@example.com", "      forge:", "        login: dee", "        id: 4711", "      keys:",
        f"        - ssh-ed25519 {'A' * 68} dee@laptop",
    ]  # fmt: skip
    assert _slice(repo, "members", "add", "b", "Cy@example.com", "--forge", "cy:12").code == 0
    assert _slice(repo, "members", "remove", "b", "dee@example.com").code == 0
    left = egs("describe", "slice", "b", "--repo", repo, "-o", "json").json["spec"]["members"]
    assert [(p["email"], (p["forge"] or {}).get("id")) for p in left] == [
        ("bo@example.com", None),
        ("cy@example.com", 12),
    ]
    assert git(repo, "log", "-1", "--format=%s", "main") == "Remove dee@example.com from slice b"


def test_a_private_key_never_gets_into_a_manifest(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    key = tmp_path / "dee"
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n")
    before = tip(repo)
    done = _slice(repo, "members", "add", "b", "dee@example.com", "--key", key)
    assert (done.code, tip(repo)) == (2, before)
    assert ".pub file" in done.err
    assert "secret" not in done.err


def test_people_of_a_slice_that_was_asked_for(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    _slice(repo, "request", "nlp", "--push", author=CY)
    done = _slice(repo, "members", "add", "nlp", "dee@example.com")
    assert done.code == 0, done.err
    assert "an admin has to make or approve its changes" in done.err
    assert "dee@example.com" in main_file(repo, NLP)
    assert "requester.email=" in _slice(repo, "members", "remove", "nlp", "cy@example.com").err
    assert "`egs slice create nlp`" in _slice(repo, "members", "add", "nlp", "dee@example.com", "--owner").err
    assert _slice(repo, "edit", "nlp", "quota.gpus=24", "reason=more: models").code == 0
    spec = egs("describe", "slice", "nlp", "--repo", repo, "-o", "json").json["spec"]
    assert spec["quota"]["gpus"] == 24


def test_a_slice_goes_only_when_nothing_of_it_runs_or_waits(tmp_path: Path) -> None:
    """C2: safe deletion, requests first; what would go is told before."""
    repo = repository(
        tmp_path / "r.git", fleet(**request("b/run", duration="10m", priority=200), **request("b/next"))
    )
    control = Control(repo, tmp_path / "state")
    control.run(minutes(5))
    refused = _slice(repo, "delete", "b", "--yes")
    assert refused.code == 1
    assert "slice b is in use by 2 unfinished requests: b/next, b/run; end each" in refused.err
    assert egs("gpr", "cancel", "b/next", "--repo", repo, "--author", BO).code == 0
    control.run(minutes(30))
    before = tip(repo)
    told = _slice(repo, "delete", "b", "-o", "json")
    assert (told.code, tip(repo)) == (0, before)
    assert told.json == {
        "slice": "b",
        "files": ["slices/b/gprs/next.yaml", "slices/b/gprs/run.yaml", "slices/b/slice.yaml"],
        "clusters": ["east"],
        "namespaces": ["b"],
    }  # fmt: skip
    done = _slice(repo, "delete", "b", "--yes")
    assert done.code == 0, done.err
    control.run(minutes(35))
    assert [row["name"] for row in egs("get", "slices", "--repo", repo, "-o", "json").json] == ["a"]


def test_a_project_with_several_clusters_asks_which(tmp_path: Path) -> None:
    from tests.support.world import cluster

    repo = folder(tmp_path / "f", fleet(**{"clusters/west.yaml": cluster("west")}))
    done = egs("slice", "request", "nlp", "--email", "cy@example.com", "--repo", repo)
    assert done.code == 2
    assert "--cluster C: east, west" in done.err
    assert slice_("x")


def _key(folder: Path, name: str) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True
    )
    return folder / f"{name}.pub"


def test_whoever_asks_is_shown_by_the_key_that_git_signs_with(tmp_path: Path) -> None:
    """B9: and by no key where somebody else is to own it."""
    repo, key = repository(tmp_path / "r.git", fleet()), _key(tmp_path, "cy")
    git(repo, "config", "gpg.format", "ssh")
    git(repo, "config", "user.signingkey", str(key.with_suffix("")))
    assert _slice(repo, "request", "nlp", "--forge", "cy:12", "--push", author=CY).code == 0
    lines = [line.strip(" -") for line in main_file(repo, NLP).splitlines()]
    assert lines[7:12] == ["forge:", "login: cy", "id: 12", "keys:", key.read_text().strip()]
    assert _slice(repo, "request", "lab", "--email", "bo@example.com", "--push", author=CY).code == 0
    assert "keys" not in main_file(repo, "requests/lab.yaml")
    given = _key(tmp_path, "bo")
    assert _slice(repo, "request", "ops", "--key", given, "--push", author=CY).code == 0
    assert given.read_text().strip() in main_file(repo, "requests/ops.yaml")


def test_the_slices_own_file_keeps_what_shows_its_people(tmp_path: Path) -> None:
    """A6: an admin makes the file; owner and member stay known by what the request said."""
    repo, key, other = repository(tmp_path / "r.git", fleet()), _key(tmp_path, "cy"), _key(tmp_path, "ida")
    asked = _slice(repo, "request", "nlp", "--key", key, "--member", "dee@example.com", "--push", author=CY)
    assert asked.code == 0, asked.err
    people = ("--owner", "cy@example.com", "--member", "cy@example.com", "--member", "dee@example.com")
    assert _slice(repo, "create", "nlp", *people).code == 0
    assert main_file(repo, OWN).count(key.read_text().strip()) == 2, "with the owners and with the members"
    assert _slice(repo, "create", "lab", "--owner", "ida@example.com", "--key", other).code == 0
    assert other.read_text().strip() in main_file(repo, "slices/lab/slice.yaml")
    many = _slice(
        repo, "create", "ops", "--member", "a@example.com", "--member", "b@example.com", "--key", key
    )
    assert (many.code, "a single owner" in many.err) == (2, True)


def test_an_owner_who_is_added_owns_by_the_key_too(tmp_path: Path) -> None:
    """Rights go by the entry that has the key."""
    repo, key = repository(tmp_path / "r.git", fleet()), _key(tmp_path, "ida")
    done = _slice(repo, "members", "add", "a", "ida@example.com", "--owner", "--key", key)
    assert done.code == 0, done.err
    assert main_file(repo, "slices/a/slice.yaml").count(key.read_text().strip().split()[1]) == 2
