"""The console script on a real bare repository and a file of simulated GPUs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.main import app, identity
from agent.report import from_text
from agent.settings import Settings
from tests.support.machinekeys import line, private_text
from tests.support.processes import awaited
from tests.support.ready_python import ready_python
from tests.support.repos import bare, git

GPU = {"uuid": "GPU-a", "index": 0, "product": "H100-80GB", "memory_mib": 81920, "temp_c": 50}
BRANCH = "egs/agents/east/h100-1"


@pytest.fixture
def place(tmp_path):
    """A bare repository and a file with one well GPU."""
    bare(tmp_path / "fleet.git")
    (tmp_path / "gpus.json").write_text(json.dumps([GPU]))
    return tmp_path


def options(place: Path) -> list[str]:
    return [
        *("--repo", str(place / "fleet.git"), "--cluster", "east", "--node", "h100-1"),
        *("--simulated", str(place / "gpus.json"), "--state", str(place / "state")),
    ]


def pushed(place: Path):
    """The report as the repository has it."""
    return from_text(git(place / "fleet.git", "show", f"{BRANCH}:report.yaml").encode())


def test_once_prints_and_pushes_the_report(place):
    """Exit 0 for a well node."""
    done = CliRunner().invoke(app, ["once", *options(place)])
    assert done.exit_code == 0, done.output
    assert from_text(done.stdout.encode()).healthy
    assert pushed(place).gpus[0].uuid == "GPU-a"


def test_with_a_key_report_and_commit_are_signed(place):
    """As any SSH tool sees it: the signature is of the file's very bytes."""
    key_file = place / "key"
    key_file.write_bytes(private_text("h100-1"))
    key_file.chmod(0o600)
    done = CliRunner().invoke(app, ["once", *options(place), "--key", str(key_file)])
    assert done.exit_code == 0, done.output
    signature, signers = place / "signature", place / "allowed_signers"
    signature.write_text(git(place / "fleet.git", "show", f"{BRANCH}:report.yaml.sig") + "\n")
    signers.write_text(line("agent:east/*", "h100-1") + "\n")
    report = git(place / "fleet.git", "show", f"{BRANCH}:report.yaml") + "\n"
    checked = subprocess.run(
        [
            "ssh-keygen",
            "-Y",
            "verify",
            "-f",
            signers,
            "-I",
            "agent:east/h100-1",
            "-n",
            "egs-health",
            "-s",
            signature,
        ],
        input=report.encode(),
        capture_output=True,
    )
    assert checked.returncode == 0, checked.stderr
    signers.write_text(line("agent:east/h100-1", "h100-1") + "\n")
    verified = git(
        place / "fleet.git",
        "-c",
        f"gpg.ssh.allowedSignersFile={signers}",
        "log",
        "-1",
        "--format=%G?",
        BRANCH,
    )
    assert verified == "G"


def test_a_key_that_others_may_read_is_refused(place):
    key_file = place / "key"
    key_file.write_bytes(private_text("h100-1"))
    key_file.chmod(0o644)
    done = CliRunner().invoke(app, ["once", *options(place), "--key", str(key_file)])
    assert (done.exit_code, "chmod 600" in done.output) == (2, True)


def test_once_says_no_for_an_unfit_node(place):
    """Exit 1: the answer is no."""
    (place / "gpus.json").write_text(json.dumps([GPU | {"lost": True}]))
    done = CliRunner().invoke(app, ["once", *options(place)])
    assert done.exit_code == 1, done.output
    assert pushed(place).reason == "GpuLost"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        pytest.param(["--node", "H100_1"], "lower-case", id="a name that is none"),
        pytest.param(["--simulated", "/nowhere.json"], "BadReadings", id="a file that is not there"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(place, wrong, told):
    """Exit 2."""
    done = CliRunner().invoke(app, ["once", *options(place), *wrong])
    assert done.exit_code == 2, done.output
    assert told in re.sub(r"\s+", " ", done.stderr)


def test_a_repository_that_is_away_is_the_worlds_trouble(place):
    """Exit 3: what was reported before could not be read back, so nothing is judged."""
    done = CliRunner().invoke(app, ["once", *options(place), "--repo", str(place / "nowhere.git")])
    assert done.exit_code == 3, done.output


def test_run_goes_on_until_it_is_told_to_stop(place):
    """SIGTERM ends it with exit 0; the report was pushed before."""
    command = [sys.executable, "-c", "from agent.main import main; main()", "run", "--interval", "1"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    started = subprocess.Popen([*command, *options(place)], stderr=subprocess.PIPE, text=True, env=env)
    with awaited(started) as agent:
        assert agent.stderr is not None
        seen = next((line for line in agent.stderr if "report written" in line), "")
        agent.send_signal(signal.SIGTERM)
        rest = agent.stderr.read()
    assert "healthy=True" in seen
    assert agent.returncode == 0, rest
    assert pushed(place).healthy


def test_run_serves_telemetry_where_it_is_told_to(place):
    """H5: after the first reading, dcgm-exporter's names are there."""
    command = [
        ready_python("agent.main"),
        "-c",
        "from agent.main import main; main()",
        "run",
        "--interval",
        "1",
    ]
    given = [*command, *options(place), "--listen", "127.0.0.1:0"]
    with awaited(subprocess.Popen(given, stderr=subprocess.PIPE, text=True)) as agent:
        assert agent.stderr is not None
        listening = next(line for line in agent.stderr if "listening" in line)
        next(line for line in agent.stderr if "report written" in line)
        port = int(re.search(r"port=(\d+)", listening)[1])
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
        agent.send_signal(signal.SIGTERM)
        rest = agent.stderr.read()
    assert agent.returncode == 0, rest
    assert 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"' in page


def test_an_address_that_cannot_be_used_is_told(place):
    done = CliRunner().invoke(app, ["run", *options(place), "--listen", "somewhere"])
    assert (done.exit_code, "WrongUse: --listen somewhere" in done.stderr) == (2, True)


def test_run_ends_when_somebody_has_to_mend_something(place):
    """Exit 2 with the reason, not a loop of complaints."""
    (place / "gpus.json").write_text("{}")
    command = [
        ready_python("agent.main"),
        "-c",
        "from agent.main import main; main()",
        "run",
        "--interval",
        "1",
    ]
    done = subprocess.run(
        [*command, *options(place)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "BadReadings" in done.stderr


def test_every_life_of_the_process_has_a_name_of_its_own():
    settings = Settings("r", "east", "h100-1", "h100-1", Path("s"))
    assert identity(settings).writer != identity(settings).writer
    assert identity(settings).boot == identity(settings).boot
    assert identity(settings).branch == BRANCH
