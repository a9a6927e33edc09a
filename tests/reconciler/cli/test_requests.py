"""`egs gpr …`: requests are filed, changed and ended by changing their files, and nothing else in the repository."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from reconciler.credentials import Credentials
from reconciler.sources import bare_repository as bare_module
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Outcome
from tests.reconciler.cli.rig import (
    BO,
    NOW,
    Answer,
    Control,
    egs,
    fleet,
    folder,
    main_file,
    minutes,
    repository,
    request,
    worktree,
)
from tests.support.repos import commit, git, tip

COMMENTED = """\
# Why we need this: see issue 12.
apiVersion: egs.dev/v1alpha1
kind: GPR
metadata: {name: mine}
spec:
  slice: a
  priority: 120   # agreed with Ada
  nodes: 1        # grows later
  duration: 6h
# the end
"""
MINE = "slices/a/gprs/mine.yaml"


def _gpr(repo: Path, *args: str) -> Answer:
    return egs("gpr", *args, "--repo", repo, "--author", BO)


def _files(repo: Path) -> Sequence[str]:
    return git(repo, "ls-tree", "-r", "--name-only", "main").splitlines()


def test_create_commits_one_file_as_the_person_and_answers_with_a_start(tmp_path: Path) -> None:
    """D1, D5: the id is slice/name; the answer names commit, file and estimated start."""
    repo = repository(tmp_path / "r.git", fleet())
    before = tip(repo)
    wish = (
        "--nodes",
        "2",
        "--gpus-per-node",
        "8",
        "--shape",
        "H100-80GB",
        "--duration",
        "6h",
        "--priority",
        "150",
    )
    done = _gpr(repo, "create", "a/mine", *wish, "--now", NOW, "-o", "json")
    assert done.code == 0, done.err
    assert done.json == {
        "slice": "a",
        "name": "mine",
        "path": MINE,
        "commit": tip(repo),
        "branch": None,
        "pullRequest": None,
        "dryRun": False,
        "estimate": {
            "cluster": "east", "pool": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80,
            "freeNodes": 4, "estimatedStartTime": "2026-11-21T08:02:00Z", "estimatedWaitSeconds": 120,
            "needsApproval": False, "pricePerGpuHour": 2.5, "reason": None,
        },
    }  # fmt: skip
    assert git(repo, "log", "-1", "--format=%an <%ae> %s", "main") == f"{BO} Create a/mine"
    assert git(repo, "diff", "--name-only", before, "main") == MINE
    assert main_file(repo, MINE).splitlines() == [
        "apiVersion: egs.dev/v1alpha1", "kind: GPR", "metadata:", "  name: mine", "spec:", "  slice: a",
        "  nodes: 2", "  gpusPerNode: 8", "  gpuShape: H100-80GB", "  duration: 6h", "  priority: 150",
    ]  # fmt: skip


def test_every_option_of_create_reaches_the_file(tmp_path: Path) -> None:
    """D1, D19: a template fills in what is not given; what is given wins."""
    head = "apiVersion: egs.dev/v1alpha1\nkind: GPRTemplate\nmetadata: {name: small}\n"
    template = f"{head}spec: {{nodes: 1, duration: 2h}}\n"
    repo = folder(tmp_path / "f", fleet(**{"templates/small.yaml": template}))
    done = egs(
        "gpr", "create", "a/mine", "--template", "small", "--duration", "3h", "--shape", "A", "--shape", "H100-80GB",
        "--cluster", "east", "--not-before", "2026-11-22T08:00:00Z", "--start", "promised", "--memory", 40,
        "--display-name", "Second try", "--model", "llama", "--repo", repo, "--now", NOW,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.err == "egs: wrote slices/a/gprs/mine.yaml\n", "a plain folder has nothing to commit to"
    spec = egs("describe", "gpr", "a/mine", "--repo", repo, "-o", "json").json["status"]["acceptedSpec"]
    want = {
        "nodes": 1, "duration": "0d3h0m", "gpuShapes": ["A", "H100-80GB"], "clusters": ["east"], "memoryPerGpu": 40,
        "notBefore": "2026-11-22T08:00:00Z", "start": "promised", "displayName": "Second try",
    }  # fmt: skip
    assert {key: spec[key] for key in want} == want
    assert "starts at 2026-11-22 08:00:00" in done.out


def test_a_dry_run_shows_the_file_and_writes_nothing(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    before = tip(repo)
    done = egs(
        "gpr", "create", "a/mine", "--nodes", 3, "--duration", "6h", "--dry-run", "--repo", repo, "--now", NOW
    )
    assert (done.code, tip(repo)) == (0, before)
    assert "  nodes: 3\n" in done.out
    assert "once an admin has approved it" in done.out


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        pytest.param(["a/mine", "--nodes", "9", "--duration", "1h"], "FitsNowhere", id="it could never fit"),
        pytest.param(
            ["a/mine", "--nodes", "1", "--duration", "8d"], "DurationTooLong", id="beyond a hard limit"
        ),
        pytest.param(["a/mine", "--nodes", "1"], "MissingField", id="no duration"),
        pytest.param(["c/mine", "--nodes", "1", "--duration", "1h"], "slices here: a, b", id="no such slice"),
        pytest.param(
            ["a/there", "--nodes", "1", "--duration", "1h"], "exists already", id="the name is taken"
        ),
    ],
)
def test_what_would_be_invalid_is_refused_and_nothing_is_pushed(
    tmp_path: Path, args: list[str], sentence: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/there")))
    before = tip(repo)
    done = _gpr(repo, "create", *args)
    assert (done.code, done.out, tip(repo)) == (1, "", before)
    assert sentence in done.err


def test_nobody_writes_without_a_name(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    done = egs("gpr", "create", "a/mine", "--nodes", 1, "--duration", "1h", "--repo", repo)
    assert done.code == 2
    assert "--author" in done.err


def test_an_edit_changes_its_lines_and_nothing_else(tmp_path: Path) -> None:
    """D9, A4: comments and order are the person's own."""
    repo = repository(tmp_path / "r.git", fleet(**{MINE: COMMENTED}))
    assert _gpr(repo, "edit", "a/mine", "nodes=2", "network.rdma=false", "displayName=Third: try").code == 0
    assert main_file(repo, MINE) + "\n" == COMMENTED.replace("nodes: 1 ", "nodes: 2 ").replace(
        "  duration: 6h\n", '  duration: 6h\n  network: {rdma: false}\n  displayName: "Third: try"\n'
    )


@pytest.mark.parametrize(
    ("args", "line"),
    [
        pytest.param(
            ["priority", "a/mine", "180"], "  priority: 180   # agreed with Ada", id="priority (E4)"
        ),
        pytest.param(["rename", "a/mine", "Third try"], "  displayName: Third try", id="rename (D9)"),
        pytest.param(["extend", "a/mine", "0d0h30m"], "  extend: 0d0h30m", id="extend (D10)"),
        pytest.param(["release", "a/mine"], "  earlyRelease: true", id="release (D11)"),
        pytest.param(["stop", "a/mine"], "  stopped: true", id="stop (D13)"),
    ],
)
def test_each_short_edit_sets_its_field(tmp_path: Path, args: list[str], line: str) -> None:
    repo = repository(tmp_path / "r.git", fleet(**{MINE: COMMENTED}))
    assert _gpr(repo, *args).code == 0
    text = main_file(repo, MINE)
    assert line in text.splitlines()
    assert text.startswith("# Why we need this")
    assert text.endswith("# the end")


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        pytest.param(
            ["edit", "a/mine", "priority=250"], 1, "PriorityTooHigh", id="beyond the slice's limit (E4)"
        ),
        pytest.param(["priority", "a/mine", "301"], 2, "300", id="no priority at all"),
        pytest.param(["extend", "a/mine", "later"], 2, "write a duration", id="no duration at all"),
        pytest.param(["edit", "a/mine", "node=2"], 1, "did you mean nodes", id="no such field"),
        pytest.param(["edit", "a/mine", "nodes"], 2, "FIELD=VALUE", id="no value"),
        pytest.param(
            ["edit", "a/mine", "nodes=two"],
            2,
            "write a number from 1 to 100000",
            id="a value of another type",
        ),
        pytest.param(["edit", "a/mine", "nodes=0x2"], 2, "quote it", id="a value that readers dispute"),
        pytest.param(["edit", "a/mine", "nodes=1"], 1, "has these values already", id="nothing new"),
        pytest.param(["cancel", "a/min"], 1, "did you mean a/mine", id="no such request"),
    ],
)
def test_an_edit_that_cannot_be_is_refused(tmp_path: Path, args: list[str], code: int, sentence: str) -> None:
    repo = repository(tmp_path / "r.git", fleet(**{MINE: COMMENTED}))
    before = tip(repo)
    done = _gpr(repo, *args)
    assert (done.code, done.out, done.err.count("\n"), tip(repo)) == (code, "", 1, before)
    assert sentence in done.err


def test_cancel_ends_it_in_its_file_and_prune_takes_that_and_its_approvals(tmp_path: Path) -> None:
    """D8: whoever has got nodes meanwhile ends, too; an approval of a request that is gone would be an error."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/over", nodes=3)))
    assert egs("approve", "a/over", "--repo", repo, "--author", "Ada <ada@example.com>").code == 0
    assert "approvals/a/over/ada.yaml" in _files(repo)
    assert _gpr(repo, "cancel", "a/over").code == 0
    assert main_file(repo, "slices/a/gprs/over.yaml").endswith("earlyRelease: true")
    assert "a/over is Cancelled and never runs again" in _gpr(repo, "release", "a/over").err
    Control(repo, tmp_path / "state").run(minutes(1))
    taken = _gpr(repo, "create", "a/over", "--nodes", 1, "--duration", "1h")
    assert (taken.code, "a/over is Cancelled and never runs again; choose a new name" in taken.err) == (
        1,
        True,
    )
    assert egs("prune", "--apply", "--repo", repo, "--author", BO).code == 0
    assert _files(repo) == sorted(fleet())
    early = _gpr(repo, "create", "a/over", "--nodes", 1, "--duration", "1h")
    assert (early.code, "the controller's next cycle removes its record" in early.err) == (1, True), early.err


class TestWhileItHoldsNodes:
    """What may still be said about a request that runs, and about one that is over."""

    @pytest.fixture
    def running(self, tmp_path: Path) -> Path:
        repo = repository(tmp_path / "r.git", fleet(**request("a/run", priority=150), **request("a/then")))
        self.control = Control(repo, tmp_path / "state")
        self.control.run(minutes(10))
        return repo

    def test_cancel_is_refused_and_names_release(self, running: Path) -> None:
        """D8."""
        done = _gpr(running, "cancel", "a/run")
        assert (done.code, "egs gpr release a/run" in done.err) == (1, True)

    def test_its_terms_stay(self, running: Path) -> None:
        """D9, E4."""
        assert "ForbiddenEdit" in _gpr(running, "edit", "a/run", "nodes=2").err
        assert _gpr(running, "priority", "a/run", "10").code == 1

    def test_release_ends_it_and_it_is_over_for_good(self, running: Path) -> None:
        """D11: the next one moves up; the file of the first may go."""
        assert _gpr(running, "release", "a/run").code == 0
        self.control.run(minutes(30))
        rows = egs("get", "gprs", "--repo", running, "-o", "json").json
        assert {row["name"]: row["phase"] for row in rows} == {"run": "Completed", "then": "Provisioned"}
        for words in (["cancel", "a/run"], ["release", "a/run"], ["edit", "a/run", "nodes=2"]):
            assert _gpr(running, *words).code == 1
        self._prune(running)

    def test_stop_keeps_its_time_and_start_queues_it_again(self, running: Path) -> None:
        """D13: what is stopped is shown with its reason, and is nobody's to wait for."""
        assert _gpr(running, "start", "a/run").code == 1
        assert _gpr(running, "stop", "a/run").code == 0
        self.control.run(minutes(30))
        shown = {row["name"]: row for row in egs("plan", "--repo", running, "-o", "json").json["requests"]}
        assert (shown["run"]["phase"], shown["run"]["reason"], shown["run"]["rank"]) == (
            "Queued",
            "Stopped",
            None,
        )
        assert shown["then"]["phase"] == "Provisioned"
        assert _gpr(running, "start", "a/run").code == 0
        self.control.run(minutes(40))
        again = {row["name"]: row for row in egs("plan", "--repo", running, "-o", "json").json["requests"]}
        assert (again["run"]["phase"], again["run"]["reason"]) == ("Queued", None)
        assert again["run"]["estimatedStartTime"] is not None

    def _prune(self, repo: Path) -> None:
        path = "slices/a/gprs/run.yaml"
        done = egs("prune", "--repo", repo, "-o", "json")
        assert done.json == [{"slice": "a", "name": "run", "phase": "Completed", "files": [path]}]
        assert path in _files(repo)
        assert egs("prune", "--apply", "--repo", repo, "--author", BO).code == 0
        assert path not in _files(repo)
        assert egs("prune", "--repo", repo, "-o", "json").json == []

    def test_grace_is_granted_when_it_delays_nobody(self, running: Path) -> None:
        """D10: what the plan shows is what the controller will do."""
        assert _gpr(running, "cancel", "a/then").code == 0
        assert _gpr(running, "extend", "a/run", "30m").code == 0
        rows = egs("plan", "--repo", running, "--now", "2026-11-21T08:12:00Z", "-o", "json").json["requests"]
        assert [row["estimatedEndTime"] for row in rows] == ["2026-11-21T09:32:00Z"]


# -- who else writes -------------------------------------------------------------------------------------------------


class _Rival(GitStore):
    """A real store; before each of its first pushes another process pushes to the same repository."""

    races = 0
    rival_files: ClassVar[dict[str, str]] = {}

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        if _Rival.races > 0:
            _Rival.races -= 1
            commit(
                Path(self._mirror_remote),
                {**_Rival.rival_files, f"notes/{_Rival.races}.txt": "hello"},
                branch,
            )
        return super().push(branch, new, expected)

    def __init__(self, remote: str, mirror: Path, credentials: Credentials) -> None:
        super().__init__(remote, mirror, credentials=credentials)
        self._mirror_remote = remote


@pytest.fixture
def rival(monkeypatch: pytest.MonkeyPatch) -> type[_Rival]:
    monkeypatch.setattr(bare_module, "GitStore", _Rival)
    _Rival.races, _Rival.rival_files = 0, {}
    return _Rival


def test_a_lost_race_is_run_again_on_what_others_left(tmp_path: Path, rival: type[_Rival]) -> None:
    """A push is a compare-and-swap: both changes are there, and nothing is forced."""
    repo = repository(tmp_path / "r.git", fleet(**{MINE: COMMENTED}))
    rival.races, rival.rival_files = 2, {MINE: COMMENTED.replace("6h", "8h")}
    assert _gpr(repo, "edit", "a/mine", "nodes=2").code == 0
    text = main_file(repo, MINE)
    assert "duration: 8h" in text
    assert "nodes: 2 " in text
    assert git(repo, "rev-list", "--count", "main") == "4"


def test_after_a_race_the_change_is_judged_anew(tmp_path: Path, rival: type[_Rival]) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    rival.races, rival.rival_files = 1, request("a/mine")
    done = _gpr(repo, "create", "a/mine", "--nodes", "1", "--duration", "1h")
    assert (done.code, "exists already" in done.err) == (1, True)


def test_who_loses_every_race_is_told_to_try_again(tmp_path: Path, rival: type[_Rival]) -> None:
    repo = repository(tmp_path / "r.git", fleet(**{MINE: COMMENTED}))
    rival.races = 1000
    done = _gpr(repo, "edit", "a/mine", "nodes=2")
    assert (done.code, "try again" in done.err) == (3, True)


def test_a_protected_main_is_explained(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**{MINE: COMMENTED}))
    hook = repo / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    done = _gpr(repo, "edit", "a/mine", "nodes=2")
    assert (done.code, "pull request" in done.err) == (1, True)
    hook.write_text(
        "#!/bin/sh\necho 'bo is no member of slice a' >&2\necho 'To join, ask ida.' >&2\nexit 1\n"
    )
    told = _gpr(repo, "edit", "a/mine", "nodes=2")
    assert (
        "refused the push to main: bo is no member of slice a To join, ask ida; use --pull-request"
        in told.err
    )


def test_in_a_work_tree_the_file_is_written_and_the_next_step_named(tmp_path: Path) -> None:
    """A4: the change goes the way of every change, by commit and pull request."""
    tree = worktree(tmp_path / "w", fleet(**{MINE: COMMENTED}))
    done = egs("gpr", "priority", "a/mine", 130, "--repo", tree)
    assert (done.code, done.out) == (0, "")
    assert 'next: git add -A && git commit -m "Set priority of a/mine to 130" && git push' in done.err
    assert git(tree, "status", "--porcelain") == " M slices/a/gprs/mine.yaml"
    assert egs("gpr", "cancel", "a/mine", "--repo", tree).code == 0
    assert git(tree, "status", "--porcelain") == " M slices/a/gprs/mine.yaml"
    assert "  earlyRelease: true\n" in (tree / "slices/a/gprs/mine.yaml").read_text()


def test_a_file_is_never_written_through_a_link(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet())
    (tmp_path / "elsewhere").mkdir()
    (repo / "slices" / "a" / "gprs").symlink_to(tmp_path / "elsewhere")
    done = egs("gpr", "create", "a/mine", "--nodes", 1, "--duration", "1h", "--repo", repo)
    assert (done.code, list((tmp_path / "elsewhere").iterdir())) == (2, [])
