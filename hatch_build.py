"""Builds the compiled part of planning into the wheel. Without a C compiler the wheel has none and plans plainly."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledPlanner(BuildHookInterface[Any]):
    """An editable installation gets nothing: `reconciler.machine_code` builds what its sources then are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        library = _library(Path(self.root))
        if version != "standard":
            return
        self._folder = tempfile.mkdtemp()
        target = Path(self._folder) / library.name()
        if not any(
            self._built(library.command(path, target))
            for path in map(shutil.which, library.COMPILERS)
            if path
        ):
            self.app.display_warning("no C compiler works: large queues are planned more slowly")
            return
        build_data["force_include"][str(target)] = f"scheduler/kernel/native/{target.name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"  # no code of Python's own is in it

    def _built(self, command: list[str]) -> bool:
        try:
            return subprocess.run(command).returncode == 0  # noqa: S603 - the sources are ours
        except OSError:
            return False

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


def _library(root: Path) -> ModuleType:
    """The module that knows names and commands, without the packages around it."""
    spec = spec_from_file_location("library", root / "scheduler" / "kernel" / "library.py")
    assert spec is not None
    assert spec.loader is not None
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
