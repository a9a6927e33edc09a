"""The container file says what can be built: there is no engine here, so it is read, and its steps are followed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from reconciler.deploying.part_pods import USER
from tests.deploy.helm import ROOT
from tests.support.wheels import built

FILE = ROOT / "deploy" / "Containerfile"


def steps() -> list[tuple[str, str]]:
    """Instructions and what follows them, continued lines joined."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Steps by the name of their stage; the last one has none."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for word, rest in steps():
        if word == "FROM":
            name = rest.split(" AS ")[1] if " AS " in rest else "last"
        found.setdefault(name, []).append((word, rest))
    return found


def test_every_source_that_is_copied_is_there() -> None:
    for word, rest in stages()["build"]:
        if word == "COPY":
            *sources, _ = shlex.split(rest)
            assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_package_of_the_wheel_is_copied() -> None:
    import tomllib

    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {
        source for word, rest in stages()["build"] if word == "COPY" for source in shlex.split(rest)[:-1]
    }
    assert {*wheel["packages"], *wheel.get("force-include", {})} <= copied


def test_the_last_stage_takes_only_from_stages_that_have_a_name() -> None:
    taken = [re.search(r"--from=(\S+)", rest) for word, rest in stages()["last"] if word == "COPY"]
    assert [match[1] if match else None for match in taken] == ["build"]


@pytest.mark.parametrize("tool", ["git", "openssh-client", "ca-certificates", "gpg"])
def test_the_image_has_what_reaches_a_repository(tool: str) -> None:
    assert any(word == "RUN" and tool in rest.split() for word, rest in stages()["last"])


def test_its_user_is_that_of_the_pods_and_has_a_name() -> None:
    """ssh does nothing for a user without one."""
    last = stages()["last"]
    assert ("USER", f"{USER}:{USER}") in last
    assert any(word == "RUN" and f"useradd --uid {USER}" in rest for word, rest in last)


def test_it_starts_every_program_safely() -> None:
    assert any(word == "ENV" and "PYTHONSAFEPATH=1" in rest for word, rest in stages()["last"])
    assert ("ENTRYPOINT", "[]") in stages()["last"]


def test_nothing_of_a_developer_s_machine_is_copied() -> None:
    ignored = Path(f"{FILE}.dockerignore").read_text().split()
    assert {"**/__pycache__", ".git", ".venv"} <= set(ignored)


def test_the_wheel_has_every_file_of_its_packages(tmp_path: Path) -> None:
    """Templates, scripts and styles of pages too: each page works without a network and without the sources."""
    listed = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "reconciler",
        "scheduler",
        "schemas",
        "agent",
        "portal",
        "demo",
        "egs",
    ]
    tracked = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\n")
    with ZipFile(built(ROOT, tmp_path)) as wheel:
        packed = set(wheel.namelist())
    assert sorted(name for name in tracked if name and name not in packed) == []
    assert any(name.startswith("portal/pages/static/") for name in packed)
