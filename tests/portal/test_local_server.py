"""`egs portal`: on a repository it serves the pages here, on a server it asks for a link."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.portal import KEYS, Site
from tests.support.processes import awaited
from tests.support.ready_python import ready_python
from tests.support.repos import ENVIRONMENT

PAGE = {"Accept": "text/html"}


@pytest.fixture
def site(tmp_path: Path):
    made = Site(tmp_path / "site")
    made.settle()
    yield made
    made.close()


def egs(*words: str, **environment: str) -> subprocess.Popen[str]:
    command = [ready_python("portal.local_server"), "-c", "from egs.cli import main; main()", *words]
    home = {key: value for key, value in ENVIRONMENT.items() if not key.startswith("GIT_CONFIG")}
    environment = {**home, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def person_at(link: str) -> str:
    """The page behind a link, after all redirects."""
    with httpx.Client(follow_redirects=True, headers=PAGE, timeout=60) as browser:
        return browser.get(f"{link}&next=/requests").text


def test_a_repository_is_served_here_for_the_person_of_git(site: Site):
    """Ada, whom the manifests know as an admin."""
    with awaited(egs("portal", "--print", "--repo", str(site.repo))) as running:
        assert running.stdout is not None
        link = running.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:")
        assert "ada@example.com" in person_at(link)
        running.send_signal(signal.SIGTERM)
        assert running.wait() == 0


def test_a_server_gives_a_link(site: Site):
    with (
        site.server() as url,
        awaited(egs("portal", "--print", EGS_SERVER=url, EGS_API_KEY=KEYS["bo-editor"])) as done,
    ):
        assert done.stdout is not None
        link = done.stdout.readline().strip()
        assert link.startswith(f"{url}/login/with?ticket=")
        assert "bo@example.com" in person_at(link)
        assert done.wait() == 0
