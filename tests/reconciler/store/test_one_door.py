"""Programs are started in few places, each of them named here; git through one wrapper alone.

The wrapper itself is tested among hostile variables and configurations in tests/reconciler/store/test_git_security.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("schemas", "scheduler", "reconciler", "agent", "demo", "egs", "portal")
pytestmark = pytest.mark.xdist_group("sources")  # parsed once
Modules = Mapping[str, ast.Module]

STARTERS = {
    "reconciler/store/git/git_process.py": "git, and nothing else",
    "reconciler/trust/signature_programs.py": "ssh-keygen and gpg, to check signatures in a closed world",
    "reconciler/trust/personal_signatures.py": "ssh-keygen, to sign as the person who sits here",
    "reconciler/sources/commit_signing.py": "gpg, to sign as the person who sits here",
    "reconciler/machine_code.py": "a C compiler, where the installation has no compiled planner",
}
"""The modules that may start a program, and which."""
SEEKERS = {*STARTERS, "reconciler/store/git/open_remote.py", "reconciler/cli/answers/doctor.py"}
"""The modules that may look for one: one names ssh to git, which starts it, one says which programs are missing."""
STARTING = {"subprocess", "multiprocessing", "pty", "sh", "pexpect", "asyncio.subprocess"}
CALLS = {
    *(
        f"os.{name}"
        for name in ("system", "popen", "fork", "forkpty", "startfile", "posix_spawn", "posix_spawnp")
    ),
    *(
        f"os.{kind}{how}"
        for kind in ("exec", "spawn")
        for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
    ),
    *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
}


@pytest.fixture(scope="module")
def modules() -> Modules:
    """Every module of the product, parsed."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }


def imported(tree: ast.Module) -> Iterator[str]:
    """Names of modules that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def called(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Calls by the dotted name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_programs_are_started_in_the_places_named_here_and_nowhere_else(modules: Modules) -> None:
    found = {path for path, tree in modules.items() if STARTING & set(imported(tree))}
    found |= {path for path, tree in modules.items() if any(name in CALLS for name, _ in called(tree))}
    assert found == set(STARTERS)


def test_no_other_module_looks_for_a_program(modules: Modules) -> None:
    found = {path for path, tree in modules.items() if any(n.endswith("which") for n, _ in called(tree))}
    assert found <= SEEKERS


@pytest.mark.parametrize("path", STARTERS)
def test_no_shell_is_ever_between(modules: Modules, path: str) -> None:
    """A list of words, no shell, and no environment by accident."""
    for name, call in called(modules[path]):
        if name not in {"subprocess.run", "subprocess.Popen"}:
            assert not name.startswith("subprocess."), name
            continue
        words = {keyword.arg: keyword.value for keyword in call.keywords}
        assert "shell" not in words
        assert "env" in words, f"{path}:{call.lineno} starts a program with whatever environment there is"
        assert not isinstance(call.args[0], ast.Constant | ast.JoinedStr | ast.BinOp), (
            "one text is no list of words"
        )


def test_git_is_named_to_the_system_by_its_wrapper_alone(modules: Modules) -> None:
    """Nobody else builds a command line that begins with git."""
    for path, tree in modules.items():
        if path == "reconciler/store/git/git_process.py":
            continue
        words = (node for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple) and node.elts)
        first = (node.elts[0] for node in words)
        assert not any(isinstance(word, ast.Constant) and word.value == "git" for word in first), path
        assert not any(name.endswith("find_git") for name, _ in called(tree)), path


def test_gitpython_runs_no_command_with_words_from_outside(modules: Modules) -> None:
    """`repo.git.log(x)` hands x to git as an option if it looks like one; only fixed words may stand there."""
    for path, tree in modules.items():
        for name, call in called(tree):
            if ".git." in f"{name}(" and "repo" in name.split(".")[0].lower():
                words = (*call.args, *(keyword.value for keyword in call.keywords))
                assert all(isinstance(word, ast.Constant) for word in words), f"{path}:{call.lineno} {name}"


def test_what_a_stranger_says_is_never_run_as_code(modules: Modules) -> None:
    """No eval, no pickle, no loader that makes objects from tags."""
    for path, tree in modules.items():
        names = {name for name, _ in called(tree)}
        assert not names & {"eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load"}, path
        assert not {"pickle", "marshal", "shelve", "dill"} & set(imported(tree)), path
