"""A server's commands are those of a repository: the same names, arguments and words (K1)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from egs import cli
from egs.modes import Here, Target
from reconciler.cli import register

HERE = Path(__file__).parents[2]
REPOSITORY_ALONE = {
    "--repo",
    "--author",
    "--now",
    "--pull-request",
    "--push",
    "--ref",
    "--against",
    "--forge",
    "--as",
}
REPOSITORY_ALONE |= {"--instance", "--pool", "--fairness", "--every", "--key", "--dry-run"}
REPOSITORY_ALONE |= {"--max-duration", "--max-priority", "--max-nodes", "--limit-extend"}
REPOSITORY_ALONE |= {
    "--namespace",
    "--member",
    "--static",
    "--expires",
    "--plugin-api",
    "--kubeconfig",
    "--context",
}
"""Options that say something about a repository, a signature or one's own kubeconfig, and some that the API has not."""


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


def options(command: Any) -> dict[str, Any]:
    return {
        param.opts[0]: param
        for param in command.params
        if param.param_type_name == "option" and not param.hidden
    }


def arguments(command: Any) -> list[tuple[str, int, bool]]:
    return [(p.name, p.nargs, p.required) for p in command.params if p.param_type_name == "argument"]


@pytest.mark.parametrize("path", sorted(REMOTE), ids=" ".join)
def test_a_command_takes_the_same_on_a_server(path: tuple[str, ...]) -> None:
    here, there = LOCAL[path], REMOTE[path]
    assert arguments(there) == arguments(here)
    mine, theirs = options(here), options(there)
    assert theirs.keys() <= mine.keys(), "nothing that a repository does not know"
    assert mine.keys() - theirs.keys() <= REPOSITORY_ALONE
    for name, option in theirs.items():
        same = mine[name]
        assert (option.is_flag, option.multiple, option.required) == (
            same.is_flag,
            same.multiple,
            same.required,
        ), name
    assert there.short_help == here.short_help


@pytest.mark.parametrize("path", sorted(REMOTE), ids=" ".join)
def test_every_command_teaches_with_an_example(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*path, "--help"], []) == 0
    out = capsys.readouterr().out
    assert any(line.strip().startswith(" ".join(("egs", *path))) for line in out.splitlines()[1:])
    assert all(p.help for p in REMOTE[path].params if hasattr(p, "help") and p.name != "help")
    section = (HERE / "docs" / "commands.md").read_text().partition(f"\n## egs {' '.join(path)}\n")[2]
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


def test_laying_one_over_the_other_leaves_nothing_out() -> None:
    both = dict(leaves(cli.commands([register], Target("https://s", "k"))))
    assert set(both) == set(LOCAL)
    assert both["gpr", "create"].callback is not LOCAL["gpr", "create"].callback
    assert {path[0] for path in both} == {path[0] for path in LOCAL}


def test_help_loads_nothing_heavy_and_nothing_of_the_project() -> None:
    """The client alone: neither a reader of YAML, nor HTTP, nor any of our other packages."""
    heavy = "{'httpx', 'yaml', 'rich.table', 'pydantic', 'reconciler', 'schemas', 'scheduler', 'portal'}"
    code = (
        "import sys; from egs import cli; cli.run(['--help'], []); "
        f"print('HEAVY', sorted({heavy} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
