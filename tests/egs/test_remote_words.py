"""The client alone has the commands that a server carries out, with help and examples (K1)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from egs import cli
from egs.commands.limits import NOT_ON_A_SERVER
from egs.modes import Here, Target
from reconciler.cli import register

HERE = Path(__file__).parents[2]
PAGES = "\n".join(page.read_text("utf-8") for page in (HERE / "docs/reference/commands").glob("*.md"))


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the app that help shows, however deep."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    for name, one in (inner or {}).items():
        if not one.hidden:
            yield from leaves(one, (*path, name))


LOCAL = dict(leaves(cli.commands([register], None)))
REMOTE = dict(leaves(cli.commands([], None)))


def test_the_client_alone_shows_only_what_a_server_carries_out() -> None:
    alone = {
        "validate",
        "check-pr",
        "demo",
        "doctor",
        "init",
        "install",
        "uninstall",
        "simulate",
        "kubeconfig-token",
    }
    missing = {" ".join(path) for path in LOCAL.keys() - REMOTE.keys()}
    assert {name for name in missing if name not in alone} <= NOT_ON_A_SERVER | {"pr status"}
    shown = {p.opts[0] for command in REMOTE.values() for p in command.params if not p.hidden}
    assert not shown & {"--repo", "--now", "--author", "--pull-request"}


@pytest.mark.parametrize("path", sorted(REMOTE), ids=" ".join)
def test_every_command_teaches_with_an_example(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*path, "--help"], []) == 0
    out = capsys.readouterr().out
    assert any(line.strip().startswith(" ".join(("egs", *path))) for line in out.splitlines()[1:])
    assert all(p.help for p in REMOTE[path].params if hasattr(p, "help") and p.name != "help")
    section = PAGES.partition(f"\n## egs {' '.join(path)}\n")[2]
    assert section, "it is documented"


def test_the_list_is_the_same_in_both_modes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(env: dict[str, str], *path: str) -> str:
        here = Here({"EGS_CONFIG": str(tmp_path / "none"), **env}, tmp_path, has_repositories=True)
        assert cli.run([*path, "--help"], [register], here) == 0
        return capsys.readouterr().out

    server = {"EGS_SERVER": "https://s", "EGS_API_KEY": "k"}
    assert listed({}) == listed(server)
    assert "Most commands work on it: on --repo" in " ".join(listed(server).split())
    assert listed({}, "gpr") == listed(server, "gpr")


def test_a_server_leaves_no_command_out() -> None:
    both = dict(leaves(cli.commands([register], Target("https://s", "k"))))
    assert set(both) == set(LOCAL)


def test_help_loads_nothing_heavy_and_nothing_of_the_project() -> None:
    """The client alone: neither a reader of YAML, nor HTTP, nor any of our other packages."""
    heavy = "{'httpx', 'yaml', 'rich.table', 'pydantic', 'reconciler', 'schemas', 'scheduler', 'portal'}"
    code = (
        "import sys; from egs import cli; cli.run(['--help'], []); "
        f"print('HEAVY', sorted({heavy} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
