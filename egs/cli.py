"""The command `egs`: one Typer app to which the installed packages add their commands, for a repository or a server.

This package imports none of the others. They add commands through the entry-point group `egs.commands`: each entry is
a function that takes the app. A package that fails to load loses only its own commands. `egs.modes` decides whether a
command line is for a repository or a server; with only the client installed, all are for a server.

Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 something broke. Every error is one sentence on stderr; stdout
has answers only.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from egs.commands.backend import REPOSITORY, Backend, Where
from egs.modes import Here, Target

DISTRIBUTIONS = ("egs-gitops", "egs-client")
"""The full distribution and the client; the version is that of the first installed one."""
GROUP = "egs.commands"
DONE, NO, MISUSED, BROKE, INTERRUPTED = 0, 1, 2, 3, 130
SELDOM = 5_000_000
"""New objects before a garbage collection: some hundred megabytes at most."""

Opener = Callable[[Where], Backend]
Register = Callable[[typer.Typer], Opener | None]
"""Adds a package's commands to the app; the package for repositories returns how to open one."""

_ABOUT = """Share GPU nodes between teams by pull request, with start times that hold.

A repository of manifests says who wants which nodes. Most commands work on it: on --repo (a folder, a bare
repository or a URL; default EGS_REPO, else the current folder), or through a server (--server URL, EGS_SERVER, or
the one that `egs login` made current).

\b
Examples:
  egs plan                                  who starts when?
  egs wait --slice vision --nodes 2 --gpus-per-node 8 --duration 6h
  egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h
  egs why vision/train                      what does it wait for?

Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 something broke.
"""


def build(registers: Iterable[Register]) -> tuple[typer.Typer, Opener | None]:
    """The app with the common commands and those of `registers`, and how to open a repository, if one says so."""
    from egs.commands import register as common

    app = typer.Typer(
        name="egs",
        help=_ABOUT,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(help=_ABOUT)(_root)
    common(app)
    openers = [opener for register in registers if (opener := register(app)) is not None]
    return app, openers[0] if openers else None


def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=lambda v: _print_version(v),
        ),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code something broke; may stand anywhere.")
    ] = False,
) -> None:
    pass


def commands(registers: Sequence[Register], target: Target | None) -> Any:
    """The commands for a repository (no target) or a server. Also sets how commands open a repository."""
    from egs.commands.command_tree import command_tree
    from egs.commands.limits import limit

    app, opener = build(registers)
    REPOSITORY.set(opener)
    is_limited = target is not None or opener is None
    is_alone = opener is None
    return command_tree(app, partial(limit, is_alone=is_alone) if is_limited else lambda *_: None)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"egs {version()}")
        raise typer.Exit


def version() -> str:
    """The version of the installed distribution; `unknown` in a tree that is not installed."""
    for name in DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return "unknown"


def installed() -> list[Register]:
    """What the installed packages add, in the order of their names."""
    found = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found.append(entry.load())
        except Exception as error:
            # A broken package must not take the other commands away, whatever is wrong with it.
            _say(f"the commands of {entry.value.partition(':')[0]} are missing: {_shown(error)}")
    return found


def run(args: Sequence[str], registers: Sequence[Register], here: Here | None = None) -> int:
    """Run one command line and return its exit code; raises nothing. `here` None: it is for a repository."""
    words = [word for word in args if word != "--debug"]
    is_debug = len(words) < len(args) or bool(os.environ.get("EGS_DEBUG"))
    try:
        command, rest = _chosen(words, registers, here)
        code = command.main(rest, prog_name="egs", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`egs get nodes | head`); otherwise Python complains again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if is_debug:
            traceback.print_exception(error)
        return _told(error)
    return code if isinstance(code, int) else DONE


def _chosen(words: Sequence[str], registers: Sequence[Register], here: Here | None) -> tuple[Any, list[str]]:
    """The commands for this line, and its words without the options that choose a server."""
    from egs import modes

    modes.SERVER.set(None)
    if here is None:
        return commands(registers, None), list(words)

    line = modes.line_of(words)
    target = None
    # Help, and the commands that repair the context file, work even if that file is broken.
    if not line.needs_nothing:
        target = modes.server_of(line, here) if line.command == "whoami" else modes.target_of(line, here)
    modes.SERVER.set(target)
    return commands(registers, target), list(line.words)


def _told(error: Exception) -> int:
    """Report the error and return its exit code. Checks attributes, not classes: this package imports no other."""
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    if hasattr(error, "format_message"):
        return _wrong_use(error)
    if hasattr(error, "reason"):
        _say(str(error))
        is_users = any(kind.__name__ == "UserError" for kind in type(error).__mro__)
        return int(getattr(error, "exit_code", NO if is_users else BROKE))
    _say(f"something broke: {_shown(error)}; run it again with --debug to see where")
    return BROKE


def _wrong_use(error: Exception) -> int:
    """A command line that cannot be understood; an empty one asks for help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        typer.echo(context.get_help(), err=True)
        return MISUSED
    sentence = error.format_message().rstrip(".")  # type: ignore[attr-defined]  # looked for by the caller
    help_hint = f"; see `{context.command_path} --help`" if context is not None else ""
    _say(f"{sentence}{help_hint}")
    return MISUSED


def _shown(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _say(sentence: str) -> None:
    typer.echo(f"egs: {sentence}", err=True)


def main() -> None:
    # A command is short-lived: a garbage collection takes longer than many answers.
    gc.set_threshold(SELDOM)
    registers = installed()
    code = run(sys.argv[1:], registers, Here(os.environ, _folder(), has_repositories=bool(registers)))
    gc.freeze()
    sys.exit(code)


def _folder() -> Path:
    """The current folder; another process may have removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


if __name__ == "__main__":
    main()
