"""The compiled planner is built where there is none, once, and its absence harms nothing (E10)."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from reconciler import machine_code
from scheduler.kernel import library


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(library.VARIABLE, str(tmp_path))
    monkeypatch.setattr(library, "_opened", [])


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Takes note of each call, and makes no library."""
    programs = tmp_path / "programs"
    programs.mkdir()
    path = programs / "cc"
    path.write_text(
        '#!/bin/sh\necho x >> "$(dirname "$0")/calls"\nwhile [ "$1" != -o ]; do shift; done\n: > "$2"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return path


def test_it_is_built_into_the_cache(compiler: Path) -> None:
    machine_code.make_ready()
    folder = library.cache_folder()
    assert folder is not None
    assert [path.name for path in folder.iterdir()] == [library.name()]
    assert (compiler.parent / "calls").read_text() == "x\n"


def test_a_damaged_library_is_as_good_as_none(compiler: Path, caplog: pytest.LogCaptureFixture) -> None:
    machine_code.make_ready()  # an empty file
    assert library.load() is None
    assert "planner not compiled error=cannot be loaded" in caplog.text


@pytest.mark.skipif(not any(map(shutil.which, library.COMPILERS)), reason="needs a C compiler")
@pytest.mark.parametrize("of", ["folder", "file"])
def test_what_others_can_write_is_not_run(of: str) -> None:
    machine_code.make_ready()
    folder = library.cache_folder()
    assert folder is not None
    library._opened.clear()
    (folder if of == "folder" else folder / library.name()).chmod(0o777)
    assert library.load() is None


def test_the_folder_of_a_repository_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, "cache")
    assert library.cache_folder() == Path.home() / ".cache/egs/kernel"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_second_compiler_is_tried(compiler: Path) -> None:
    compiler.write_text("#!/bin/sh\nexit 1\n")
    machine_code.make_ready()
    assert library.load() is not None


def test_what_is_there_is_not_built_again(monkeypatch: pytest.MonkeyPatch, compiler: Path) -> None:
    monkeypatch.setattr(library, "_opened", [object()])
    machine_code.make_ready()
    assert not (compiler.parent / "calls").exists()


def test_without_a_compiler_plans_are_made_plainly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        machine_code.make_ready()
    assert "planner not compiled error=no C compiler; large queues take longer" in caplog.text
    assert library.load() is None


def test_a_compiler_that_fails_is_told_once_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, compiler: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiler.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setattr(library, "COMPILERS", ("cc",))
    machine_code.make_ready()
    folder = library.cache_folder()
    assert folder is not None
    assert list(folder.iterdir()) == []
    assert "planner not compiled error=CalledProcessError" in caplog.text
