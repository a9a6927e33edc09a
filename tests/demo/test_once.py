"""The story of `egs demo --once`, and that its audit is not blind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from demo.audit import Audit
from demo.once import Run, play
from demo.system import System, example_files
from reconciler.settings import Settings
from schemas.documents.gpr import RequestSpec
from schemas.rules.check import check_files
from schemas.status.gpr_status import Assignment, GPRStatus, Phase
from tests.support.world import START, at

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[bool, str]:
    """The story played once on a real repository, and what it printed."""
    console = Console(record=True, width=200, quiet=True)
    console.quiet = False
    with Path("/dev/null").open("w") as nowhere:
        console.file = nowhere
        kept = play(tmp_path_factory.mktemp("demo"), console)
    return kept, console.export_text()


def test_every_promise_is_kept(told: tuple[bool, str]) -> None:
    """A1, A2, A14: the whole main job on two clusters."""
    kept, text = told
    assert kept, text


def test_the_readme_ends_the_story_as_it_ends(told: tuple[bool, str]) -> None:
    """The table in the README is what the story prints."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    table = readme.partition("```\nrequest ")[2].partition("```")[0].splitlines()
    printed = {" ".join(line.split()) for line in told[1].splitlines()}
    assert len(table) == 9
    assert {" ".join(line.split()) for line in ["request " + table[0], *table[1:]]} <= printed


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            r"GPRDelayed .*HigherRankArrived \(nlp/hotfix\)",
            id="E3: a slip names the higher rank that arrived",
        ),
        pytest.param(
            r"ManifestRefused .*oops.yaml", id="a bad manifest is reported while everything else goes on"
        ),
        pytest.param(r"GPRPendingApproval .*robotics/twin .*QuotaExceeded", id="E5: quota excess waits"),
        pytest.param(r"GPRApproved .*approved by ada", id="E5: an admin approves"),
        pytest.param(r"GPRNodeReplaced .*replaces h100-1", id="H15: the node of a bad GPU is replaced"),
        pytest.param(r"GPREarlyReleased .*detector-pretrain", id="D11: an early release"),
        pytest.param(r"vision/label-check +16:02:00 +11:02:00", id="D11: which pulls the next one forward"),
        pytest.param(r"took over as term 2", id="the controller was killed and came back"),
        pytest.param(r"GPRDuration75 .*nlp/eval-nightly", id="H11: marks"),
        pytest.param(
            r"WorkloadRunning .*workload nlp/eval-nightly",
            id="A9, J1: a workload is applied with its request",
        ),
        pytest.param(r"nlp/llama-finetune .*240.00 USD", id="H17: cost"),
        pytest.param(
            r"answer +nlp/llama-finetune: Job llama, model llama-3-8b", id="H1: a model found from its pods"
        ),
        pytest.param(
            r"answer +h100-2 GPU 5: 88 °C, .* hot", id="H4: the GPU nearest to its limit comes first"
        ),
        pytest.param(r"answer +HeatSlowdown: GPU 5 on h100-2", id="H6: an alert for a hot GPU"),
        pytest.param(r"answer +GPU 5 on h100-2 is slowed down by heat since 09:35", id="H18: a diagnosis"),
        pytest.param(r"answer +card \d+ \(H100-80GB\): Xid79 at", id="H14: the card is remembered"),
    ],
)
def test_the_story_goes_through(told: tuple[bool, str], line: str) -> None:
    """Each chapter leaves its line."""
    import re

    assert re.search(line, told[1]), told[1]


def test_an_announced_driver_upgrade_takes_no_node_out(told: tuple[bool, str]) -> None:
    """H14: its GPUs are gone for half an hour, in the window that Ada announced."""
    assert "The driver of that node is upgraded" in told[1]
    assert "NodeOut             east/l40s-rack2-b" not in told[1]


def test_the_example_repository_has_no_problem() -> None:
    """A4: examples/repo is valid."""
    files = [(path, 0o100644, data) for path, data in example_files().items()]
    result = check_files(files, None, {})
    assert [p for p in result.problems if p.severity == "error"] == []


def test_a_system_can_be_started_on_its_own_folder_again(tmp_path: Path) -> None:
    """State survives: a second run of the same folder goes on where the first ended."""
    settings = Settings(repo=str(tmp_path / "fleet.git"), state=tmp_path, pushes_per_minute=None)
    first = Run(System(tmp_path, settings), story=())
    first.system.create(first.now)
    first.system.start_controller().cycle(first.now)
    first.system.close()
    again = System(tmp_path, settings)
    cycle = again.start_controller().cycle(first.now + HOUR)
    again.close()
    assert cycle.facts is not None
    assert len(cycle.facts.requests) == 6


def _status(**update: object) -> GPRStatus:
    spec = RequestSpec(slice="a", nodes=1, duration=HOUR)
    status = GPRStatus(phase=Phase.QUEUED, uid="gpr-1", filed_at=START, accepted_spec=spec, spec_digest="x")
    return status.model_copy(update=update)


HELD = Assignment(cluster="east", pool="h100", nodes=("h100-1",))


@pytest.mark.parametrize(
    ("commits", "broken"),
    [
        pytest.param(
            [{"a/x": _status(estimated_start_time=at(1))}, {"a/x": _status(estimated_start_time=at(5))}],
            "without a cause",
            id="a start that moves later without a slip",
        ),
        pytest.param(
            [
                {
                    "a/x": _status(phase=Phase.PROVISIONED, assignment=HELD),
                    "b/y": _status(phase=Phase.PROVISIONING, assignment=HELD),
                }
            ],
            "belongs to",
            id="a node in two requests",
        ),
        pytest.param(
            [{"a/x": _status(phase=Phase.COMPLETED, start_time=at(0), end_time=at(61))}],
            "after its strict end",
            id="an end that is late",
        ),
        pytest.param([{"a/x": _status()}], "still Queued", id="a request that was forgotten"),
    ],
)
def test_the_audit_sees(commits: list[dict[str, GPRStatus]], broken: str) -> None:
    """An audit that could not fail would prove nothing."""
    audit = Audit()
    for requests in commits:
        audit.see(requests)
    audit.finish()
    assert any(broken in sentence for sentence in audit.broken), audit.broken
