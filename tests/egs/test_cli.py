"""The shell around all commands: exit codes, help that teaches, and packages that may be missing or broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer

from egs import cli
from egs.commands import command_tree
from reconciler.cli import register
from schemas.errors import Fault, UserError

HERE = Path(__file__).parents[2]
ENTRY = "import sys; from egs.cli import run; from reconciler.cli import register; "


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every group and command of the app that help shows, however deep."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _commands(inner, (*path, name))


APP = dict(_commands(cli.commands([register], None)))
SERVED = dict(_commands(cli.commands([], None)))
PAGES = "\n".join(page.read_text("utf-8") for page in (HERE / "docs/reference/commands").glob("*.md"))
LEAVES = [path for path, command in APP.items() if not hasattr(command, "commands")]


def _run(
    capsys: pytest.CaptureFixture[str], *args: str, raising: BaseException | None = None
) -> tuple[int, str, str]:
    def add(app: typer.Typer) -> None:
        @app.command("fail")
        def fail() -> None:
            """Raises."""
            if raising is not None:
                raise raising

        @app.command("other")
        def other(count: int) -> None:
            """Takes a number."""

    code = cli.run(args, [add])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("path", list(APP), ids=" ".join)
def test_every_command_teaches_with_an_example(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """`-h` and `--help`: what it does, an example that names it, and every option with a word about it."""
    assert cli.run([*path, "-h"], [register]) == 0
    out = capsys.readouterr().out
    assert cli.run([*path, "--help"], [register]) == 0
    assert capsys.readouterr().out == out
    assert "Example" in out
    assert any(line.strip().startswith(" ".join(("egs", *path))) for line in out.splitlines()[1:])
    assert all(param.help for param in APP[path].params if hasattr(param, "help") and param.name != "help")


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_is_documented_with_an_example(path: tuple[str, ...]) -> None:
    """docs/reference/commands/ has a section for each, and in it a line that could be typed."""
    name = f"egs {' '.join(path)}"
    _, _, after = PAGES.partition(f"\n## {name}\n")
    section = after.partition("\n## ")[0]
    assert f"\n{name}" in section


def test_nothing_is_documented_that_is_not_there() -> None:
    served = [path for path, command in SERVED.items() if not hasattr(command, "commands")]
    known = {f"egs {' '.join(path)}" for path in (*LEAVES, *served)} | {
        "egs demo",
        "egs-reconciler",
        "egs-agent",
    }
    sections = [line.removeprefix("## ") for line in PAGES.splitlines() if line.startswith("## egs")]
    assert (set(sections), len(sections)) == (known, len(known))


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        pytest.param(
            UserError("no such thing; mend it"), 1, "egs: no such thing; mend it\n", id="a user's error"
        ),
        pytest.param(Fault("the remote is away"), 3, "egs: the remote is away\n", id="a fault"),
        pytest.param(KeyboardInterrupt(), 130, "", id="Ctrl-C"),
        pytest.param(
            KeyError("x"),
            3,
            "egs: something broke: KeyError: 'x'; run it again with --debug to see where\n",
            id="a bug",
        ),
        pytest.param(BrokenPipeError(), 0, "", id="a reader who has seen enough"),
        pytest.param(typer.Exit(1), 1, "", id="the answer no"),
        pytest.param(None, 0, "", id="done"),
    ],
)
def test_exit_codes(
    raised: BaseException | None,
    code: int,
    said: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """0 done, 1 no, 2 wrong use, 3 broke; one sentence on stderr for every error."""
    monkeypatch.delenv("EGS_DEBUG", raising=False)
    if isinstance(raised, BrokenPipeError):
        monkeypatch.setattr(cli.os, "dup2", lambda *_: None)
    got, out, err = _run(capfd, "fail", raising=raised)
    assert (got, out, err) == (code, "", said)


def test_an_error_may_bring_its_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    error = UserError("wrong")
    error.exit_code = 2  # type: ignore[attr-defined]
    assert _run(capsys, "fail", raising=error)[0] == 2


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["other"], "Missing argument"),
        (["other", "x"], "Invalid value"),
        (["other", "--nope", "1"], "No such option"),
        (["nope"], "No such command 'nope'"),
    ],
)
def test_wrong_use_is_one_sentence_and_a_pointer(
    args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = _run(capsys, *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert "--help`" in err


def test_without_a_word_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys)
    assert (code, out) == (2, "")
    assert "Examples:" in err


def test_debug_may_stand_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _run(capsys, "fail", "--debug", raising=KeyError("x"))
    assert code == 3
    assert "Traceback" in err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "--version")
    assert (code, out) == (0, f"egs {cli.version()}\n")


def test_a_broken_package_costs_its_own_commands_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = metadata.EntryPoint("good", "reconciler.cli:register", cli.GROUP)
    bad = metadata.EntryPoint("bad", "no_such_package:register", cli.GROUP)
    monkeypatch.setattr(cli.metadata, "entry_points", lambda group: [good, bad] if group == cli.GROUP else [])
    assert cli.installed() == [register]
    assert "the commands of no_such_package are missing" in capsys.readouterr().err


def test_the_shell_can_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "PATH": "/usr/bin",
        "_EGS_COMPLETE": "complete_bash",
        "COMP_WORDS": "egs get ",
        "COMP_CWORD": "2",
    }
    done = _python("sys.exit(run([], [register]))", environment)
    assert {"gprs", "nodes", "queue"} <= set(done.stdout.split())


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    """Start-up: models, planner, Git and tables are loaded by the commands that need them."""
    heavy = "{'pydantic', 'numpy', 'git', 'yaml', 'jsonschema', 'rich.table', 'scheduler', 'kubernetes'}"
    done = _python(f"run(['--help'], [register]); print('HEAVY', sorted({heavy} & sys.modules.keys()))")
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_a_list_of_commands_builds_none_with_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are a third of the time of `egs --help`."""
    built: list[int] = []
    real = command_tree.get_command_from_info

    def counted(info: Any, **how: Any) -> Any:
        command = real(info, **how)
        built.append(len(command.params))
        return command

    monkeypatch.setattr(command_tree, "get_command_from_info", counted)
    assert cli.run(["--help"], [register]) == 0
    assert len(built) > 20
    assert set(built) == {0}
    words = " ".join(capsys.readouterr().out.split())
    whole = ((path[0], APP[path]) for path in APP if len(path) == 1 and not APP[path].hidden)
    sentences = [f"{name} {command.get_short_help_str(45).removesuffix('...')}" for name, command in whole]
    assert [sentence for sentence in sentences if sentence not in words] == []


def _python(code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ENTRY + code],
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
